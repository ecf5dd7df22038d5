// SPDX-License-Identifier: MIT
// Backtraces of another thread, and what becomes of the OS signal by which they are taken.
#include "../../src/os/backtrace.h"

#include <gtest/gtest.h>

#if !__has_include(<execinfo.h>)
TEST(Backtrace, is_of_what_the_thread_runs) {
  GTEST_SKIP() << "there is none on this system";
}
#else
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace cede::os {
namespace {

using namespace std::chrono_literals;

std::atomic<int> calls{0};

void count_call(int) {
  calls.fetch_add(1);
}

TEST(Backtrace, is_had_of_a_thread_that_computes_and_not_of_one_that_blocks_the_signal) {
  const auto frames_of_thread = [](bool blocks) {
    std::atomic<BacktraceTarget*> target{nullptr};
    std::atomic<bool> is_over{false};
    std::thread thread([&] {
      sigset_t urgent;
      sigemptyset(&urgent);
      sigaddset(&urgent, SIGURG);
      if (blocks)
        pthread_sigmask(SIG_BLOCK, &urgent, nullptr);
      BacktraceTarget mine;
      target = &mine;
      while (!is_over) // ThreadSanitizer puts handlers off until a call of the C library
        std::this_thread::yield();
    });
    while (target == nullptr)
      std::this_thread::yield();
    void* frames[BacktraceTarget::kMostFrames];
    const std::size_t count = target.load()->take(frames, blocks ? 50ms : 10s);
    is_over = true;
    thread.join();
    return count;
  };
  EXPECT_GT(frames_of_thread(false), 0u);
  EXPECT_EQ(frames_of_thread(true), 0u);
}

TEST(Backtrace, passes_other_signals_of_that_number_on) {
  EXPECT_EXIT(
      {
        std::signal(SIGURG, count_call);
        BacktraceTarget target;
        std::raise(SIGURG);
        std::exit(calls == 1 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace cede::os
#endif
