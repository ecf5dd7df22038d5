// SPDX-License-Identifier: MIT
// Field reports: 28
// Fibers for which no stack can be had.
#include <cede/fiber.h>
#include <cede/scheduler.h>

#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

namespace cede {
namespace {

// No system has as much.
constexpr FiberOptions kHuge{.stack = {.bytes = std::size_t{1} << 62}};

TEST(Starved, one_that_is_joined_by_the_only_fiber_ends_with_no_memory) {
  bool ran = false;
  run([&] {
    Fiber<void> starved = spawn(kHuge, [&] { ran = true; });
    EXPECT_EQ(AnyFiber(starved).join().error(), Errc::no_memory);
  });
  EXPECT_FALSE(ran);
}

TEST(Starved, several_end_when_nobody_is_left_whose_stack_could_serve) {
  std::vector<Fiber<void>> starved;
  Scheduler scheduler;
  scheduler.spawn([&] {
    for (int i = 0; i < 3; ++i)
      starved.push_back(spawn(kHuge, [] {}));
    yield();
    starved[2].cancel();
  });
  scheduler.run();
  EXPECT_EQ(AnyFiber(starved[0]).join().error(), Errc::no_memory);
  EXPECT_EQ(AnyFiber(starved[1]).join().error(), Errc::no_memory);
  EXPECT_EQ(AnyFiber(starved[2]).join().error(), Errc::cancelled);
}

TEST(Starved, ones_keep_their_place_whatever_their_priority_becomes) {
  run([&] {
    Fiber<void> first = spawn(kHuge, [] {}), second = spawn(kHuge, [] {});
    yield();
    first.set_priority(2);
    second.set_priority(kPriorityMin);
    EXPECT_EQ(AnyFiber(first).join().error(), Errc::no_memory);
    EXPECT_EQ(AnyFiber(second).join().error(), Errc::no_memory);
    EXPECT_EQ(first.priority(), 2);
  });
}

TEST(Starved, one_is_ended_by_a_step_too) {
  Scheduler scheduler;
  scheduler.spawn([&] {
    Fiber<void> starved = spawn(kHuge, [] {});
    EXPECT_EQ(AnyFiber(starved).join().error(), Errc::no_memory);
  });
  int steps = 0;
  while (scheduler.alive() > 0 && ++steps < 10)
    EXPECT_EQ(scheduler.step(), Progress::worked);
  EXPECT_EQ(scheduler.alive(), 0u);
}

TEST(Starved, one_that_is_closed_with_its_scheduler_ends) {
  bool ran = false;
  run([&] {
    spawn(kHuge, [&] { ran = true; });
    spawn(kHuge, [&] { ran = true; });
    yield();
  });
  EXPECT_FALSE(ran);
}

} // namespace
} // namespace cede
