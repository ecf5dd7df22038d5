// SPDX-License-Identifier: MIT
// Field reports: 32 33
// A stack that overflows ends the program with a line that says which, and spoils nothing.
#include "../../src/os/memory.h"

#include "support/environment.h"
#include "support/in_process.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <thread>

namespace cede {
namespace {

[[gnu::noinline]] int overflow(int depth) {
  volatile char frame[500] = {};
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : overflow(depth - 1) + frame[0];
}

constexpr int kTooDeep = 10000000;

// What the report has to say of a process, in the little language that every system's tests know.
std::string report_of(const std::string& name) {
  return "cede: stack overflow in process " + name +
         ": access to 0x.+, .+ bytes below its stack 0x.+ to 0x.+ .+ bytes., stack pointer 0x.+";
}

class Overflow : public testing::TestWithParam<os::GuardMethod> {
protected:
  void SetUp() override {
    if (GetParam() == os::GuardMethod::advice &&
        os::detect_guard_method() != os::GuardMethod::advice)
      GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL";
    os::set_guard_method(GetParam());
  }
  void TearDown() override { os::set_guard_method(os::GuardMethod::automatic); }
};

TEST_P(Overflow, names_the_process_its_bounds_and_its_size) {
  auto child = [] { test::in_process({.name = "eater"}, [] { overflow(kTooDeep); }); };
  EXPECT_EXIT(child(), test::died_of_fault, report_of("eater"));
}

TEST_P(Overflow, of_an_unnamed_process_says_so) {
  auto child = [] { test::in_process([] { overflow(kTooDeep); }); };
  EXPECT_EXIT(child(), test::died_of_fault, report_of(".unnamed."));
}

TEST_P(Overflow, on_a_second_thread_is_reported_too) {
  auto child = [] {
    test::in_process([] {}); // the handler's installation was the first thread's
    std::thread([] { test::in_process({.name = "eater"}, [] { overflow(kTooDeep); }); }).join();
  };
  EXPECT_EXIT(child(), test::died_of_fault, report_of("eater"));
}

TEST_P(Overflow, on_another_thread_than_the_process_was_made_on_is_reported) {
  auto child = [] {
    Process main, worker;
    auto eat_after_a_pause = [&](void*) {
      transfer(worker, main);
      overflow(kTooDeep);
      return Next{main};
    };
    newprocess(worker, eat_after_a_pause, {.bytes = 100000, .name = "eater"}).value();
    transfer(main, worker);
    std::thread([&] {
      Process here;
      transfer(here, worker);
    }).join();
  };
  EXPECT_EXIT(child(), test::died_of_fault, report_of("eater"));
}

TEST_P(Overflow, of_an_inner_process_names_that_one) {
  auto child = [] {
    test::in_process({.name = "outer"},
                     [] { test::in_process({.name = "inner"}, [] { overflow(kTooDeep); }); });
  };
  EXPECT_EXIT(child(), test::died_of_fault, report_of("inner"));
}

TEST_P(Overflow, of_a_stack_used_before_names_its_owner_of_now) {
  auto child = [] {
    test::in_process({.name = "earlier"}, [] {});
    test::in_process({.name = "eater"}, [] { overflow(kTooDeep); });
  };
  EXPECT_EXIT(child(), test::died_of_fault, report_of("eater"));
}

TEST_P(Overflow, prints_the_first_31_bytes_of_a_name) {
  const std::string name = "a-name-that-is-longer-than-what-is-kept";
  auto child = [&] { test::in_process({.name = name}, [] { overflow(kTooDeep); }); };
  EXPECT_EXIT(child(), test::died_of_fault, report_of(name.substr(0, 31)));
}

std::string name_of(const testing::TestParamInfo<os::GuardMethod>& info) {
  return info.param == os::GuardMethod::advice ? "advice" : "protection";
}
INSTANTIATE_TEST_SUITE_P(Guards, Overflow,
                         testing::Values(os::GuardMethod::advice, os::GuardMethod::protection),
                         name_of);

[[gnu::noinline]] char write_far_end_of_a_large_frame() {
  volatile char big[60000];
  asm volatile("" : : "r"(&big[0]) : "memory"); // else clang keeps the one byte that is used
  big[0] = 1;
  return big[0];
}

[[gnu::noinline]] char with_little_left(int depth) {
  volatile char frame[200] = {};
  if (stack_limits().remaining() < 4096)
    return write_far_end_of_a_large_frame();
  frame[0] = with_little_left(depth + 1);
  return frame[0];
}

TEST(OverflowReport, knows_a_large_frame_that_writes_its_far_end) {
  if (test::kAddressSanitizer)
    GTEST_SKIP() << "its frames are laid out otherwise";
  auto child = [] { test::in_process({.name = "eater"}, [] { with_little_left(0); }); };
  EXPECT_EXIT(child(), test::died_of_fault, report_of("eater"));
}

TEST(OverflowReport, can_be_switched_off) {
  auto child = [] {
    configure_stacks({.report_overflow = false});
    std::fputs("no report:", stderr);
    std::fflush(stderr); // not every system has it unbuffered
    test::in_process({.name = "eater"}, [] { overflow(kTooDeep); });
  };
  if (test::kAddressSanitizer || test::kThreadSanitizer)
    GTEST_SKIP() << "the sanitizer has a report of its own";
  EXPECT_EXIT(child(), test::died_of_fault, test::all_printed("no report:"));
}

} // namespace
} // namespace cede
