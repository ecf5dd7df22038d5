// SPDX-License-Identifier: MIT
// A scheduler inside somebody else's loop: posts make fibers, and the loop gives it a step at a
// time.
#include <cede/cede.h>
#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main() {
  cede::Scheduler scheduler({.has_test_clock = true});
  cede::Remote remote = scheduler.remote();
  for (int i = 3; i >= 1; --i)
    remote
        .post([i] {
          cede::spawn([i] {
            cede::sleep_for(i * 1ms);
            std::printf("task %d\n", i);
          });
        })
        .value();
  int turns = 0;
  while (scheduler.poll_for(10ms) != cede::Progress::closed) {
    remote.unref(); // nobody sends any more
    ++turns;
  }
  std::printf("nobody is left; %s\n", turns < 20 ? "few turns" : "many turns");
}
