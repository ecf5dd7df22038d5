// SPDX-License-Identifier: MIT
// Field reports: 27 29
// What guards cost in mappings, with each of the two ways to make them.
#include "../../src/core/stack.h"
#include "../../src/os/memory.h"

#include "support/environment.h"
#include "support/in_process.h"
#include "support/proc.h"

#include <deque>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#if __has_include(<unistd.h>) && !defined(_WIN32)
#include <cerrno>
#include <unistd.h>
#endif

namespace cede {
namespace {

class GuardMappings : public testing::Test {
protected:
  void force(os::GuardMethod method) {
    trim();
    os::set_guard_method(method);
  }
  void TearDown() override {
    trim();
    os::set_guard_method(os::GuardMethod::automatic);
  }

  // Makes processes until one fails or there are `wanted`; each runs once and parks.
  std::error_code park(std::deque<Process>& workers, std::size_t wanted) {
    while (workers.size() < wanted) {
      Process& worker = workers.emplace_back();
      const Result<void> made = newprocess(worker, [this, &worker](void* word) {
        *static_cast<StackLimits*>(word) = stack_limits();
        transfer(worker, main);
        return Next{main};
      });
      if (!made) {
        workers.pop_back();
        return made.error();
      }
      transfer(main, worker, &limits);
    }
    return {};
  }

  void expect_usable() {
    bool ran = false;
    test::in_process([&] { ran = true; });
    EXPECT_TRUE(ran);
  }

  Process main;
  StackLimits limits; // of the process that was parked last
};

TEST_F(GuardMappings, by_advice_are_none) {
  if (test::kThreadSanitizer)
    GTEST_SKIP() << "the sanitizer maps memory for each process";
  if (os::detect_guard_method() != os::GuardMethod::advice)
    GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL";
  force(os::GuardMethod::advice);
  const std::size_t before = test::count_mappings();
  std::deque<Process> workers;
  EXPECT_FALSE(park(workers, 1000));
  EXPECT_LE(test::count_mappings(), before + (test::is_observed() ? 100 : 20));
}

TEST_F(GuardMappings, by_protection_are_two_a_stack) {
  if (test::kThreadSanitizer)
    GTEST_SKIP() << "the sanitizer maps memory for each process";
  const std::size_t before = test::count_mappings();
  if (before == 0 || os::detect_guard_method() != os::GuardMethod::advice)
    GTEST_SKIP() << "no /proc/self/maps of this program here";
  force(os::GuardMethod::protection);
  std::deque<Process> workers;
  EXPECT_FALSE(park(workers, 1000));
  const std::size_t now = test::count_mappings();
  EXPECT_GE(now, before + 1990);
  EXPECT_LE(now, before + 2030);
}

TEST_F(GuardMappings, that_run_out_are_named_and_all_can_be_destroyed_and_used_again) {
  if (test::is_observed())
    GTEST_SKIP() << "observers need mappings of their own, and much memory for each process";
  force(os::GuardMethod::protection);
  const std::size_t before = test::count_mappings();
  std::deque<Process> workers;
  const std::error_code error = park(workers, 40000);
  if (error) {
#if defined(_WIN32) // knows no such limit, also where it runs on a system that has one
    EXPECT_EQ(error, Errc::no_memory);
#else
    EXPECT_EQ(error, Errc::mapping_limit);
    EXPECT_NE(error.message().find("vm.max_map_count"), std::string::npos);
#endif
    EXPECT_GT(workers.size(), 10000u);
    EXPECT_TRUE(park(workers, workers.size() + 1)); // once more, the same
  }
  workers.clear();
  EXPECT_EQ(core::count_stacks().in_use, 0u);
  expect_usable();
  trim();
  EXPECT_LE(test::count_mappings(), before + 20);
  EXPECT_FALSE(park(workers, 1000));
}

#if !defined(_WIN32)
// The kernel says whether an address can be read, without a fault.
bool faults(const std::byte* address) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const bool refused = write(ends[1], address, 1) < 0 && errno == EFAULT;
  close(ends[0]);
  close(ends[1]);
  return refused;
}

TEST_F(GuardMappings, allow_a_hundred_thousand_stacks_each_with_its_guard) {
  if (os::detect_guard_method() != os::GuardMethod::advice)
    GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL";
  const std::size_t wanted = static_cast<std::size_t>(test::scaled(100000, 2000));
  force(os::GuardMethod::advice);
  std::deque<Process> workers;
  std::vector<StackLimits> all;
  while (workers.size() < wanted) {
    ASSERT_FALSE(park(workers, workers.size() + 1));
    all.push_back(limits);
  }
  EXPECT_EQ(core::count_stacks().in_use, wanted);
  for (std::size_t i = 0; i < wanted; i += 97) {
    EXPECT_TRUE(faults(all[i].low - 1));
    EXPECT_TRUE(faults(all[i].low - 64 * 1024));
    EXPECT_FALSE(faults(all[i].low));
    EXPECT_FALSE(faults(all[i].high));
  }
}

TEST_F(GuardMappings, stay_guards_when_stacks_are_used_again) {
  const std::size_t wanted = 300;
  std::deque<Process> workers;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 1; i <= wanted; ++i) {
      ASSERT_FALSE(park(workers, i));
      EXPECT_TRUE(faults(limits.low - 1));
      EXPECT_TRUE(faults(limits.low - 64 * 1024));
    }
    workers.clear();
    configure_stacks({.idle_stacks = round == 0 ? 0u : 1024u}); // all of them cold once
  }
}
#endif

TEST_F(GuardMappings, are_not_made_of_huge_pages) {
  test::in_process([] {
    const std::string flags = test::mapping_flags(test::here());
    if (flags.empty())
      GTEST_SKIP() << "no /proc/self/smaps of this program here";
    EXPECT_NE(flags.find(" nh "), std::string::npos) << flags;
  });
}

} // namespace
} // namespace cede
