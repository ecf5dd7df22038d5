// SPDX-License-Identifier: MIT
// Rows: X-35 D-26
// What a scheduler measures of itself: each number moves with its cause, and no other does.
#include <cede/fiber.h>
#include <cede/remote.h>
#include <cede/scheduler.h>

#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <stdexcept>
#include <string>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};
constexpr SchedulerOptions kTimed{.has_test_clock = true, .times_slices = true};

std::uint64_t total(const LatenessHistogram& late) {
  return std::accumulate(late.begin(), late.end(), std::uint64_t{0});
}

// The clock moves while the caller runs, as if it computed for that long.
void compute(Scheduler& scheduler, std::chrono::nanoseconds time) {
  scheduler.advance(time);
}

TEST(Metrics, longest_slice_is_that_of_the_fiber_that_computes) {
  Scheduler scheduler(kTimed);
  for (const char* name : {"quick", "hog", "other"})
    scheduler.spawn(FiberOptions{.name = name}, [&, is_hog = std::string(name) == "hog"] {
      compute(scheduler, 1us);
      yield();
      if (is_hog)
        compute(scheduler, 50ms);
      yield();
    });
  scheduler.run();
  const SchedulerMetrics metrics = scheduler.metrics();
  EXPECT_EQ(metrics.longest_slice, 50ms);
  EXPECT_EQ(metrics.longest_slice_id, 2u);
  EXPECT_STREQ(metrics.longest_slice_name, "hog");
  EXPECT_EQ(metrics.unhandled_errors + metrics.posts_refused + metrics.idle_waits, 0u);
  EXPECT_EQ(total(metrics.late), 0u);
}

TEST(Metrics, slice_ends_at_a_wait_a_yield_and_the_end) {
  const auto longest = [](auto body) {
    Scheduler scheduler(kTimed);
    scheduler.spawn([&] { body(scheduler); });
    scheduler.run();
    return scheduler.metrics().longest_slice;
  };
  const auto twice = [](auto between) {
    return [between](Scheduler& scheduler) {
      compute(scheduler, 5ms);
      between();
      compute(scheduler, 5ms);
    };
  };
  EXPECT_EQ(longest(twice([] {})), 10ms);
  EXPECT_EQ(longest(twice([] { yield(); })), 5ms);
  EXPECT_EQ(longest(twice([] { sleep_for(1h); })), 5ms);
  EXPECT_EQ(longest(twice([] { yield_to(spawn([] {})); })), 5ms);
  EXPECT_EQ(longest([](Scheduler& scheduler) {
              spawn([&] { compute(scheduler, 3ms); });
              compute(scheduler, 2ms);
            }),
            3ms);
}

TEST(Metrics, slices_are_timed_only_if_asked_for) {
  Scheduler scheduler(kTestClock);
  scheduler.spawn([&] { compute(scheduler, 50ms); });
  scheduler.run();
  EXPECT_EQ(scheduler.metrics().longest_slice, 0s);
  EXPECT_EQ(scheduler.metrics().longest_slice_id, 0u);
}

TEST(Metrics, slices_of_those_who_yield_inline_else_are_timed_too) {
  Scheduler scheduler(SchedulerOptions{.times_slices = true});
  scheduler.spawn(FiberOptions{.name = "hog"}, [] {
    yield();
    for (const TimePoint end = now() + 20ms; now() < end;) {
    }
    yield();
  });
  scheduler.spawn([] { yield(); });
  scheduler.run();
  EXPECT_GE(scheduler.metrics().longest_slice, 20ms);
  EXPECT_STREQ(scheduler.metrics().longest_slice_name, "hog");
}

TEST(Metrics, longest_round_is_known_while_there_are_deadlines) {
  Scheduler scheduler(kTestClock);
  const auto hog = [&] {
    yield();
    compute(scheduler, 50ms);
  };
  scheduler.spawn(hog);
  scheduler.run();
  EXPECT_EQ(scheduler.metrics().longest_round, 0s);
  scheduler.spawn([] { sleep_for(1h); });
  scheduler.step();
  scheduler.spawn(hog);
  scheduler.run();
  EXPECT_EQ(scheduler.metrics().longest_round, 50ms);
}

