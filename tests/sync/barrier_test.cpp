// SPDX-License-Identifier: MIT
// Field reports: 46 49
// Latches, wait groups and barriers.
#include <cede/barrier.h>
#include <cede/fiber.h>
#include <cede/scheduler.h>

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

TEST(Latch, lets_everybody_go_at_zero_and_from_then_on) {
  std::string trace;
  run(kTestClock, [&] {
    Latch latch(2);
    for (const char* name : {"a", "b"})
      spawn([&, name] {
        latch.wait();
        trace += name;
      });
    yield();
    EXPECT_EQ(latch.wait(after(1ms)).error(), Errc::timed_out);
    latch.count_down();
    yield();
    EXPECT_EQ(trace, "");
    EXPECT_FALSE(latch.try_wait());
    EXPECT_THROW(latch.count_down(2), std::system_error);
    EXPECT_THROW(latch.count_down(-1), std::system_error);
    latch.arrive_and_wait();
    EXPECT_TRUE(latch.try_wait());
    latch.wait();
    yield();
  });
  EXPECT_EQ(trace, "ab");
  EXPECT_THROW(Latch(-1), std::system_error);
}

TEST(Latch, is_counted_down_by_several_at_once) {
  Latch latch(5);
  latch.count_down(0);
  latch.count_down(3);
  EXPECT_FALSE(latch.try_wait());
  EXPECT_THROW(latch.count_down(3), std::system_error);
  latch.arrive_and_wait(2); // nothing to wait for, so a plain thread may
  EXPECT_TRUE(latch.try_wait());
}

TEST(WaitGroup, lets_all_who_wait_go_when_the_last_of_several_is_done) {
  std::string trace;
  run([&] {
    WaitGroup group;
    group.add(3);
    EXPECT_EQ(group.count(), 3);
    for (const char* name : {"a", "b", "c"})
      spawn([&, name] {
        group.wait();
        trace += name;
      });
    yield();
    EXPECT_EQ(group.waiters(), 3u);
    group.add(-2);
    EXPECT_THROW(group.add(-2), std::system_error);
    yield();
    EXPECT_EQ(trace, "");
    group.done();
    yield();
    EXPECT_TRUE(group.wait(after(-1ns)));
  });
  EXPECT_EQ(trace, "abc");
}

TEST(WaitGroup, waits_for_what_is_under_way_also_if_more_is_added) {
  run(kTestClock, [] {
    WaitGroup group;
    group.wait();
    EXPECT_THROW(group.done(), std::system_error);
    group.add(2);
    bool has_gone = false;
    auto waiter = spawn([&] {
      group.wait();
      has_gone = true;
    });
    yield();
    group.done();
    group.add();
    group.done();
    yield();
    EXPECT_FALSE(has_gone);
    EXPECT_EQ(group.wait(after(1ms)).error(), Errc::timed_out);
    group.done();
    group.add(); // those who were let go stay so
    waiter.join();
    EXPECT_TRUE(has_gone);
    EXPECT_FALSE(group.try_wait());
    group.done();
  });
}

TEST(Barrier, keeps_phases_apart) {
  constexpr int kFibers = 5, kPhases = 20;
  run([&] {
    int phases = 0, arrived = 0;
    Barrier barrier(kFibers, [&] {
      EXPECT_EQ(arrived, kFibers);
      arrived = 0;
      ++phases;
    });
    std::vector<Fiber<void>> fibers;
    for (int i = 0; i < kFibers; ++i)
      fibers.push_back(spawn([&, i] {
        for (int phase = 0; phase < kPhases; ++phase) {
          for (int turn = 0; turn < (i * phase) % 3; ++turn)
            yield();
          EXPECT_EQ(phases, phase);
          ++arrived;
          barrier.arrive_and_wait();
        }
      }));
    for (auto& fiber : fibers)
      fiber.join();
    EXPECT_EQ(phases, kPhases);
  });
}

TEST(Barrier, goes_on_without_who_drops_out_or_is_cancelled) {
  run(kTestClock, [] {
    Barrier barrier(3);
    auto dropped = spawn([&] { barrier.arrive_and_drop(); });
    auto cancelled = spawn([&] { barrier.arrive_and_wait(); });
    yield();
    cancelled.cancel(); // it has arrived
    barrier.arrive_and_wait();
    EXPECT_EQ(cancelled.join(kForever).error(), Errc::cancelled);
    const Barrier::Arrival early = barrier.arrive();
    EXPECT_EQ(barrier.wait(early, after(1ms)).error(), Errc::timed_out);
    std::ignore = barrier.arrive();
    barrier.wait(early);
    EXPECT_THROW(std::ignore = barrier.arrive(3), std::system_error);
  });
  EXPECT_THROW(Barrier(0), std::system_error);
}

TEST(Barrier, several_arrive_at_once_and_what_is_past_stays_so) {
  Barrier barrier(3);
  const Barrier::Arrival first = barrier.arrive(2);
  EXPECT_THROW(std::ignore = barrier.arrive(-1), std::system_error);
  EXPECT_THROW(std::ignore = barrier.arrive(2), std::system_error);
  EXPECT_EQ(barrier.wait(first, kForever).error(), Errc::not_a_fiber);
  const Barrier::Arrival last = barrier.arrive();
  barrier.wait(last); // nothing to wait for, so a plain thread may
  for (int phase = 1; phase < 4; ++phase)
    barrier.wait(barrier.arrive(3));
  barrier.wait(first);
}

template <class Object, class Wait>
void expect_closed(Object* object, Wait wait) {
  std::unique_ptr<Object> owned(object);
  run([&] {
    int closed = 0;
    for (int i = 0; i < 3; ++i)
      spawn([&] { closed += wait(*object).error() == Errc::closed ? 1 : 0; });
    yield();
    owned.reset();
    yield();
    EXPECT_EQ(closed, 3);
  });
}

TEST(Barrier, that_ends_wakes_who_waits_with_closed) {
  expect_closed(new Latch(1), [](Latch& latch) { return latch.wait(kForever); });
  auto* group = new WaitGroup;
  group->add();
  expect_closed(group, [](WaitGroup& it) { return it.wait(kForever); });
  expect_closed(new Barrier(9),
                [](Barrier& barrier) { return barrier.wait(barrier.arrive(), kForever); });
}

} // namespace
} // namespace cede
