// SPDX-License-Identifier: MIT
// Field reports: 30
// Idle stacks: last in first out, bounded, given back by trim(), shared between threads.
#include "../../src/core/stack.h"
#include "../../src/os/memory.h"

#include "support/environment.h"
#include "support/in_process.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace cede {
namespace {

using core::count_stacks;

std::byte* stack_of_next(StackOptions options = {}) {
  std::byte* low = nullptr;
  test::in_process(options, [&] { low = stack_limits().low; });
  return low;
}

void make(std::deque<Process>& processes, std::size_t count, StackOptions options = {}) {
  for (std::size_t i = 0; i < count; ++i) {
    Process& process = processes.emplace_back();
    newprocess(
        process, [&](void*) { return Next{process}; }, options)
        .value();
  }
}

class StackPool : public testing::Test {
protected:
  void SetUp() override { trim(); }
  void TearDown() override {
    processes.clear();
    configure_stacks({});
    trim();
    EXPECT_EQ(count_stacks().in_use + count_stacks().idle + count_stacks().cold, 0u);
  }
  std::deque<Process> processes;
};

TEST_F(StackPool, stack_that_was_released_last_is_taken_first) {
  std::byte* low = stack_of_next();
  EXPECT_EQ(stack_of_next(), low);
  EXPECT_EQ(stack_of_next({.name = "named"}), low);
  EXPECT_NE(stack_of_next({.bytes = 200000}), low);
  EXPECT_EQ(stack_of_next({.bytes = 50000}), low); // the same power of two
}

TEST_F(StackPool, stacks_released_last_stay_hot_when_the_list_is_full) {
  if (test::is_observed())
    GTEST_SKIP() << "there is no hot list under an observer";
  std::vector<std::byte*> lows;
  auto note = [&] {
    return [&](void* main) {
      lows.push_back(stack_limits().low);
      return Next{*static_cast<Process*>(main)};
    };
  };
  Process main;
  for (int i = 0; i < 65; ++i) {
    Process& process = processes.emplace_back();
    newprocess(process, note()).value();
    transfer(main, process, &main);
  }
  while (!processes.empty())
    processes.pop_front();
  for (std::size_t i = 64; i > 40; --i) {
    std::byte* expected = lows[i];
    Process& process = processes.emplace_back();
    newprocess(process, note()).value();
    transfer(main, process, &main);
    EXPECT_EQ(lows.back(), expected) << i;
  }
}

TEST_F(StackPool, idle_stacks_are_bounded_on_the_thread_and_in_the_depot) {
  configure_stacks({.idle_stacks = 100});
  make(processes, 500);
  EXPECT_EQ(count_stacks().in_use, 500u);
  processes.clear();
  EXPECT_EQ(count_stacks().in_use, 0u);
  EXPECT_GE(count_stacks().idle, 100u);
  EXPECT_LE(count_stacks().idle, 164u);
  EXPECT_EQ(count_stacks().idle + count_stacks().cold, 500u);
}

TEST_F(StackPool, lower_bound_takes_effect_at_once) {
  make(processes, 500);
  processes.clear();
  configure_stacks({.idle_stacks = 10});
  EXPECT_LE(count_stacks().idle, 74u);
  configure_stacks({.idle_stacks = 0});
  EXPECT_LE(count_stacks().idle, 64u);
}

TEST_F(StackPool, bound_holds_over_all_sizes) {
  configure_stacks({.idle_stacks = 20});
  for (std::size_t bytes : {16384, 32768, 131072, 262144})
    make(processes, 30, {.bytes = bytes});
  processes.clear();
  EXPECT_EQ(count_stacks().idle, 20u);
  EXPECT_EQ(count_stacks().cold, 100u);
}

TEST_F(StackPool, cold_stacks_are_used_before_new_ones) {
  configure_stacks({.idle_stacks = 0});
  make(processes, 300);
  processes.clear();
  make(processes, 300);
  EXPECT_EQ(count_stacks().cold + count_stacks().idle, 0u);
  processes.clear();
}

TEST_F(StackPool, trim_gives_back_slabs_without_a_stack_in_use_and_only_those) {
  make(processes, 1000);
  std::deque<Process> kept;
  make(kept, 1);
  processes.clear();
  trim();
  EXPECT_EQ(count_stacks().in_use, 1u);
  EXPECT_EQ(count_stacks().idle, 0u);
  kept.clear();
  trim();
  EXPECT_EQ(count_stacks().cold, 0u);
  EXPECT_NE(stack_of_next(), nullptr);
}

TEST_F(StackPool, trim_on_a_process_keeps_what_it_runs_on) {
  test::in_process([&] {
    make(processes, 100);
    processes.clear();
    trim();
    EXPECT_EQ(count_stacks().in_use, 1u);
    test::in_process([] {});
  });
}

TEST_F(StackPool, grows_and_shrinks_again_and_again) {
  for (int round = 0; round < test::scaled(5, 2); ++round) {
    make(processes, 700);
    processes.clear();
    EXPECT_EQ(count_stacks().idle + count_stacks().cold, 700u);
    trim();
    EXPECT_EQ(count_stacks().idle + count_stacks().cold, 0u);
  }
}

TEST_F(StackPool, depth_of_a_stack_in_the_depot_is_given_back) {
  const std::size_t page = os::page_bytes();
  StackLimits limits;
  test::in_process({.bytes = 200000}, [&] {
    limits = stack_limits();
    std::fill(limits.low, limits.low + 100000, std::byte{1});
  });
  EXPECT_EQ(count_stacks().idle, 1u);
  EXPECT_GE(os::first_resident(limits.low, limits.high) + page, limits.high);
}

TEST_F(StackPool, stacks_released_on_another_thread_do_not_pile_up_there) {
  for (int round = 0; round < test::scaled(20, 2); ++round) {
    make(processes, 300);
    std::thread([&] { processes.clear(); }).join();
  }
  EXPECT_EQ(count_stacks().idle + count_stacks().cold, 300u);
}

TEST_F(StackPool, stacks_pass_from_a_thread_that_only_ends_processes_to_one_that_only_makes_them) {
  for (int round = 0; round < test::scaled(50, 3); ++round) {
    make(processes, 100);
    std::thread other([&] { processes.clear(); });
    other.join();
  }
  EXPECT_LE(count_stacks().idle + count_stacks().cold, 200u);
}

TEST_F(StackPool, thread_that_ends_returns_its_idle_stacks) {
  std::thread([&] {
    make(processes, 50);
    processes.clear();
    EXPECT_EQ(count_stacks().idle, 50u);
  }).join();
  EXPECT_EQ(count_stacks().idle, 50u);
  EXPECT_EQ(count_stacks().in_use, 0u);
}

} // namespace
} // namespace cede
