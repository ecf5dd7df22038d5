// SPDX-License-Identifier: MIT
// Rows: D-01 L-05 L-13 L-15 L-16 L-17 L-18 L-20 X-20 X-38 X-41 D-12
// Field reports: 53 56
// Time: deadlines, their order, odd durations, and the test clock.
#include "support/environment.h"

#include <cede/fiber.h>
#include <cede/remote.h>
#include <cede/scheduler.h>
#include <cede/time.h>

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;
using std::chrono::duration;
using std::chrono::nanoseconds;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};
constexpr auto kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr auto kInfinity = std::numeric_limits<double>::infinity();

TEST(Deadline, rounds_up_and_saturates) {
  EXPECT_EQ(detail::nanoseconds_of(duration<double, std::nano>(0.1)), 1);
  EXPECT_EQ(detail::nanoseconds_of(duration<std::int64_t, std::pico>(1001)), 2);
  EXPECT_EQ(detail::nanoseconds_of(duration<std::int64_t, std::pico>(-1001)), -1);
  EXPECT_EQ(detail::nanoseconds_of(5us), 5000);
  EXPECT_EQ(detail::nanoseconds_of(std::chrono::hours::max()), detail::kLastNanosecond);
  EXPECT_EQ(detail::nanoseconds_of(std::chrono::hours::min()), -detail::kLastNanosecond);
  EXPECT_EQ(detail::nanoseconds_of(duration<double>(kInfinity)), detail::kLastNanosecond);
  EXPECT_EQ(detail::nanoseconds_of(duration<float>(-kInfinity)), -detail::kLastNanosecond);
  EXPECT_EQ(detail::nanoseconds_of(duration<double>(kNoNumber)), 0);
}

TEST(Deadline, after_never_wraps) {
  EXPECT_TRUE(after(nanoseconds::max()).is_forever());
  EXPECT_TRUE(after(std::chrono::hours(24 * 365 * 300)).is_forever());
  EXPECT_FALSE(after(std::chrono::milliseconds(std::int64_t{1} << 32)).is_forever());
  EXPECT_LT(after(nanoseconds::min()), after(0s));
  EXPECT_LT(after(duration<double>(-1)).time(), now());
  EXPECT_GE(after(1h).time(), now() + 59min);
  EXPECT_TRUE(Deadline(std::chrono::steady_clock::time_point::max()).is_forever());
}

TEST(Deadline, sleeps_of_no_time_are_one_yield) {
  std::string trace;
  run(kTestClock, [&] {
    auto other = spawn([&] {
      for (int i = 0; i < 6; ++i) {
        trace += ".";
        yield();
      }
    });
    for (auto sleep :
         {+[] { sleep_for(0s); }, +[] { sleep_for(-1h); }, +[] { sleep_for(nanoseconds::min()); },
          +[] { sleep_for(duration<double>(kNoNumber)); }, +[] { sleep_until(now()); }}) {
      trace += "s";
      sleep();
    }
    other.join();
  });
  EXPECT_EQ(trace, "s.s.s.s.s..");
}

TEST(Deadline, sleepers_for_ever_wake_nobody_else_late_and_can_be_cancelled) {
  run(kTestClock, [] {
    std::vector<Fiber<void>> endless;
    for (auto sleep : {+[] { sleep_for(nanoseconds::max()); },
                       +[] { sleep_for(std::chrono::hours(24 * 365 * 300)); },
                       +[] { sleep_for(std::chrono::milliseconds(std::int64_t{1} << 31)); },
                       +[] { sleep_for(std::chrono::milliseconds(std::int64_t{1} << 32)); },
                       +[] { sleep_until(kForever); }})
      endless.push_back(spawn(sleep));
    const TimePoint begin = now();
    sleep_for(5ms);
    EXPECT_EQ(now() - begin, 5ms);
    for (const Fiber<void>& fiber : endless)
      EXPECT_EQ(fiber.state(), FiberState::waiting);
  });
}

