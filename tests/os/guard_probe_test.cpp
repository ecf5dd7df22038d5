// SPDX-License-Identifier: MIT
// Field reports: 27
// The choice between the two ways to make a guard, on kernels that lie or refuse. Each test runs in
// a child, since the choice is made once.
#include "../../src/os/memory.h"

#include <gtest/gtest.h>

#if !__has_include(<sys/mman.h>)
TEST(GuardProbe, chooses_between_advice_and_protection) {
  GTEST_SKIP() << "there is one way only on this system";
}
#else
#include "support/refusing_kernel.h"

#include <cstdlib>

namespace cede::os {
namespace {

// The kernel itself says whether an address can be read.
bool faults(const std::byte* address) {
  int ends[2];
  if (pipe(ends) != 0)
    std::abort();
  const bool refused = write(ends[1], address, 1) < 0 && errno == EFAULT;
  close(ends[0]);
  close(ends[1]);
  return refused;
}

[[noreturn]] void exit_if(bool met) {
  std::exit(met ? 0 : 1);
}

TEST(GuardProbe, kernel_that_takes_any_advice_is_not_believed) {
  auto child = [] {
    test::kernel.takes_any_advice = true;
    std::byte* base = reserve(2 * page_bytes());
    const bool armed = !arm(base, base + page_bytes(), base + 2 * page_bytes());
    exit_if(armed && detect_guard_method() == GuardMethod::protection && faults(base));
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

TEST(GuardProbe, without_the_advice_guards_are_made_by_protection) {
  auto child = [] {
    test::kernel.grants = 0;
    const bool by_protection = detect_guard_method() == GuardMethod::protection;
    test::kernel = {};
    std::byte* base = reserve(2 * page_bytes());
    const bool armed = !arm(base, base + page_bytes(), base + 2 * page_bytes());
    exit_if(by_protection && armed && faults(base) && !faults(base + page_bytes()));
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

// mlockall does it: guards can't be advised where memory is locked.
TEST(GuardProbe, advice_that_fails_once_is_replaced_by_protection) {
  if (detect_guard_method() != GuardMethod::advice)
    GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL";
  std::byte* base = reserve(2 * page_bytes());
  ASSERT_EQ(mlock(base, 2 * page_bytes()), 0);
  EXPECT_FALSE(arm(base, base + page_bytes(), base + 2 * page_bytes()));
  EXPECT_TRUE(faults(base));
  EXPECT_FALSE(faults(base + page_bytes()));
  unreserve(base, 2 * page_bytes());
}

TEST(GuardProbe, forced_advice_that_fails_says_so) {
  std::byte* base = reserve(2 * page_bytes());
  set_guard_method(GuardMethod::advice);
  {
    const test::Refusal refusal(0);
    EXPECT_EQ(arm(base, base + page_bytes(), base + 2 * page_bytes()),
              std::errc::not_enough_memory);
  }
  EXPECT_FALSE(faults(base));
  set_guard_method(GuardMethod::automatic);
  unreserve(base, 2 * page_bytes());
}

TEST(GuardProbe, protection_that_fails_for_want_of_memory_names_the_mapping_limit) {
  std::byte* base = reserve(2 * page_bytes());
  set_guard_method(GuardMethod::protection);
  {
    const test::Refusal refusal(0);
    EXPECT_EQ(arm(base, base + page_bytes(), base + 2 * page_bytes()), kMappingLimit);
  }
  EXPECT_FALSE(faults(base));
  set_guard_method(GuardMethod::automatic);
  unreserve(base, 2 * page_bytes());
}

} // namespace
} // namespace cede::os
#endif
