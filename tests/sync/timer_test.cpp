// SPDX-License-Identifier: MIT
// Rows: P-71 P-72 P-73 P-87
// Timers; and how one callback becomes a wait.
#include <cede/cancel.h>
#include <cede/event.h>
#include <cede/fiber.h>
#include <cede/scheduler.h>
#include <cede/select.h>
#include <cede/timer.h>

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

std::error_code error_of(const Result<TimerEvent>& event) {
  return event ? std::error_code() : event.error();
}

// How many of them, and how long after the beginning the last was due, in milliseconds.
std::string text_of(const Result<TimerEvent>& event, TimePoint begin) {
  return std::to_string(event.value().hits) + "@" + std::to_string((event->due - begin) / 1ms);
}

TEST(Timer, expires_once_without_an_interval) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms});
    EXPECT_EQ(timer.due(), Deadline(begin + 10ms));
    EXPECT_EQ(text_of(timer.next(), begin), "1@10");
    EXPECT_EQ(now(), begin + 10ms);
    EXPECT_EQ(error_of(timer.next()), Errc::closed);
    EXPECT_TRUE(timer.due().is_forever());
  });
}

TEST(Timer, that_is_hard_does_not_drift) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms, .interval = 10ms, .hard = true});
    for (const char* expected : {"1@10", "1@20", "1@30"}) {
      EXPECT_EQ(text_of(timer.next(), begin), expected);
      sleep_for(7ms);
    }
    EXPECT_EQ(now(), begin + 37ms);
  });
}

TEST(Timer, that_is_hard_counts_what_nobody_asked_for) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms, .interval = 10ms, .hard = true});
    sleep_for(45ms);
    EXPECT_EQ(text_of(timer.next(), begin), "4@40");
    EXPECT_EQ(now(), begin + 45ms);
    EXPECT_EQ(text_of(timer.next(), begin), "1@50");
    sleep_for(10ms);
    EXPECT_EQ(text_of(timer.next(), begin), "1@60"); // just due
  });
}

TEST(Timer, that_is_soft_counts_from_when_it_was_given) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms, .interval = 10ms});
    EXPECT_EQ(text_of(timer.next(), begin), "1@10");
    sleep_for(35ms); // until 45
    EXPECT_EQ(text_of(timer.next(), begin), "1@20");
    EXPECT_EQ(now(), begin + 45ms);
    EXPECT_EQ(text_of(timer.next(), begin), "1@55");
  });
}

TEST(Timer, keeps_an_early_expiry_whatever_the_deadline) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms});
    sleep_for(20ms);
    EXPECT_EQ(text_of(timer.next(now() - 5ms), begin), "1@10");
  });
}

TEST(Timer, does_nothing_while_nobody_waits) {
  Scheduler scheduler(kTestClock);
  auto fiber = scheduler.spawn([&] {
    const Timer timer({.after = 1ns, .interval = 1ns, .hard = true});
    EXPECT_EQ(scheduler.metrics().deadlines, 0u);
    sleep_for(10s);
  });
  scheduler.run();
  EXPECT_LE(scheduler.metrics().idle_waits, 1u);
}

TEST(Timer, counts_many_expiries_at_once) {
  run(kTestClock, [] {
    Timer timer({.after = 0ns, .interval = 1ns, .hard = true});
    sleep_for(24h);
    EXPECT_EQ(timer.next().value().hits, 86'400'000'000'001u);
  });
}

TEST(Timer, has_an_end_of_time) {
  run(kTestClock, [] {
    Timer never({.after = std::chrono::nanoseconds::max()});
    EXPECT_TRUE(never.due().is_forever());
    EXPECT_EQ(error_of(never.next()), Errc::closed);
    Timer once({.after = 0ns, .interval = std::chrono::nanoseconds::max(), .hard = true});
    EXPECT_EQ(once.next().value().hits, 1u);
    EXPECT_EQ(error_of(once.next()), Errc::closed);
    Timer negative({.after = -5ns, .interval = -5ns});
    EXPECT_EQ(negative.due(), Deadline(now()));
    EXPECT_EQ(negative.next().value().hits, 1u);
    EXPECT_EQ(error_of(negative.next()), Errc::closed);
  });
}

TEST(Timer, is_waited_for_by_one) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms, .interval = 10ms});
    auto other = spawn([&] { return timer.next(); });
    yield();
    EXPECT_EQ(error_of(timer.next()), Errc::busy);
    EXPECT_EQ(text_of(other.join(), begin), "1@10");
    EXPECT_EQ(text_of(timer.next(), begin), "1@20");
  });
}

TEST(Timer, has_a_deadline_and_loses_nothing_by_it) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms});
    EXPECT_EQ(error_of(timer.next(after(4ms))), Errc::timed_out);
    EXPECT_EQ(now(), begin + 4ms);
    EXPECT_EQ(text_of(timer.next(begin + 10ms), begin), "1@10"); // both at once: it expires
  });
}