TEST(Metrics, longest_round_counts_neither_sleep_nor_what_the_driver_does) {
  Scheduler scheduler(kTestClock);
  scheduler.spawn([] { sleep_for(1h); });
  for (int i = 0; i < 3; ++i) {
    scheduler.run_until(scheduler.now());
    scheduler.advance(5s);
  }
  scheduler.run();
  EXPECT_EQ(scheduler.metrics().longest_round, 0s);
  EXPECT_EQ(scheduler.metrics().idle_waits, 1u);
}

TEST(Metrics, lateness_is_counted_by_powers_of_two_of_microseconds) {
  Scheduler scheduler(kTestClock);
  const auto late_by = [&](std::chrono::nanoseconds time) {
    scheduler.spawn([] { sleep_for(1ms); });
    scheduler.step();
    scheduler.advance(1ms + time);
    scheduler.run();
  };
  for (const auto time : {0ns, 999ns, 1000ns, 1999ns, 2000ns, 1000000ns, 3600000000000ns})
    late_by(time);
  LatenessHistogram expected{};
  expected[0] = 2;
  expected[1] = 2;
  expected[2] = 1;
  expected[10] = 1;
  expected[23] = 1;
  EXPECT_EQ(scheduler.metrics().late, expected);
}

TEST(Metrics, waits_that_end_otherwise_or_began_too_late_are_not_late) {
  Scheduler scheduler(kTestClock);
  AnyFiber parked = scheduler.spawn([] { park(after(1ms)); });
  scheduler.spawn([&] {
    const Deadline passed = now() - 1ms;
    sleep_for(1us);
    EXPECT_EQ(park(passed), WakeReason::timed_out);
    parked.wake();
  });
  scheduler.run();
  EXPECT_EQ(total(scheduler.metrics().late), 1u); // the sleep
  EXPECT_EQ(scheduler.metrics().late[0], 1u);
}

TEST(Metrics, services_and_idle_waits_count_what_the_pump_does) {
  Scheduler scheduler;
  scheduler.spawn([] {
    for (int i = 0; i < 6400; ++i)
      yield();
  });
  scheduler.run();
  const SchedulerMetrics busy = scheduler.metrics();
  EXPECT_GE(busy.services, 90u);
  EXPECT_LE(busy.services, 110u);
  EXPECT_EQ(busy.idle_waits, 0u);
  scheduler.spawn([] {
    for (int i = 0; i < 3; ++i)
      sleep_for(1ms);
  });
  scheduler.run();
  EXPECT_GE(scheduler.metrics().idle_waits, 3u);
  EXPECT_EQ(scheduler.metrics().longest_slice, 0s);
}

TEST(Metrics, refused_and_waiting_posts_are_counted) {
  Scheduler scheduler(SchedulerOptions{.post_limit = 2, .has_test_clock = true});
  Remote remote = scheduler.remote();
  for (int i = 0; i < 5; ++i)
    std::ignore = remote.post([] {});
  SchedulerMetrics metrics = scheduler.metrics();
  EXPECT_EQ(metrics.posts_waiting, 2u);
  EXPECT_EQ(metrics.posts_refused, 3u);
  EXPECT_EQ(metrics.services + metrics.idle_waits + metrics.spawned, 0u);
  scheduler.run();
  metrics = scheduler.metrics();
  EXPECT_EQ(metrics.posts_waiting, 0u);
  EXPECT_EQ(metrics.posts_refused, 3u);
  EXPECT_EQ(metrics.unhandled_errors, 0u);
}

TEST(Metrics, are_a_line_of_keys_and_values) {
  SchedulerMetrics metrics;
  metrics.alive = 3;
  metrics.longest_round = 1999ns;
  metrics.longest_slice = 50ms;
  metrics.longest_slice_id = 7;
  std::string("a \"\\\n").copy(metrics.longest_slice_name, 31);
  metrics.late[0] = 1;
  metrics.late[22] = 2;
  metrics.late[23] = 4;
  EXPECT_EQ(to_text(metrics),
            "alive=3 stacks=0 deadlines=0 spawned=0 switches=0 services=0 idle_waits=0 "
            "posts_refused=0 posts_waiting=0 unhandled_errors=0 longest_round_us=1 "
            "longest_slice_us=50000 longest_slice_id=7 longest_slice_name=\"a \\\"\\\\?\" "
            "late_below_1us=1 late_below_4194304us=2 late_above_4194304us=4");
}

} // namespace
} // namespace cede
