// SPDX-License-Identifier: MIT
// Field reports: 35
// What sanitizers and valgrind are told: they find real errors in processes, and no others.
#include "../../src/core/sanitizers.h"
#include "../../src/core/stack.h"

#include "support/environment.h"
#include "support/in_process.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

namespace cede {
namespace {

TEST(Observers, are_found_if_and_only_if_they_are_there) {
  EXPECT_EQ(core::are_switches_observed(), test::kAddressSanitizer || test::kThreadSanitizer);
  EXPECT_EQ(core::are_processes_observed(), test::is_observed());
}

// Leaves redzones of every depth behind, since it never returns.
[[gnu::noinline]] int leave_frames(Process& self, Process& main, int depth) {
  volatile char redzones_around[100];
  redzones_around[depth] = 1;
  if (depth > 0)
    redzones_around[0] = static_cast<char>(leave_frames(self, main, depth - 1));
  else
    transfer(self, main);
  return redzones_around[depth];
}

TEST(Observers, forget_the_frames_of_earlier_owners_of_a_stack) {
  Process main;
  for (std::size_t bytes : {std::size_t{0}, std::size_t{200000}})
    for (int i = 0; i < 20; ++i) {
      Process worker;
      newprocess(worker, [&](void*) { return leave_frames(worker, main, 40), Next{main}; },
                 {.bytes = bytes, .paint = i % 2 == 1})
          .value();
      transfer(main, worker);
      EXPECT_GT(stack_high_water(worker), 1000u);
    }
}

TEST(Observers, forget_the_frames_on_memory_that_is_the_callers_again) {
  std::vector<std::byte> memory(kDefaultStackBytes);
  Process main;
  for (int i = 0; i < 3; ++i) {
    {
      Process worker;
      newprocess(worker, [&](void*) { return leave_frames(worker, main, 40), Next{main}; },
                 {.memory = memory})
          .value();
      transfer(main, worker);
    }
    std::memset(memory.data(), i, memory.size());
    EXPECT_EQ(memory[memory.size() / 2], std::byte(i));
  }
}

TEST(Observers, follow_throws_on_interleaved_processes) {
  Process main;
  std::deque<Process> workers;
  int caught = 0;
  for (int i = 0; i < 10; ++i) {
    Process& worker = workers.emplace_back();
    newprocess(worker, [&](void*) {
      for (int turn = 0; turn < 10; ++turn)
        try {
          transfer(worker, main);
          throw turn;
        } catch (int) {
          transfer(worker, main);
          ++caught;
        }
      return Next{main};
    }).value();
  }
  for (int turn = 0; turn < 21; ++turn)
    for (Process& worker : workers)
      transfer(main, worker);
  EXPECT_EQ(caught, 100);
}

TEST(Observers, follow_a_process_that_nests_others) {
  int depth = 0;
  auto nest = [&](auto& self) -> void {
    if (++depth < 5)
      test::in_process([&] { self(self); });
    char local[1000];
    std::memset(local, depth, sizeof local);
    EXPECT_EQ(local[999], depth);
  };
  nest(nest);
  EXPECT_EQ(depth, 5);
}

#if CEDE_TEST_HAS_FEATURE(leak_sanitizer) || CEDE_TEST_HAS_FEATURE(address_sanitizer) ||           \
    defined(__SANITIZE_ADDRESS__)
extern "C" int __lsan_do_recoverable_leak_check();

TEST(Observers, know_that_a_suspended_process_refers_to_memory) {
  Process main, worker;
  newprocess(worker, [&](void*) {
    auto held = std::make_unique<std::vector<int>>(1000);
    transfer(worker, main);
    held->clear();
    return Next{main};
  }).value();
  transfer(main, worker);
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
  transfer(main, worker);
}

TEST(Observers, find_an_array_that_overflows_in_a_process) {
  auto child = [] {
    test::in_process([] {
      volatile char array[16] = {};
      volatile std::size_t past = 16;
      array[past] = 1;
      std::exit(array[0]);
    });
  };
  EXPECT_DEATH(child(), "stack-buffer-overflow|index 16 out of bounds");
}
#endif

#if CEDE_TEST_HAS_FEATURE(thread_sanitizer) || defined(__SANITIZE_THREAD__)
TEST(Observers, find_a_race_between_processes_on_two_threads) {
  // One access after the other, for two at the very same time may escape the sanitizer; what tells
  // the second of the first is relaxed, so it orders nothing.
  auto child = [] {
    static int shared = 0;
    static std::atomic<bool> is_written{false};
    std::thread other([] {
      test::in_process([] {
        ++shared;
        is_written.store(true, std::memory_order_relaxed);
      });
    });
    test::in_process([] {
      while (!is_written.load(std::memory_order_relaxed)) {
      }
      ++shared;
    });
    other.join();
  };
  EXPECT_DEATH((child(), std::exit(1)), "data race");
}

TEST(Observers, see_a_switch_as_an_order) {
  Process main, worker;
  int shared = 0;
  newprocess(worker, [&](void*) {
    for (int i = 0; i < 100; ++i) {
      ++shared;
      transfer(worker, main);
    }
    return Next{main};
  }).value();
  for (int i = 0; i < 101; ++i) {
    transfer(main, worker);
    ++shared;
  }
  EXPECT_EQ(shared, 201);
}
#endif

} // namespace
} // namespace cede
