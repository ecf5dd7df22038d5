// SPDX-License-Identifier: MIT
// Field reports: 26 33
// The search for the stack that an address belongs to, as a fault handler does it.
#include "../../src/core/slab.h"

#include "support/environment.h"
#include "support/in_process.h"

#include <atomic>
#include <deque>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace cede::core {
namespace {

TEST(FindStack, is_right_at_the_borders) {
  test::in_process({.name = "it"}, [] {
    const StackLimits limits = stack_limits();
    std::byte* guard = limits.low - kGuardBytes;
    for (std::byte* inside : {guard, limits.low - 1, limits.low, limits.high - 1, limits.high}) {
      const Found found = find_stack(inside, false);
      ASSERT_NE(found.name, nullptr);
      EXPECT_STREQ(found.name, "it");
      EXPECT_EQ(found.guard, guard);
      EXPECT_EQ(found.low, limits.low);
      EXPECT_EQ(found.high, limits.high);
    }
    const Found below = find_stack(guard - 1, false);
    EXPECT_TRUE(below.name == nullptr || below.low != limits.low);
  });
}

TEST(FindStack, finds_nothing_for_addresses_of_others) {
  int local = 0;
  static int global = 0;
  auto heap = std::make_unique<int>();
  for (void* other :
       {static_cast<void*>(&local), static_cast<void*>(&global), static_cast<void*>(heap.get()),
        static_cast<void*>(nullptr), reinterpret_cast<void*>(~std::uintptr_t{0})})
    EXPECT_EQ(find_stack(static_cast<std::byte*>(other), true).name, nullptr);
}

TEST(FindStack, finds_memory_of_the_callers_only_if_asked) {
  std::vector<std::byte> memory(20001);
  test::in_process({.memory = memory, .name = "theirs"}, [&] {
    const StackLimits limits = stack_limits();
    EXPECT_EQ(find_stack(limits.low, false).name, nullptr);
    EXPECT_STREQ(find_stack(limits.low, true).name, "theirs");
    EXPECT_STREQ(find_stack(limits.high - 1, true).name, "theirs");
    EXPECT_EQ(find_stack(limits.low - 1, true).name, nullptr);
  });
  EXPECT_EQ(find_stack(memory.data(), true).name, nullptr);
}

TEST(FindStack, finds_none_of_several_in_memory_of_the_callers_after_its_end) {
  std::vector<std::byte> memory(5 * 20000);
  auto part = [&](int i) { return std::span(memory).subspan(std::size_t(i) * 20000, 20000); };
  std::deque<Process> processes(5);
  for (int i = 0; i < 5; ++i)
    newprocess(processes[i], [&](void*) { return Next{processes[0]}; }, {.memory = part(i)})
        .value();
  for (int i : {2, 0, 4, 1, 3}) {
    EXPECT_NE(find_stack(part(i).data(), true).name, nullptr);
    std::destroy_at(&processes[i]);
    std::construct_at(&processes[i]);
    EXPECT_EQ(find_stack(part(i).data(), true).name, nullptr);
  }
}

TEST(FindStack, finds_none_in_what_trim_gave_back) {
  std::byte* low = nullptr;
  test::in_process({.bytes = 1 << 20}, [&] { low = stack_limits().low; });
  EXPECT_NE(find_stack(low, false).name, nullptr);
  trim();
  EXPECT_EQ(find_stack(low, false).name, nullptr);
}

TEST(FindStack, is_right_while_others_reserve_and_give_back) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      for (std::size_t bytes : {16384, 65536, 300000, 1000000})
        test::in_process({.bytes = bytes}, [] {});
      trim();
    }
  });
  int wrong = 0;
  test::in_process({.name = "mine"}, [&] {
    for (int i = 0; i < test::scaled(200000, 5000); ++i) {
      const Found found = find_stack(test::here(), false);
      wrong += found.name == nullptr || std::string_view(found.name) != "mine" ? 1 : 0;
    }
  });
  stop = true;
  other.join();
  EXPECT_EQ(wrong, 0);
}

std::string name_here() {
  return std::string(name_of_stack(test::here()));
}

TEST(NameOfStack, is_the_processs_or_says_what_else_it_is) {
  EXPECT_EQ(name_here(), "no process: a thread's own stack");
  test::in_process([] { EXPECT_EQ(name_here(), "an unnamed process"); });
  test::in_process({.name = "me"}, [] { EXPECT_EQ(name_here(), "me"); });
  test::in_process([] { EXPECT_EQ(name_here(), "an unnamed process"); });
}

} // namespace
} // namespace cede::core
