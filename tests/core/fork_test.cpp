// SPDX-License-Identifier: MIT
// Field reports: 71
// A program that forks: its child owns a copy of every process.
#include <gtest/gtest.h>

#if !__has_include(<sys/wait.h>)
TEST(Fork, gives_the_child_its_own_processes) {
  GTEST_SKIP() << "fork is POSIX's";
}
#else
#include "support/environment.h"
#include "support/in_process.h"

#include <atomic>
#include <deque>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cede {
namespace {

class Fork : public testing::Test {
protected:
  void SetUp() override {
    if (test::kThreadSanitizer)
      GTEST_SKIP() << "its runtime knows no fibers in a child";
    if (test::on_valgrind())
      GTEST_SKIP() << "it counts what the threads own that a child doesn't have as lost";
  }
};

int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(Fork, gives_the_child_its_own_processes) {
  Process main;
  std::deque<Process> workers;
  int resumed = 0;
  for (int i = 0; i < 100; ++i) {
    Process& worker = workers.emplace_back();
    newprocess(worker, [&](void*) {
      return transfer(worker, main), ++resumed, Next{main};
    }).value();
    transfer(main, worker);
  }
  auto finish_all = [&] {
    for (Process& worker : workers)
      transfer(main, worker);
    workers.clear();
    test::in_process([&] { ++resumed; });
  };
  const pid_t child = fork();
  if (child == 0) {
    finish_all();
    _exit(resumed == 101 ? 42 : 1);
  }
  EXPECT_TRUE(testing::ExitedWithCode(42)(status_of(child)));
  EXPECT_EQ(resumed, 0);
  finish_all();
  EXPECT_EQ(resumed, 101);
}

TEST_F(Fork, may_happen_in_a_process) {
  pid_t child = -1;
  test::in_process([&] { child = fork(); });
  if (child == 0) {
    bool ran = false;
    test::in_process([&] { ran = true; });
    _exit(ran ? 42 : 1);
  }
  EXPECT_TRUE(testing::ExitedWithCode(42)(status_of(child)));
}

TEST_F(Fork, keeps_the_guards_and_the_report) {
  StackLimits limits;
  Process main, worker;
  newprocess(worker, [&](void*) {
    limits = stack_limits();
    transfer(worker, main);
    limits.low[-1] = std::byte{};
    return Next{main};
  }).value();
  transfer(main, worker);
  const pid_t child = fork();
  if (child == 0) {
    transfer(main, worker);
    _exit(1);
  }
  EXPECT_TRUE(test::died_of_fault(status_of(child)));
}

TEST_F(Fork, while_another_thread_makes_processes_leaves_no_lock_held) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop)
      test::in_process({.bytes = 100000}, [] {});
  });
  for (int i = 0; i < test::scaled(100, 3); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      test::in_process({.bytes = 100000}, [] {});
      _exit(42);
    }
    EXPECT_TRUE(testing::ExitedWithCode(42)(status_of(child)));
  }
  stop = true;
  other.join();
}

} // namespace
} // namespace cede
#endif
