// SPDX-License-Identifier: MIT
// Rows: L-03 L-08 X-16 X-17 X-18 X-19 D-11
// Field reports: 7 40 46 49
// The waiting mechanism, as code outside the library uses it.
#include <cede/fiber.h>
#include <cede/scheduler.h>
#include <cede/waiter.h>

#include <chrono>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

// A kind of wait that the library doesn't know: a slot for one value, handed straight to whoever
// waits longest.
class Mailbox {
public:
  void put(int value) {
    values_.push_back(value);
    readers_.wake_one();
  }
  Result<int> take(Deadline deadline = kForever) {
    WaitLink place;
    Waiter waiter("for mail");
    if (!values_.empty() && readers_.is_empty())
      waiter.fire();
    waiter.watch(readers_, place);
    switch (waiter.wait(deadline)) {
    case WakeReason::timed_out:
      return Errc::timed_out;
    case WakeReason::cancelled:
      return Errc::cancelled;
    case WakeReason::closed:
      return Errc::closed;
    default:
      const int value = values_.front();
      values_.pop_front();
      return value;
    }
  }
  std::size_t waiting() const { return readers_.size(); }

private:
  std::deque<int> values_;
  WaitList readers_;
};

TEST(Waiter, serves_a_kind_of_wait_from_outside) {
  std::string trace;
  run(kTestClock, [&] {
    Mailbox mailbox;
    for (const char* name : {"a", "b"})
      spawn([&, name] { trace += name + std::to_string(mailbox.take().value()) + " "; });
    yield();
    EXPECT_EQ(mailbox.waiting(), 2u);
    mailbox.put(1);
    mailbox.put(2);
    yield();
    mailbox.put(3);
    trace += std::to_string(mailbox.take().value());
    EXPECT_EQ(mailbox.take(after(5ms)).error(), Errc::timed_out);
    EXPECT_EQ(mailbox.waiting(), 0u);
  });
  EXPECT_EQ(trace, "a1 b2 3");
}

TEST(Waiter, is_cancelled_like_the_built_in_ones_and_loses_nothing) {
  run(kTestClock, [&] {
    Mailbox mailbox;
    auto first = spawn([&] { std::ignore = mailbox.take(); });
    auto second = spawn([&] { return mailbox.take().value(); });
    yield();
    first.cancel();
    mailbox.put(7);
    EXPECT_EQ(second.join(), 7);
    EXPECT_EQ(AnyFiber(first).join().error(), Errc::cancelled);
  });
}

TEST(Waiter, whatever_happens_first_wins_and_the_rest_finds_nothing) {
  run(kTestClock, [&] {
    WaitList one, other;
    auto fiber = spawn([&] {
      WaitLink places[2];
      Waiter waiter("for either");
      waiter.watch(one, places[0]);
      waiter.watch(other, places[1]);
      return waiter.wait(after(1ms));
    });
    yield();
    EXPECT_TRUE(other.wake_one(WakeReason::woken));
    EXPECT_TRUE(one.is_empty());
    EXPECT_FALSE(one.wake_one(WakeReason::closed));
    sleep_for(5ms);
    EXPECT_EQ(fiber.join(), WakeReason::woken);
  });
}

TEST(Waiter, time_and_a_wake_in_the_same_round_give_one_end_and_leave_nothing_behind) {
  run(kTestClock, [&] {
    for (const bool wake_first : {true, false}) {
      auto fiber = spawn([&] {
        const WakeReason first = park(after(1ms));
        EXPECT_EQ(first, wake_first ? WakeReason::woken : WakeReason::timed_out);
        // Neither the time nor the wake is left over.
        const TimePoint begin = now();
        EXPECT_EQ(park(after(3ms)), wake_first ? WakeReason::timed_out : WakeReason::woken);
        EXPECT_EQ(now() - begin, wake_first ? 3ms : 0ms);
      });
      yield();
      if (wake_first)
        fiber.wake();
      sleep_for(1ms);
      if (!wake_first)
        fiber.wake();
      fiber.join();
    }
  });
}

TEST(Waiter, wakes_before_a_park_are_one_permit) {
  run(kTestClock, [&] {
    EXPECT_TRUE(current().wake());
    EXPECT_FALSE(current().wake());
    EXPECT_FALSE(current().wake());
    EXPECT_EQ(park(), WakeReason::woken);
    EXPECT_EQ(park(after(1ms)), WakeReason::timed_out);
  });
}

// By the real clock: under a test clock no wake is taken inline.
TEST(Waiter, a_wake_of_who_was_woken_and_has_not_run_is_a_permit) {
  run([] {
    std::string trace;
    Fiber<void> parked = spawn([&] {
      for (char step = 'a'; step < 'd'; ++step) {
        park();
        trace += step;
      }
    });
    Fiber<void> other = spawn([&] { trace += 'o'; });
    yield();
    EXPECT_TRUE(parked.wake());
    parked.wake();
    yield();
    yield();
    EXPECT_EQ(trace, "oab");
    EXPECT_TRUE(parked.wake());
    parked.join();
    EXPECT_EQ(trace, "oabc");
  });
}

TEST(Waiter, object_waits_never_see_the_permit_of_park) {
  run(kTestClock, [&] {
    current().wake();
    Mailbox mailbox;
    EXPECT_EQ(mailbox.take(after(1ms)).error(), Errc::timed_out);
    EXPECT_EQ(park(after(1ms)), WakeReason::woken);
  });
}

TEST(Waiter, a_list_that_is_destroyed_wakes_its_waiters_with_closed_and_they_never_touch_it) {
  run([&] {
    auto mailbox = std::make_unique<Mailbox>();
    auto one = spawn([&box = *mailbox] { return box.take().error(); });
    auto other = spawn([&box = *mailbox] { return box.take(after(1h)).error(); });
    yield();
    mailbox.reset();
    EXPECT_EQ(one.join(), Errc::closed);
    EXPECT_EQ(other.join(), Errc::closed);
  });
}

TEST(Waiter, one_that_is_dropped_without_a_wait_leaves_its_lists) {
  run([&] {
    WaitList list;
    {
      WaitLink place;
      Waiter waiter("for nothing");
      waiter.watch(list, place);
      EXPECT_FALSE(list.is_empty());
    }
    EXPECT_TRUE(list.is_empty());
  });
}

TEST(Waiter, outside_fibers_fails_a_check) {
  EXPECT_DEATH(Waiter("for what"), "a wait outside fibers");
}

} // namespace
} // namespace cede
