// SPDX-License-Identifier: MIT
// Rows: D-15
// Field reports: 22
// Unwinders end at the entry of a process, whatever lies on the stack behind it.
#include "../../arch/arch.h"
#include "support/frames.h"

#include <cede/process.h>

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string_view>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif

namespace cede::test {
namespace {

// The fallback starts processes by makecontext.
constexpr bool kHasOwnEntry = std::string_view(CEDE_TARGET) == "generic-ucontext";

// More than cede_entry has on any target.
constexpr std::size_t kEntryBytes = 128;

void expect_end_at_entry(const std::vector<std::uintptr_t>& ips) {
  ASSERT_GE(ips.size(), 2u);
  EXPECT_LE(ips.size(), 8u);
  EXPECT_TRUE(is_return_into(ips.back(), cede_entry, kEntryBytes))
      << std::hex << ips.back() << " is not in the entry at "
      << reinterpret_cast<std::uintptr_t>(cede_entry);
}

CEDE_NOINLINE void expect_backtrace_to_end() {
  const Backtrace trace = backtrace_here();
  EXPECT_EQ(trace.reason, _URC_END_OF_STACK);
  expect_end_at_entry(trace.ips);
}

// This file is compiled with frame pointers, and so is what it instantiates: every function between
// here and the entry.
[[maybe_unused]] CEDE_NOINLINE void expect_frame_pointers_to_end() {
  const StackLimits limits = stack_limits();
  auto* frame = static_cast<std::byte**>(__builtin_frame_address(0));
  int frames = 0;
  while (frame != nullptr) {
    const auto* at = reinterpret_cast<std::byte*>(frame);
    ASSERT_TRUE(at >= limits.low && at < limits.high) << "a frame off the stack";
    auto* next = reinterpret_cast<std::byte**>(*frame);
    ASSERT_TRUE(next == nullptr || next > frame) << "a frame that goes down";
    frame = next;
    ++frames;
  }
  EXPECT_GE(frames, 2);
  EXPECT_LE(frames, 8);
}

// Runs `look` in a process on a stack full of what looks like return addresses and frames.
void run_on_dirt(void (*look)()) {
  constexpr std::size_t kBytes = 64 * 1024;
  auto memory = std::make_unique<std::byte[]>(kBytes);
  auto* words = reinterpret_cast<void**>(memory.get());
  for (std::size_t i = 0; i < kBytes / sizeof(void*); ++i)
    words[i] = i % 2 == 0 ? reinterpret_cast<void*>(reinterpret_cast<char*>(cede_switch) + 4)
                          : static_cast<void*>(words + i + 1);
  Process main, worker;
  StackOptions options;
  options.memory = {memory.get(), kBytes};
  newprocess(
      worker,
      [&](void*) {
        look();
        return Next{main};
      },
      options)
      .value();
  transfer(main, worker);
  EXPECT_EQ(worker.state(), Process::State::finished);
}

// The same on a stack whose last owner has left such things.
void run_on_recycled(void (*look)()) {
  Process main, dirty, worker;
  newprocess(dirty, [&](void*) {
    void* volatile words[2000];
    for (std::size_t i = 0; i < std::size(words); ++i)
      words[i] = i % 2 == 0 ? reinterpret_cast<char*>(cede_switch) + 4
                            : reinterpret_cast<char*>(const_cast<void**>(&words[i]) + 1);
    return Next{main};
  }).value();
  transfer(main, dirty);
  const detail::Stack* stack = execution_of(dirty).stack;
  auto entry = [&](void*) {
    look();
    return Next{main};
  };
  newprocess(dirty, entry).value();
  EXPECT_EQ(execution_of(dirty).stack, stack);
  transfer(main, dirty);
}

TEST(Unwinder, ends_at_the_entry_on_any_stack) {
  if (kHasOwnEntry)
    GTEST_SKIP() << "there the C library's own entry ends the stack";
  run_on_dirt(expect_backtrace_to_end);
  run_on_recycled(expect_backtrace_to_end);
}

TEST(Unwinder, ends_at_the_entry_after_a_switch_of_each_form) {
  if (kHasOwnEntry)
    GTEST_SKIP() << "there the C library's own entry ends the stack";
  Process main, worker;
  newprocess(worker, [&](void*) {
    transfer(worker, main);
    expect_backtrace_to_end();
    try {
      throw 1;
    } catch (int) {
      transfer(worker, main); // never inlined in a catch block
      expect_backtrace_to_end();
    }
    return Next{main};
  }).value();
  for (int i = 0; i < 3; ++i)
    transfer(main, worker);
  EXPECT_EQ(worker.state(), Process::State::finished);
}

TEST(Unwinder, of_who_transferred_to_a_process_does_not_see_it) {
  Process main, worker;
  const std::size_t before = backtrace_here().ips.size();
  std::size_t within = 0;
  newprocess(worker, [&](void*) {
    within = backtrace_here().ips.size();
    return Next{main};
  }).value();
  transfer(main, worker);
  EXPECT_EQ(backtrace_here().ips.size(), before);
  EXPECT_LT(within, before);
}

#if defined(__linux__)
TEST(FramePointers, end_at_the_entry_on_any_stack) {
  if (kHasOwnEntry)
    GTEST_SKIP() << "there the C library's own entry ends the stack";
  run_on_dirt(expect_frame_pointers_to_end);
  run_on_recycled(expect_frame_pointers_to_end);
}
#endif

#if __has_include(<execinfo.h>)
CEDE_NOINLINE void expect_libc_backtrace_to_end() {
  void* addresses[200];
  const int count = backtrace(addresses, 200);
  std::vector<std::uintptr_t> ips;
  for (int i = 0; i < count; ++i)
    ips.push_back(reinterpret_cast<std::uintptr_t>(addresses[i]));
  expect_end_at_entry(ips);
}

TEST(LibcBacktrace, ends_at_the_entry_on_any_stack) {
  if (kHasOwnEntry)
    GTEST_SKIP() << "there the C library's own entry ends the stack";
  run_on_dirt(expect_libc_backtrace_to_end);
  run_on_recycled(expect_libc_backtrace_to_end);
}
#endif

} // namespace
} // namespace cede::test
