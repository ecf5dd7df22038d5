// SPDX-License-Identifier: MIT
// Rows: P-11 P-54
// Field reports: 21 22
// What leaves the entry of a process: an exception ends the program where it was thrown, with the
// name of the process; the cancellation of a thread unwinds and the thread ends.
#include "support/environment.h"
#include "support/in_process.h"

#include <cede/process.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string_view>
#if defined(__GLIBC__)
#include <pthread.h>
#include <unistd.h>
#endif

namespace cede::test {
namespace {

bool is_unwound = false;
struct Guard {
  ~Guard() { is_unwound = true; }
};

// Says where it was called, and dies as std::terminate would.
void say_and_die() {
  const StackLimits limits = stack_limits();
  const std::byte* here = test::here();
  const bool on_process = here >= limits.low && here < limits.high &&
                          limits.high - limits.low < 256 * 1024; // not the thread's own
  std::fprintf(stderr, "%s stack, %s\n", on_process ? "its own" : "another's",
               is_unwound ? "unwound" : "as thrown");
  std::abort();
}

[[noreturn]] void throw_in_process(std::string_view name, bool on_first_run) {
  std::set_terminate(say_and_die);
  Process main, worker;
  StackOptions options;
  options.name = name;
  newprocess(
      worker,
      [&](void*) -> Next {
        if (!on_first_run)
          transfer(worker, main);
        Guard guard;
        throw std::runtime_error("nobody catches this");
      },
      options)
      .value();
  transfer(main, worker);
  transfer(main, worker);
  std::exit(0);
}

TEST(Escape, of_an_exception_names_the_process_and_terminates_at_the_throw) {
  if (std::string_view(CEDE_TARGET) == "generic-ucontext")
    GTEST_SKIP() << "the fallback names the process, but unwinds it before the program ends";
  EXPECT_DEATH(throw_in_process("painter", true),
               "an exception leaves the entry of process painter\nits own stack, as thrown");
  EXPECT_DEATH(throw_in_process("painter", false),
               "an exception leaves the entry of process painter\nits own stack, as thrown");
}

TEST(Escape, of_an_exception_from_a_process_without_a_name) {
  if (std::string_view(CEDE_TARGET) == "generic-ucontext")
    GTEST_SKIP() << "the fallback names the process, but unwinds it before the program ends";
  EXPECT_DEATH(throw_in_process("", true), "an exception leaves the entry of process an unnamed "
                                           "process\nits own stack, as thrown");
}

TEST(Escape, is_not_announced_when_the_exception_is_caught) {
  testing::internal::CaptureStderr();
  Process main, worker;
  newprocess(worker, [&](void*) {
    try {
      throw 1;
    } catch (int) {
    }
    return Next{main};
  }).value();
  transfer(main, worker);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

#if defined(__GLIBC__)
// A thread that is cancelled while it runs a process unwinds that process, and nothing else: who
// transferred to it is suspended. The process counts as running for ever, since nobody can say that
// its stack is free; it must not be destroyed.
struct Cancelled {
  Process main, worker;
  std::atomic<bool> waits{false};
  bool worker_unwound = false;
  bool thread_unwound = false;
};

struct Sets {
  bool& flag;
  ~Sets() { flag = true; }
};

void* wait_in_process(void* argument) {
  auto& shared = *static_cast<Cancelled*>(argument);
  Sets thread_unwound{shared.thread_unwound};
  newprocess(shared.worker, [&](void*) {
    Sets worker_unwound{shared.worker_unwound};
    shared.waits = true;
    for (;;)
      pause();
    return Next{shared.main};
  }).value();
  transfer(shared.main, shared.worker);
  return nullptr;
}

int cancel_and_join(Cancelled& shared) {
  pthread_t thread;
  pthread_create(&thread, nullptr, wait_in_process, &shared);
  while (!shared.waits)
    usleep(1000);
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  return result == PTHREAD_CANCELED && shared.worker_unwound && !shared.thread_unwound &&
                 shared.worker.state() == Process::State::running &&
                 shared.main.state() == Process::State::suspended
             ? 0
             : 1;
}

TEST(Escape, of_a_cancelled_thread_unwinds_the_process_that_runs_and_the_thread_joins) {
  if (test::kAddressSanitizer)
    GTEST_SKIP() << "the thread leaves the process's stack by a jump that the sanitizer can't see";
  EXPECT_EXIT(
      {
        auto* shared = new Cancelled;
        _exit(cancel_and_join(*shared));
      },
      testing::ExitedWithCode(0), "");
}

TEST(Escape, of_a_cancelled_thread_leaves_a_process_that_must_not_be_destroyed) {
  if (test::kAddressSanitizer)
    GTEST_SKIP() << "the thread leaves the process's stack by a jump that the sanitizer can't see";
  EXPECT_DEATH(
      {
        auto* shared = new Cancelled;
        cancel_and_join(*shared);
        shared->worker.~Process();
      },
      "destroyed while its stack is in use");
}
#endif

} // namespace
} // namespace cede::test
