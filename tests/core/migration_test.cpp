// SPDX-License-Identifier: MIT
// Field reports: 7 8 16 44
// Processes that go from thread to thread, and outlive one.
#include "../../src/core/stack.h"

#include "support/environment.h"
#include "support/in_process.h"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

namespace cede {
namespace {

// Two threads in turn: `turn` says whose it is.
class Turns {
public:
  void wait_for(int mine) {
    while (turn_.load(std::memory_order_acquire) != mine)
      std::this_thread::yield();
  }
  void give_to(int other) { turn_.store(other, std::memory_order_release); }

private:
  std::atomic<int> turn_{0};
};

TEST(Migration, process_bounces_between_two_threads_and_keeps_its_stack) {
  const int bounces = test::scaled(100000, 2000);
  Process worker, slots[2];
  StackLimits limits;
  int wrong = 0, here = 0; // `here`: the thread that resumed last
  newprocess(worker, [&](void*) {
    limits = stack_limits();
    for (int i = 0; i < bounces; ++i) {
      transfer(worker, slots[here]);
      wrong += stack_limits().low == limits.low && stack_limits().high == limits.high ? 0 : 1;
    }
    return Next{slots[here]};
  }).value();
  Turns turns;
  auto drive = [&](int mine) {
    const std::byte* own = stack_limits().low;
    for (int i = mine; i <= bounces; i += 2) {
      turns.wait_for(mine);
      here = mine;
      transfer(slots[mine], worker);
      wrong += stack_limits().low == own ? 0 : 1;
      turns.give_to(1 - mine);
    }
  };
  std::thread other(drive, 1);
  drive(0);
  other.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(worker.state(), Process::State::finished);
}

TEST(Migration, process_left_on_a_thread_that_has_ended_goes_on_elsewhere) {
  Process worker, here;
  Process* resumer = nullptr;
  int steps = 0;
  std::thread([&] {
    auto there = std::make_unique<Process>();
    resumer = there.get();
    newprocess(worker, [&](void*) {
      for (steps = 1; steps < 10; ++steps)
        transfer(worker, *resumer);
      return Next{*resumer};
    }).value();
    transfer(*there, worker);
  }).join();
  EXPECT_EQ(steps, 1);
  resumer = &here;
  while (worker.state() != Process::State::finished)
    transfer(here, worker);
  EXPECT_EQ(steps, 10);
}

TEST(Migration, process_is_destroyed_on_another_thread_and_unwinds_there) {
  bool unwound = false;
  struct Guard {
    bool& flag;
    ~Guard() { flag = true; }
  };
  auto worker = std::make_unique<Process>();
  std::thread([&] {
    Process main;
    newprocess(*worker, [&](void*) {
      Guard guard{unwound};
      transfer(*worker, main);
      return Next{main};
    }).value();
    transfer(main, *worker);
  }).join();
  EXPECT_FALSE(unwound);
  worker.reset();
  EXPECT_TRUE(unwound);
  EXPECT_EQ(core::count_stacks().in_use, 0u);
}

TEST(Migration, exceptions_are_the_processes_on_every_thread) {
  Process worker, main;
  Process* resumer = &main;
  std::string caught;
  newprocess(worker, [&](void*) {
    try {
      throw std::string("thrown here");
    } catch (const std::string&) {
      transfer(worker, *resumer);
      try {
        throw;
      } catch (const std::string& again) {
        caught = again;
      }
    }
    return Next{*resumer};
  }).value();
  transfer(main, worker);
  std::thread([&] {
    Process there;
    resumer = &there;
    transfer(there, worker);
  }).join();
  EXPECT_EQ(caught, "thrown here");
}

} // namespace
} // namespace cede
