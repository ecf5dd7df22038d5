// SPDX-License-Identifier: MIT
// Field reports: 29 30 35
// Resident memory after a peak, and over many waves and cycles.
#include "../../src/core/stack.h"

#include "support/environment.h"
#include "support/in_process.h"
#include "support/proc.h"

#include <deque>
#include <gtest/gtest.h>

namespace cede {
namespace {

constexpr std::size_t kMegabyte = 1024 * 1024;

[[gnu::noinline]] void touch(std::size_t bytes) {
  auto* frame = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 1024)
    frame[i] = 1;
}

// All of them live at once, each 200 KB deep at one time.
void wave(int count) {
  Process main;
  std::deque<Process> workers;
  for (int i = 0; i < count; ++i) {
    Process& worker = workers.emplace_back();
    newprocess(worker, [&](void*) { return touch(200000), transfer(worker, main), Next{main}; },
               {.bytes = 256 * 1024})
        .value();
    transfer(main, worker);
  }
  for (Process& worker : workers)
    transfer(main, worker);
}

class MemoryPeak : public testing::Test {
protected:
  void SetUp() override {
    if (test::resident_bytes() == 0 || test::is_observed())
      GTEST_SKIP() << "resident memory isn't known here, or is an observer's";
    wave(10); // what is allocated once
    trim();
    before = test::resident_bytes();
  }
  std::size_t before = 0;
};

TEST_F(MemoryPeak, falls_back_by_trim) {
  wave(1000);
  trim();
  EXPECT_LT(test::resident_bytes(), before + before / 10 + kMegabyte);
}

TEST_F(MemoryPeak, without_trim_is_bounded_by_the_idle_limit) {
  wave(1000);
  const std::size_t depot = core::settings().idle_stacks * 2 * 4096;
  EXPECT_LT(test::resident_bytes(), before + before / 10 + depot + kMegabyte);
  trim();
}

TEST_F(MemoryPeak, does_not_grow_over_waves) {
  wave(1000);
  const std::size_t first = test::resident_bytes();
  for (int i = 0; i < 5; ++i)
    wave(1000);
  EXPECT_LT(test::resident_bytes(), first + kMegabyte);
  trim();
  EXPECT_LT(test::resident_bytes(), before + before / 10 + kMegabyte);
}

TEST_F(MemoryPeak, parked_process_touches_one_page) {
  const std::size_t count = 1000;
  Process main;
  std::deque<Process> workers;
  const std::size_t start = test::resident_bytes();
  for (std::size_t i = 0; i < count; ++i) {
    Process& worker = workers.emplace_back();
    newprocess(worker, [&](void*) { return transfer(worker, main), Next{main}; },
               {.bytes = 256 * 1024})
        .value();
    transfer(main, worker);
  }
  EXPECT_LT(test::resident_bytes(), start + count * 5000 + kMegabyte);
}

TEST(ManyCycles, do_not_grow) {
  auto cycles = [](int count) {
    for (int i = 0; i < count; ++i)
      test::in_process({.name = i % 3 == 0 ? "named" : ""}, [] { touch(3000); });
  };
  cycles(test::scaled(1000, 300));
  const std::size_t before = test::resident_bytes();
  cycles(test::scaled(10000, 2000));
  EXPECT_LT(test::resident_bytes(), before + (test::is_observed() ? 24 : 1) * kMegabyte);
  EXPECT_EQ(core::count_stacks().in_use, 0u);
}

} // namespace
} // namespace cede
