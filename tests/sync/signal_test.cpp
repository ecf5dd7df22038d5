// SPDX-License-Identifier: MIT
// Rows: X-22 P-60 P-61 X-21
// Field reports: 46 49
// Signals and events.
#include <cede/event.h>
#include <cede/fiber.h>
#include <cede/scheduler.h>
#include <cede/signal.h>

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

TEST(Signal, is_kept_once_if_nobody_waits) {
  run(kTestClock, [] {
    Signal signal;
    signal.send();
    signal.send();
    EXPECT_TRUE(signal.is_set());
    signal.wait();
    EXPECT_FALSE(signal.is_set());
    EXPECT_EQ(signal.wait(after(1ms)).error(), Errc::timed_out);
    EXPECT_EQ(signal.waiters(), 0u);
  });
}

TEST(Signal, that_is_set_is_taken_without_a_switch) {
  run([] {
    bool has_run = false;
    auto other = spawn([&] { has_run = true; });
    Signal signal;
    signal.send();
    signal.wait();
    EXPECT_FALSE(has_run);
    other.join();
  });
}

TEST(Signal, wakes_in_the_order_of_coming_and_a_broadcast_wakes_all) {
  std::string trace;
  run([&] {
    Signal signal;
    signal.broadcast(); // nobody is there: it is lost
    for (const char* name : {"a", "b", "c", "d"})
      spawn([&, name] {
        signal.wait();
        trace += name;
      });
    yield();
    EXPECT_EQ(signal.waiters(), 4u);
    signal.send();
    yield();
    EXPECT_EQ(trace, "a");
    signal.broadcast();
    yield();
    EXPECT_FALSE(signal.is_set());
  });
  EXPECT_EQ(trace, "abcd");
}

TEST(Signal, sent_to_one_who_is_cancelled_before_it_runs_is_taken_all_the_same) {
  run([] {
    Signal signal;
    bool was_taken = false;
    auto waiter = spawn([&] {
      signal.wait();
      was_taken = true;
      yield(); // the cancellation
      ADD_FAILURE();
    });
    yield();
    signal.send();
    waiter.cancel();
    EXPECT_EQ(waiter.join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(was_taken);
  });
}

TEST(Signal, a_cancelled_wait_takes_nothing) {
  run([] {
    Signal signal;
    auto first = spawn([&] { signal.wait(); });
    auto second = spawn([&] { signal.wait(); });
    yield();
    first.cancel();
    signal.send();
    second.join();
    EXPECT_EQ(first.join(kForever).error(), Errc::cancelled);
    signal.send();
    auto third = spawn([&] { signal.wait(); });
    third.cancel(); // before it has started
    EXPECT_EQ(third.join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(signal.is_set());
  });
}

TEST(Signal, a_cancelled_fiber_takes_nothing_that_is_there) {
  run([] {
    Signal signal;
    signal.send();
    auto fiber = spawn([&] {
      current().cancel();
      signal.wait();
      ADD_FAILURE();
    });
    EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(signal.is_set());
  });
}

TEST(Signal, times_out_also_at_deadlines_that_have_passed) {
  run(kTestClock, [] {
    Signal signal;
    for (const auto time : {-1ns, 0ns, 1ns, 1000ns})
      for (int i = 0; i < 1000; ++i)
        EXPECT_EQ(signal.wait(after(time)).error(), Errc::timed_out);
    signal.send();
    EXPECT_TRUE(signal.wait(after(-1ns)));
  });
}

template <class Object, class... Args>
void expect_closed(Args... args) {
  run([&] {
    auto object = std::make_unique<Object>(args...);
    int closed = 0;
    for (int i = 0; i < 3; ++i)
      spawn(
          [&, it = object.get()] { closed += it->wait(kForever).error() == Errc::closed ? 1 : 0; });
    auto thrown = spawn([it = object.get()] { it->wait(); });
    yield();
    object.reset();
    EXPECT_THROW(thrown.join(), std::system_error);
    EXPECT_EQ(closed, 3);
  });
}

TEST(Signal, that_ends_wakes_who_waits_with_closed) {
  expect_closed<Signal>();
  expect_closed<Event>(Event::kAuto);
  expect_closed<Event>(Event::kManual);
}

TEST(Signal, can_be_waited_for_by_fibers_only) {
  Signal signal;
  EXPECT_EQ(signal.wait(kForever).error(), Errc::not_a_fiber);
  EXPECT_THROW(signal.wait(), std::system_error);
  signal.send();
  signal.wait();
}

TEST(Event, automatic_lets_one_go_a_set) {
  run(kTestClock, [] {
    Event event(Event::kAuto, true);
    int gone = 0;
    event.wait();
    EXPECT_FALSE(event.try_wait());
    for (int i = 0; i < 3; ++i)
      spawn([&] {
        event.wait();
        ++gone;
      });
    yield();
    event.set();
    event.set();
    yield();
    EXPECT_EQ(gone, 2);
    event.set();
    yield();
    EXPECT_EQ(gone, 3);
    event.set();
    event.set();
    EXPECT_TRUE(event.try_wait());
    EXPECT_FALSE(event.try_wait());
  });
}

TEST(Event, manual_lets_all_go_until_it_is_reset) {
  run(kTestClock, [] {
    Event event(Event::kManual);
    int gone = 0;
    for (int i = 0; i < 3; ++i)
      spawn([&] {
        event.wait();
        ++gone;
      });
    yield();
    event.set();
    event.reset(); // takes nothing back from those who were let go
    yield();
    EXPECT_EQ(gone, 3);
    EXPECT_EQ(event.wait(after(1ms)).error(), Errc::timed_out);
    event.set();
    event.wait();
    EXPECT_TRUE(event.try_wait());
    EXPECT_TRUE(event.is_set());
  });
}

TEST(Event, may_end_between_a_set_and_the_run_of_who_was_let_go) {
  run([] {
    auto event = std::make_unique<Event>(Event::kAuto);
    auto let_go = spawn([e = event.get()] { return e->wait(kForever); });
    auto left = spawn([e = event.get()] { return e->wait(kForever); });
    yield();
    event->set();
    event.reset();
    EXPECT_TRUE(let_go.join());
    EXPECT_EQ(left.join().error(), Errc::closed);
  });
}

TEST(Event, is_not_forged_by_a_wake) {
  run(kTestClock, [] {
    Event event(Event::kManual);
    auto waiter = spawn([&] { return event.wait(after(5ms)); });
    yield();
    waiter.wake();
    yield();
    EXPECT_EQ(event.waiters(), 1u);
    EXPECT_EQ(waiter.join().error(), Errc::timed_out);
  });
}

} // namespace
} // namespace cede
