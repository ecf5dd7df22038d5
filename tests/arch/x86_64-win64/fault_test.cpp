// SPDX-License-Identifier: MIT
// Rows: X-40
// Field reports: 9 22 33
// Faults and exceptions that nobody handles, in a process on Windows: who is told, and how the
// program ends.
#include <cede/process.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <stdexcept>
#include <thread>
#include <windows.h>

namespace cede {
namespace {

template <class F>
void in_process(F f, StackOptions options = {}) {
  Process main, process;
  newprocess(
      process,
      [&](void*) {
        f();
        return Next{main};
      },
      options)
      .value();
  transfer(main, process);
}

[[gnu::noinline]] int recurse(volatile char* above, int depth) {
  volatile char local[256];
  local[0] = static_cast<char>(above[0] + 1);
  return depth == 0 ? local[0] : recurse(local, depth - 1) + local[0];
}

void overflow() {
  volatile char local = 0;
  recurse(&local, 1'000'000);
}

// Runs when nobody has handled an exception.
LONG WINAPI say_unhandled(EXCEPTION_POINTERS* exception) {
  std::fprintf(stderr, "unhandled %lx\n", exception->ExceptionRecord->ExceptionCode);
  return EXCEPTION_EXECUTE_HANDLER;
}

TEST(FaultDeathTest, an_overflow_is_reported_with_the_name_and_is_the_exit_code) {
  EXPECT_EXIT(in_process(overflow, {.bytes = 32 * 1024, .name = "narrow"}),
              testing::ExitedWithCode(static_cast<int>(EXCEPTION_STACK_OVERFLOW)),
              "stack overflow in process narrow");
}

TEST(FaultDeathTest, an_overflow_on_another_thread_is_reported_too) {
  EXPECT_EXIT(std::thread([] { in_process(overflow, {.name = "threaded"}); }).join(),
              testing::ExitedWithCode(static_cast<int>(EXCEPTION_STACK_OVERFLOW)),
              "stack overflow in process threaded");
}

TEST(FaultDeathTest, an_overflow_reaches_the_unhandled_exception_filter) {
  EXPECT_DEATH(
      {
        SetUnhandledExceptionFilter(say_unhandled);
        in_process(overflow, {.name = "narrow"});
      },
      "stack overflow in process narrow.*\n.*unhandled c00000fd");
}

TEST(FaultDeathTest, a_null_access_reaches_the_unhandled_exception_filter_unreported) {
  EXPECT_EXIT(
      {
        SetUnhandledExceptionFilter(say_unhandled);
        in_process([] { *static_cast<volatile int*>(nullptr) = 1; });
      },
      testing::ExitedWithCode(static_cast<int>(EXCEPTION_ACCESS_VIOLATION)), "^unhandled c0000005");
}

TEST(FaultDeathTest, an_exception_that_leaves_an_entry_is_named_and_terminates_in_place) {
  EXPECT_EXIT(
      {
        std::set_terminate([] {
          std::fprintf(stderr, "terminate on its stack: %d\n", stack_limits().remaining() > 0);
          _exit(7);
        });
        in_process([] { throw std::runtime_error("lost"); }, {.name = "thrower"});
      },
      testing::ExitedWithCode(7),
      "leaves the entry of process thrower.*\n.*terminate on its stack: 1");
}

} // namespace
} // namespace cede
