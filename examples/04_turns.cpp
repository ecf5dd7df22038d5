// SPDX-License-Identifier: MIT
// Two fibers: one sleeps, one only gives way. The clock is a test clock, so nobody really waits.
#include <cede/cede.h>
#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main() {
  cede::run({.has_test_clock = true}, [] {
    const cede::TimePoint begin = cede::now();
    const auto milliseconds = [begin] { return int((cede::now() - begin) / 1ms); };
    auto alfa = cede::spawn([&] {
      for (int i = 1; i <= 3; ++i) {
        std::printf("alfa %d at %d ms\n", i, milliseconds());
        cede::sleep_for(100ms);
      }
    });
    auto beta = cede::spawn([&] {
      for (int i = 1; i <= 5; ++i) {
        std::printf("beta %d at %d ms\n", i, milliseconds());
        cede::yield();
      }
    });
    alfa.join();
    beta.join();
    std::printf("both have ended at %d ms\n", milliseconds());
  });
}
