// SPDX-License-Identifier: MIT
// Field reports: 26
// The limits of the stack that runs now, whoever made it.
#include "support/environment.h"
#include "support/in_process.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace cede {
namespace {

[[gnu::noinline]] void expect_to_be_inside(const StackLimits& limits) {
  const auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  EXPECT_LT(limits.low, here);
  EXPECT_GT(limits.high, here);
  EXPECT_GT(limits.remaining(), 0u);
  EXPECT_LT(limits.remaining(), static_cast<std::size_t>(limits.high - limits.low));
}

TEST(StackLimits, of_a_thread_are_the_systems) {
  expect_to_be_inside(stack_limits());
  std::thread([] { expect_to_be_inside(stack_limits()); }).join();
}

TEST(StackLimits, of_a_process_are_its_own_on_any_thread) {
  const StackLimits outside = stack_limits();
  auto inside = [&] {
    const StackLimits limits = stack_limits();
    expect_to_be_inside(limits);
    EXPECT_NE(limits.low, outside.low);
    EXPECT_LT(limits.high - limits.low, 128 * 1024);
  };
  test::in_process(inside);
  std::thread([&] { test::in_process(inside); }).join();
}

TEST(StackLimits, of_memory_of_the_callers_lie_in_it) {
  std::vector<std::byte> memory(50001);
  test::in_process({.memory = memory}, [&] {
    const StackLimits limits = stack_limits();
    expect_to_be_inside(limits);
    EXPECT_EQ(limits.low, memory.data());
  });
}

TEST(StackLimits, of_a_nested_process_are_the_inner_ones) {
  test::in_process([] {
    const StackLimits outer = stack_limits();
    test::in_process([&] {
      expect_to_be_inside(stack_limits());
      EXPECT_NE(stack_limits().low, outer.low);
    });
    EXPECT_EQ(stack_limits().low, outer.low);
    EXPECT_EQ(stack_limits().high, outer.high);
  });
}

TEST(StackLimits, nothing_remains_of_another_stack) {
  StackLimits limits;
  test::in_process([&] { limits = stack_limits(); });
  EXPECT_EQ(limits.remaining(), 0u);
  EXPECT_EQ(StackLimits{}.remaining(), 0u);
}

[[gnu::noinline]] int recurse_until(std::size_t left) {
  volatile char frame[256] = {};
  if (stack_limits().remaining() < left)
    return frame[0];
  return recurse_until(left) + frame[1] + 1;
}

TEST(StackLimits, recursion_that_heeds_them_does_not_fault) {
  const std::size_t left = test::is_observed() ? 16 * 1024 : 8 * 1024;
  for (std::size_t bytes : {kDefaultStackBytes, std::size_t{256} * 1024})
    test::in_process({.bytes = bytes}, [&] { EXPECT_GT(recurse_until(left), 10); });
  std::vector<std::byte> memory(kDefaultStackBytes);
  test::in_process({.memory = memory}, [&] { EXPECT_GT(recurse_until(left), 10); });
}

} // namespace
} // namespace cede
