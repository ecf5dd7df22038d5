// SPDX-License-Identifier: MIT
// Rows: D-28
// What the README says that cede does not do, shown: whoever lifts a limit finds the sentence to
// change.
#include <cede/cede.h>

#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<Process> && !std::is_move_constructible_v<Process> &&
              !std::is_copy_assignable_v<Process> && !std::is_move_assignable_v<Process>);

TEST(Limits, a_call_of_the_system_that_blocks_stops_every_fiber_of_the_thread) {
  std::string trace;
  run([&] {
    auto other = spawn([&] { trace += "other "; });
    std::this_thread::sleep_for(2ms); // of the thread, not of the fiber
    trace += "blocked ";
    other.join();
  });
  EXPECT_EQ(trace, "blocked other ");
}

TEST(Limits, nobody_is_preempted) {
  bool has_run = false;
  run([&] {
    auto other = spawn({.priority = kPriorityMax}, [&] { has_run = true; });
    const TimePoint end = now() + 5ms;
    while (now() < end)
      EXPECT_FALSE(has_run);
    other.join();
  });
  EXPECT_TRUE(has_run);
}

TEST(Limits, fibers_of_a_scheduler_never_leave_its_thread) {
  std::vector<std::thread::id> threads;
  Scheduler scheduler;
  for (int i = 0; i < 100; ++i)
    scheduler.spawn([&] {
      for (int turn = 0; turn < 10; ++turn) {
        threads.push_back(std::this_thread::get_id());
        yield();
      }
    });
  scheduler.run();
  EXPECT_EQ(threads, std::vector(1000, std::this_thread::get_id()));
}

TEST(Limits, thread_locals_belong_to_the_thread) {
  static thread_local int value = 0;
  run([&] {
    auto other = spawn([] { value = 1; });
    value = 2;
    other.join();
    EXPECT_EQ(value, 1);
  });
}

#ifndef _WIN32
TEST(Limits, the_mask_of_os_signals_belongs_to_the_thread) {
  run([] {
    auto other = spawn([] {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGUSR2);
      pthread_sigmask(SIG_BLOCK, &set, nullptr);
    });
    other.join();
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGUSR2), 1);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
  });
}
#endif

} // namespace
} // namespace cede
