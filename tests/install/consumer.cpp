// SPDX-License-Identifier: MIT
// A user's program: processes, a generator, an exception and a forced unwinding.
#include <cede/cede.h>

#include <cstdio>
#include <stdexcept>

#ifdef BUILD_AS_PLUGIN
#define MAIN extern "C" int run()
#else
#define MAIN int main()
#endif

namespace {

struct Counts {
  int& destroyed;
  ~Counts() { ++destroyed; }
};

} // namespace

MAIN {
  int sum = 0;
  cede::Generator<int> squares([](auto& yield) {
    for (int i = 1; i <= 3; ++i)
      yield(i * i);
  });
  for (int square : squares)
    sum += square;

  int unwound = 0;
  cede::Process main, worker;
  {
    cede::Process dropped;
    cede::newprocess(dropped, [&](void*) {
      Counts counts{unwound};
      cede::transfer(dropped, main);
      return cede::Next{main};
    }).value();
    cede::transfer(main, dropped);
  }
  cede::newprocess(worker, [&](void* word) {
    try {
      throw std::runtime_error("caught");
    } catch (const std::exception&) {
      word = cede::transfer(worker, main, word);
    }
    return cede::Next{main, word};
  }).value();
  int number = 7;
  const bool first = cede::transfer(main, worker, &number) == &number;
  const bool second = cede::transfer(main, worker, &sum) == &sum;
  std::printf("%d %d %d %d\n", sum, unwound, first, second);
  return sum == 14 && unwound == 1 && first && second ? 0 : 1;
}
