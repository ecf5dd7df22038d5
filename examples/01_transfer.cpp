// SPDX-License-Identifier: MIT
// Two processes that hand a number to one another.
#include <cede/cede.h>
#include <cstdint>
#include <cstdio>

int main() {
  cede::Process main, doubler;
  cede::newprocess(doubler, [&](void* word) {
    while (word != nullptr)
      word = cede::transfer(doubler, main, reinterpret_cast<void*>(2 * std::uintptr_t(word)));
    return cede::Next{main};
  }).value();
  for (std::uintptr_t number = 1; number < 10; number *= 3) {
    void* doubled = cede::transfer(main, doubler, reinterpret_cast<void*>(number));
    std::printf("%d doubled is %d\n", int(number), int(std::uintptr_t(doubled)));
  }
}