TEST(Deadline, equal_ones_fire_in_the_order_they_were_set_also_after_random_removals) {
  std::vector<int> order, expected;
  std::minstd_rand random(7);
  const int count = test::scaled(1000, 100);
  run(kTestClock, [&] {
    const Deadline common = after(1ms);
    std::vector<Fiber<void>> fibers;
    for (int i = 0; i < count; ++i)
      fibers.push_back(spawn([&, i] {
        sleep_until(common);
        order.push_back(i);
      }));
    yield();
    for (int i = 0; i < count; ++i)
      if (random() % 3 == 0)
        fibers[i].cancel();
      else
        expected.push_back(i);
    sleep_until(after(2ms));
  });
  EXPECT_EQ(order, expected);
}

TEST(Deadline, ten_thousand_random_sleeps_are_never_early_and_in_order) {
  TimePoint last{};
  int count = 0;
  const int fibers = test::scaled(1000, 100);
  std::minstd_rand random(11);
  run(kTestClock, [&] {
    for (int i = 0; i < fibers; ++i)
      spawn([&] {
        for (int sleep = 0; sleep < 10; ++sleep) {
          const Deadline deadline = after(nanoseconds(random() % 1'000'000));
          sleep_until(deadline);
          EXPECT_GE(now(), deadline.time());
          EXPECT_GE(now(), last);
          last = now();
          ++count;
        }
      });
    sleep_for(1s);
  });
  EXPECT_EQ(count, 10 * fibers);
}

TEST(Deadline, real_sleeps_are_never_early_and_work_on_a_plain_thread_too) {
  const auto nap = [] {
    const auto begin = std::chrono::steady_clock::now();
    sleep_for(3ms);
    return std::chrono::steady_clock::now() - begin;
  };
  EXPECT_GE(nap(), 3ms);
  EXPECT_GE(run(nap), 3ms);
}

TEST(Deadline, what_can_be_done_now_beats_one_that_has_passed) {
  run(kTestClock, [] {
    current().wake();
    EXPECT_EQ(park(now() - 1s), WakeReason::woken);
    EXPECT_EQ(park(now() - 1s), WakeReason::timed_out);
    auto ended = spawn([] { return 1; });
    yield();
    EXPECT_EQ(ended.join(now() - 1s).value(), 1);
  });
}

TEST(Deadline, a_wake_does_not_end_a_sleep) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    auto sleeper = spawn([] { sleep_for(5ms); });
    yield();
    EXPECT_TRUE(sleeper.wake());
    sleeper.join();
    EXPECT_EQ(now() - begin, 5ms);
  });
}

TEST(TestClock, alfa_sleeps_while_beta_yields) {
  std::string trace;
  run(kTestClock, [&] {
    auto alfa = spawn([&] {
      for (int i = 1; i <= 3; ++i) {
        trace += "alfa" + std::to_string(i) + " ";
        sleep_for(100ms);
      }
    });
    auto beta = spawn([&] {
      for (int i = 1; i <= 5; ++i) {
        trace += "beta" + std::to_string(i) + " ";
        yield();
      }
    });
    alfa.join();
    beta.join();
  });
  EXPECT_EQ(trace, "alfa1 beta1 beta2 beta3 beta4 beta5 alfa2 alfa3 ");
}

TEST(TestClock, posts_fibers_and_deadlines_are_served_by_one_scheduler) {
  std::string trace;
  Scheduler scheduler(kTestClock);
  scheduler.spawn([&] {
    sleep_for(30ms);
    trace += "after(30) ";
  });
  scheduler.spawn([&] {
    sleep_for(10ms);
    trace += "before(10) ";
  });
  scheduler.spawn([&] { trace += "now "; });
  EXPECT_TRUE(scheduler.remote().post([&] { trace += "post "; }));
  scheduler.run();
  EXPECT_EQ(trace, "post now before(10) after(30) ");
}

TEST(TestClock, is_moved_by_hand_too_and_stands_still_otherwise) {
  std::string trace;
  Scheduler scheduler(kTestClock);
  scheduler.spawn([&] {
    sleep_for(10ms);
    trace += "woken";
  });
  scheduler.step();
  EXPECT_EQ(scheduler.step(), Progress::timed_out);
  scheduler.advance(9ms);
  EXPECT_EQ(scheduler.step(), Progress::timed_out);
  scheduler.advance(1ms);
  EXPECT_EQ(scheduler.step(), Progress::worked);
  EXPECT_EQ(trace, "woken");
  EXPECT_DEATH(Scheduler().advance(1ms), "only a test clock can be moved");
}

} // namespace
} // namespace cede
