// SPDX-License-Identifier: MIT
// Field reports: 27 32
// Address space for stacks: guards by each method, give-back, residency.
#include "../../src/os/memory.h"

#include "support/environment.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

namespace cede::os {
namespace {

// Two guarded stretches in one region, as neighbours.
class Memory : public testing::TestWithParam<GuardMethod> {
protected:
  static constexpr std::size_t kBytes = 64 * 1024;

  void SetUp() override {
    if (GetParam() == GuardMethod::advice && detect_guard_method() != GuardMethod::advice)
      GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL";
    set_guard_method(GetParam());
    base = reserve(4 * kBytes);
    ASSERT_NE(base, nullptr);
    ASSERT_FALSE(arm(base, base + kBytes, base + 2 * kBytes));
    ASSERT_FALSE(arm(base + 2 * kBytes, base + 3 * kBytes, base + 4 * kBytes));
  }

  void TearDown() override {
    set_guard_method(GuardMethod::automatic);
    if (base != nullptr)
      unreserve(base, 4 * kBytes);
  }

  static void touch(std::byte* address) { *const_cast<volatile std::byte*>(address) = {}; }

  std::byte* base = nullptr;
};

TEST_P(Memory, every_page_of_a_guard_faults) {
  for (std::size_t offset = 0; offset < kBytes; offset += kBytes / 4) {
    EXPECT_EXIT(touch(base + offset), test::died_of_fault, "") << offset;
    EXPECT_EXIT(touch(base + 2 * kBytes + offset), test::died_of_fault, "") << offset;
  }
}

TEST_P(Memory, last_byte_of_a_guard_faults_and_what_is_next_to_it_does_not) {
  touch(base + kBytes);
  touch(base + 2 * kBytes - 1);
  EXPECT_EXIT(touch(base + kBytes - 1), test::died_of_fault, "");
  EXPECT_EXIT(touch(base + 2 * kBytes), test::died_of_fault, "");
}

TEST_P(Memory, discarded_memory_is_zero_and_usable_and_keeps_its_guard) {
  std::memset(base + kBytes, 7, kBytes);
  discard(base + kBytes, base + 2 * kBytes);
  EXPECT_TRUE(
      std::all_of(base + kBytes, base + 2 * kBytes, [](auto b) { return b == std::byte{}; }));
  touch(base + kBytes);
  EXPECT_EXIT(touch(base + kBytes - 1), test::died_of_fault, "");
}

TEST_P(Memory, first_resident_page_is_found_whatever_the_distance) {
  const std::size_t page = page_bytes();
  std::byte* low = base + kBytes;
  std::byte* high = base + 2 * kBytes - 40; // as the block on top of a stack
  discard(low, base + 2 * kBytes);
  EXPECT_GE(first_resident(low, high), high);
  touch(high - 1);
  EXPECT_EQ(first_resident(low, high), base + 2 * kBytes - page);
  touch(low + 3 * page + 17);
  EXPECT_EQ(first_resident(low, high), low + 3 * page);
  touch(low);
  EXPECT_EQ(first_resident(low, high), low);
}

std::string name_of(const testing::TestParamInfo<GuardMethod>& info) {
  return info.param == GuardMethod::advice       ? "advice"
         : info.param == GuardMethod::protection ? "protection"
                                                 : "automatic";
}

INSTANTIATE_TEST_SUITE_P(Guards, Memory,
                         testing::Values(GuardMethod::automatic, GuardMethod::advice,
                                         GuardMethod::protection),
                         name_of);

TEST(Reserve, more_than_there_is_fails) {
  EXPECT_EQ(reserve(std::size_t{1} << 62), nullptr);
}

TEST(Page, is_a_power_of_two_of_at_least_4096) {
  EXPECT_GE(page_bytes(), 4096u);
  EXPECT_EQ(page_bytes() & (page_bytes() - 1), 0u);
}

} // namespace
} // namespace cede::os
