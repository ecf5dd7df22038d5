// SPDX-License-Identifier: MIT
// Field reports: 30
// How much of a stack was used: to the page always, to the byte with paint.
#include "../../src/os/memory.h"

#include "support/environment.h"
#include "support/in_process.h"

#include <cstring>
#include <gtest/gtest.h>

namespace cede {
namespace {

// Uses `bytes` of the stack below the caller, and a little for itself.
[[gnu::noinline]] void use(std::size_t bytes) {
  auto* frame = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; ++i)
    frame[i] = 1;
}

std::size_t high_water_after(std::size_t bytes, StackOptions options) {
  Process main, worker;
  newprocess(
      worker,
      [&](void*) {
        use(bytes);
        transfer(worker, main);
        return Next{main};
      },
      options)
      .value();
  transfer(main, worker);
  const std::size_t used = stack_high_water(worker);
  transfer(main, worker);
  return used;
}

TEST(HighWater, of_what_has_no_stack_is_zero) {
  Process slot;
  EXPECT_EQ(stack_high_water(slot), 0u);
}

TEST(HighWater, of_a_process_that_never_ran_is_one_page_at_most) {
  trim(); // no earlier owner
  Process process;
  newprocess(process, [&](void*) { return Next{process}; }).value();
  EXPECT_GT(stack_high_water(process), 0u);
  EXPECT_LE(stack_high_water(process), os::page_bytes());
}

TEST(HighWater, is_right_to_the_page) {
  trim();
  const std::size_t page = os::page_bytes();
  const std::size_t used = high_water_after(10 * page, {.bytes = 32 * page});
  EXPECT_GT(used, 10 * page);
  EXPECT_LE(used, 12 * page + (test::is_observed() ? 4 * page : 0));
}

TEST(HighWater, is_right_to_the_byte_with_paint) {
  // Less could be within what the wait itself takes.
  const std::size_t least = high_water_after(4000, {.paint = true}) - 4000;
  EXPECT_LT(least, 3 * 1024u + (test::is_observed() ? 3 * 1024 : 0));
  for (std::size_t bytes : {5000, 10000, 30000}) {
    const std::size_t used = high_water_after(bytes, {.paint = true});
    EXPECT_GE(used, bytes);
    EXPECT_NEAR(static_cast<double>(used), static_cast<double>(least + bytes),
                test::is_observed() ? 256 : 64);
  }
}

TEST(HighWater, of_the_next_owner_does_not_count_what_a_painted_one_used) {
  high_water_after(40000, {.paint = true});
  const std::size_t least = high_water_after(1, {.paint = true});
  EXPECT_LT(least, 6 * 1024u);
}

TEST(HighWater, of_memory_of_the_callers_is_within_it) {
  static std::byte memory[65537];
  EXPECT_LE(high_water_after(20000, {.memory = memory}), sizeof memory);
  EXPECT_GT(high_water_after(20000, {.memory = memory, .paint = true}), 20000u);
  EXPECT_LT(high_water_after(20000, {.memory = memory, .paint = true}), 26000u);
}

} // namespace
} // namespace cede