TEST(Timer, that_is_due_when_a_deadline_is_heard_of_beats_it) {
  Scheduler scheduler(kTestClock);
  const TimePoint begin = scheduler.now();
  Timer timer({.after = 1ms});
  std::string text;
  auto fiber = scheduler.spawn([&] {
    timer.start({.after = 10ms});
    text = text_of(timer.next(after(5ms)), begin);
  });
  EXPECT_EQ(scheduler.step(), Progress::worked);
  scheduler.advance(20ms);
  scheduler.run();
  EXPECT_EQ(text, "1@10");
}

TEST(Timer, of_a_cancelled_fiber_is_there_for_the_next) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms});
    auto other = spawn([&] { std::ignore = timer.next(); });
    yield();
    other.cancel();
    EXPECT_EQ(other.AnyFiber::join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(text_of(timer.next(), begin), "1@10");
  });
}

TEST(Timer, that_is_cancelled_wakes_who_waits) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms});
    auto other = spawn([&] { return timer.next(); });
    yield();
    timer.cancel();
    EXPECT_EQ(error_of(other.join()), Errc::closed);
    EXPECT_EQ(now(), begin);
    EXPECT_EQ(error_of(timer.next()), Errc::closed);
  });
}

TEST(Timer, that_is_cancelled_drops_what_was_kept) {
  run(kTestClock, [] {
    Timer timer({.after = 10ms, .interval = 10ms});
    sleep_for(20ms);
    timer.cancel();
    EXPECT_EQ(error_of(timer.next()), Errc::closed);
  });
}

// What a service has delivered is the waiting fiber's.
TEST(Timer, that_is_cancelled_or_gone_after_its_expiry_was_delivered_has_expired) {
  for (const bool is_gone : {false, true})
    run(kTestClock, [=] {
      const TimePoint begin = now();
      auto timer = std::make_unique<Timer>(TimerOptions{.after = 10ms});
      auto first = spawn([&] {
        sleep_for(10ms); // its deadline was set before the timer's
        if (is_gone)
          timer.reset();
        else
          timer->cancel();
      });
      yield();
      auto other = spawn([&it = *timer] { return it.next(); });
      EXPECT_EQ(text_of(other.join(), begin), "1@10");
    });
}

TEST(Timer, that_is_gone_wakes_who_waits) {
  run(kTestClock, [] {
    auto timer = std::make_unique<Timer>(TimerOptions{.after = 10ms});
    auto other = spawn([&it = *timer] { return it.next(); });
    yield();
    timer->start({.after = 20ms}); // it is woken for that, and then the timer is gone
    timer.reset();
    EXPECT_EQ(error_of(other.join()), Errc::closed);
  });
}

TEST(Timer, that_is_started_anew_is_waited_for_anew) {
  run(kTestClock, [] {
    const TimePoint begin = now();
    Timer timer({.after = 10ms});
    auto other = spawn([&] { return timer.next(); });
    yield();
    timer.start({.after = 30ms, .interval = 5ms});
    EXPECT_EQ(text_of(other.join(), begin), "1@30");
    EXPECT_EQ(text_of(timer.next(), begin), "1@35");
    timer.cancel();
    timer.start({.after = 1ms});
    EXPECT_EQ(text_of(timer.next(), begin), "1@36");
  });
}

TEST(Timer, gives_events_that_stay_as_they_are) {
  run(kTestClock, [] {
    Timer timer({.after = 1ms, .interval = 1ms, .hard = true});
    const TimerEvent first = timer.next().value();
    const TimePoint due = first.due;
    sleep_for(5ms);
    EXPECT_EQ(timer.next().value().hits, 5u);
    EXPECT_EQ(first.hits, 1u);
    EXPECT_EQ(first.due, due);
  });
}

TEST(Timer, is_a_deadline_in_a_select) {
  run(kTestClock, [] {
    Timer timer({.after = 1ms, .interval = 1ms});
    Event event(Event::kAuto);
    std::uint64_t hits = 0;
    EXPECT_EQ(select(on_event(event),
                     on_deadline(timer.due(), [&] { hits = timer.next().value().hits; })),
              1u);
    EXPECT_EQ(hits, 1u);
  });
}

TEST(Timer, on_a_plain_thread_cannot_be_waited_for) {
  Timer timer({.after = 1h});
  EXPECT_EQ(error_of(timer.next()), Errc::not_a_fiber);
}

// A callback becomes a wait by an event that stays set: the first call counts, before the wait or
// during it.
TEST(Callback, ends_a_wait_whichever_comes_first) {
  run(kTestClock, [] {
    for (const bool calls_first : {true, false}) {
      Event called(Event::kManual);
      std::optional<int> value;
      const std::function<void(int)> callback = [&](int given) {
        if (!called.is_set())
          value = given;
        called.set();
      };
      auto caller = spawn([&] {
        callback(1);
        callback(2);
      });
      if (calls_first)
        caller.join();
      called.wait();
      EXPECT_EQ(value, 1);
    }
  });
}

} // namespace
} // namespace cede
