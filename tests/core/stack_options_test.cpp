// SPDX-License-Identifier: MIT
// Field reports: 28 30
// StackOptions: which sizes and memory are taken, what they become, and which are errors.
#include "../../src/core/stack.h"

#include "support/in_process.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <vector>

namespace cede {
namespace {

std::size_t usable_bytes(StackOptions options) {
  std::size_t bytes = 0;
  test::in_process(options, [&] { bytes = stack_limits().remaining(); });
  return bytes;
}

Result<void> try_with(StackOptions options) {
  Process process;
  return newprocess(
      process, [&](void*) { return Next{process}; }, options);
}

TEST(StackOptions, zero_bytes_are_the_default) {
  EXPECT_GT(usable_bytes({}), kDefaultStackBytes - 2048);
}

TEST(StackOptions, bytes_are_usable_and_rounded_up) {
  for (std::size_t bytes : {16384, 16385, 20001, 65535, 65536, 65537, 100000, 1 << 20}) {
    const std::size_t frames = 2048; // of this test's body and of the entry
    EXPECT_GT(usable_bytes({.bytes = bytes}) + frames, bytes) << bytes;
  }
}

TEST(StackOptions, fewer_bytes_than_the_minimum_are_invalid) {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{4096}, kMinimumStackBytes - 1})
    EXPECT_EQ(try_with({.bytes = bytes}).error(), Errc::invalid_argument) << bytes;
}

TEST(StackOptions, more_bytes_than_can_ever_be_are_an_error) {
  constexpr auto kMost = std::numeric_limits<std::size_t>::max();
  for (std::size_t bytes : {kMost, kMost - 4095, kMost / 2 + 1, kMost / 2, std::size_t{1} << 48}) {
    const Result<void> made = try_with({.bytes = bytes});
    ASSERT_FALSE(made) << bytes;
    EXPECT_TRUE(made.error() == Errc::invalid_argument || made.error() == Errc::no_memory) << bytes;
  }
  EXPECT_TRUE(try_with({}));
}

TEST(StackOptions, failure_leaves_the_process_as_it_was) {
  Process main, process;
  ASSERT_FALSE(newprocess(process, [&](void*) { return Next{main}; }, {.bytes = 1}));
  EXPECT_EQ(process.state(), Process::State::empty);
  newprocess(process, [&](void*) { return Next{main}; }).value();
  transfer(main, process);
  EXPECT_EQ(process.state(), Process::State::finished);
}

TEST(StackOptions, memory_of_the_callers_may_have_any_base_and_odd_sizes) {
  for (std::size_t bytes : {16384, 16385, 20001})
    for (std::size_t offset : {0, 1, 8, 15}) {
      std::vector<std::byte> memory(bytes + offset);
      StackLimits limits;
      const StackOptions options{.memory = std::span(memory).subspan(offset)};
      test::in_process(options, [&] { limits = stack_limits(); });
      EXPECT_EQ(limits.low, memory.data() + offset);
      EXPECT_LE(limits.high, memory.data() + memory.size());
    }
}

TEST(StackOptions, too_little_memory_of_the_callers_is_invalid) {
  std::vector<std::byte> memory(kMinimumStackBytes);
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, kMinimumStackBytes - 1})
    EXPECT_EQ(try_with({.memory = std::span(memory).first(bytes)}).error(), Errc::invalid_argument);
  EXPECT_TRUE(try_with({.memory = memory}));
}

TEST(StackOptions, nothing_is_written_outside_memory_of_the_callers) {
  std::vector<std::byte> memory(3 * kMinimumStackBytes, std::byte{0x5a});
  const auto middle = std::span(memory).subspan(kMinimumStackBytes + 1, kMinimumStackBytes);
  test::in_process({.memory = middle}, [] {});
  auto is_untouched = [](std::byte b) { return b == std::byte{0x5a}; };
  EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + kMinimumStackBytes + 1, is_untouched));
  EXPECT_TRUE(std::all_of(memory.end() - kMinimumStackBytes + 1, memory.end(), is_untouched));
}

TEST(StackOptions, memory_of_the_callers_is_theirs_again_afterwards) {
  auto memory = std::make_unique<std::byte[]>(kDefaultStackBytes);
  for (int i = 0; i < 3; ++i) {
    test::in_process({.memory = {memory.get(), kDefaultStackBytes}}, [] {});
    std::fill_n(memory.get(), kDefaultStackBytes, std::byte{1});
  }
  memory.reset();
  EXPECT_EQ(core::count_stacks().in_use, 0u);
}

TEST(StackOptions, null_entry_is_invalid) {
  Process process;
  std::function<Next(void*)> none;
  Next (*null)(void*) = nullptr;
  EXPECT_EQ(newprocess(process, none).error(), Errc::invalid_argument);
  EXPECT_EQ(newprocess(process, null).error(), Errc::invalid_argument);
  EXPECT_EQ(process.state(), Process::State::empty);
}

} // namespace
} // namespace cede
