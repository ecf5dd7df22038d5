// SPDX-License-Identifier: MIT
// Fibers that are joined, cancelled and finished from within; each has a name and a priority.
#include <cede/cede.h>
#include <cstdio>
#include <stdexcept>
#include <string>

struct Leaving {
  const char* who;
  ~Leaving() { std::printf("  %s is unwound\n", who); }
};

int main() {
  cede::run([] {
    auto adder = cede::spawn({.name = "adder"}, [] {
      int sum = 0;
      for (int i = 1; i <= 10; ++i) {
        sum += i;
        cede::yield();
      }
      return sum;
    });
    auto waiter = cede::spawn({.name = "waiter"}, [] {
      Leaving leaving{"waiter"};
      cede::park(); // nobody wakes it
    });
    auto finder = cede::spawn({.name = "finder", .priority = 2}, []() -> std::string {
      Leaving leaving{"finder"};
      for (const char* word : {"hay", "hay", "needle", "hay"})
        if (word[0] == 'n')
          cede::finish(std::string(word));
      return "nothing";
    });
    auto broken = cede::spawn([]() -> int { throw std::runtime_error("broken"); });

    std::printf("the sum is %d\n", adder.join());
    std::printf("found: %s\n", finder.join().c_str());
    try {
      broken.join();
    } catch (const std::runtime_error& error) {
      std::printf("caught: %s\n", error.what());
    }
    std::printf("cancelling %s\n", std::string(waiter.name()).c_str());
    waiter.cancel();
    std::printf("it says: %s\n", cede::AnyFiber(waiter).join().error().message().c_str());
  });
}
