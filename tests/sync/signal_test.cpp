// SPDX-License-Identifier: MIT
// Rows: X-22 P-60 P-61 X-21
// Field reports: 46 49
// Signals and events.
#include <cede/cancel.h>
#include <cede/event.h>
#include <cede/fiber.h>
#include <cede/group.h>
#include <cede/remote.h>
#include <cede/scheduler.h>
#include <cede/signal.h>

#include <chrono>
#include <exception>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

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

// By the real clock: under a test clock everything is looked at in each switch.
TEST(Signal, times_out_also_while_others_yield) {
  run([] {
    Signal signal;
    bool is_over = false;
    auto other = spawn([&] {
      const Deadline patience = after(10s);
      while (!is_over && Deadline(now()) < patience)
        yield();
      signal.broadcast();
    });
    yield();
    for (int i = 0; i < 5; ++i)
      EXPECT_FALSE(signal.wait(after(1ms)));
    is_over = true;
    other.join();
  });
}

// By the real clock, as above. The pump, which runs a post, is on no ring that a fiber could be
// put on in front of it.
TEST(Signal, is_sent_by_a_post_too) {
  run([] {
    Signal signal;
    std::string trace;
    Group group;
    for (char name : {'a', 'b'})
      group.spawn([&, name] {
        signal.wait();
        trace += name;
      });
    yield();
    EXPECT_TRUE(remote().post([&] { signal.send(); }));
    sleep_for(1ms);
    EXPECT_EQ(trace, "a");
    EXPECT_TRUE(remote().post([&] { signal.send(); }));
    group.join();
    EXPECT_EQ(trace, "ab");
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

TEST(Signal, a_fiber_that_unwinds_waits_only_where_it_can_not_be_told) {
  std::string trace;
  run([&] {
    Signal signal;
    struct Last {
      Signal& signal;
      std::string& trace;
      ~Last() {
        if (signal.wait(kForever).error() == Errc::cancelled)
          trace += "c";
        signal.wait();
        trace += "w";
      }
    };
    auto fiber = spawn([&] {
      const Last last{signal, trace};
      signal.wait();
    });
    yield();
    fiber.cancel();
    yield();
    yield();
    EXPECT_EQ(trace, "c");
    EXPECT_EQ(signal.waiters(), 1u);
    signal.send();
    EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "cw");
}

TEST(Signal, a_shield_holds_while_one_waits_for_it) {
  run([] {
    Signal signal;
    bool was_sent = false;
    auto fiber = spawn([&] {
      {
        const Shield shield;
        signal.wait();
        was_sent = true;
      }
      yield(); // the cancellation
      ADD_FAILURE();
    });
    yield();
    fiber.cancel();
    yield();
    EXPECT_EQ(signal.waiters(), 1u);
    signal.send();
    EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(was_sent);
  });
}

TEST(Signal, a_cancellation_that_is_reported_gives_the_others_a_turn) {
  std::string trace;
  run([&] {
    Signal signal;
    auto fiber = spawn([&] {
      const CancelByResult scope;
      for (int i = 0; i < 3; ++i) {
        trace += signal.wait(kForever).error() == Errc::cancelled ? "c" : "?";
        signal.send(); // which is not taken
      }
    });
    yield();
    fiber.cancel();
    for (int i = 0; i < 2; ++i) {
      yield();
      trace += "o";
    }
    fiber.join();
    EXPECT_TRUE(signal.is_set());
  });
  EXPECT_EQ(trace, "cococ");
}

TEST(Signal, an_exception_that_is_raised_in_its_fiber_comes_before_it) {
  run([] {
    Signal signal;
    signal.send();
    auto fiber = spawn([&] {
      current().raise(std::make_exception_ptr(1));
      signal.wait();
      ADD_FAILURE();
    });
    EXPECT_THROW(fiber.join(), int);
    EXPECT_TRUE(signal.is_set());
  });
}

TEST(Signal, lets_go_behind_those_who_are_ready) {
  std::string trace;
  run([&] {
    Signal signal;
    auto waiter = spawn([&] {
      signal.wait();
      trace += "w";
    });
    yield();
    auto one = spawn([&] { trace += "1"; });
    auto other = spawn([&] { trace += "2"; });
    signal.send();
    yield();
  });
  EXPECT_EQ(trace, "12w");
}

TEST(Signal, lets_go_by_priority_and_behind_those_who_are_ready) {
  std::string trace;
  run(kTestClock, [&] {
    Signal signal;
    const auto start = [&](const char* name, int priority) {
      return spawn(FiberOptions{.priority = priority}, [&, name] {
        signal.wait();
        trace += name;
      });
    };
    auto low = start("l", -1);
    sleep_for(1us);
    auto same = start("s", 0), high = start("h", 1);
    sleep_for(1us);
    auto other = spawn([&] { trace += "o"; });
    for (int i = 0; i < 3; ++i)
      signal.send();
    low.join();
    for (auto* fiber : {&same, &high, &other})
      fiber->join();
  });
  EXPECT_EQ(trace, "hosl");
}

TEST(Signal, a_suspended_fiber_has_it_when_it_is_resumed) {
  run([] {
    Signal signal;
    bool has_it = false;
    auto fiber = spawn([&] {
      signal.wait();
      has_it = true;
    });
    yield();
    fiber.suspend();
    signal.send();
    yield();
    EXPECT_FALSE(has_it);
    EXPECT_FALSE(signal.is_set());
    fiber.resume();
    fiber.join();
    EXPECT_TRUE(has_it);
  });
}

TEST(Signal, times_out_also_if_its_wait_began_while_others_were_ready) {
  run(kTestClock, [] {
    Signal signal;
    auto fiber = spawn([&] { return signal.wait(after(1ms)).error() == Errc::timed_out; });
    yield();
    EXPECT_EQ(signal.waiters(), 1u);
    sleep_for(2ms);
    EXPECT_EQ(signal.waiters(), 0u);
    signal.send(); // too late
    EXPECT_TRUE(fiber.join());
  });
}

TEST(Signal, lets_go_in_the_same_order_step_by_step) {
  Scheduler scheduler(kTestClock);
  Signal signal;
  std::string trace;
  scheduler.spawn([&] {
    signal.wait();
    trace += "w";
  });
  scheduler.spawn([&] {
    signal.send();
    trace += "s";
  });
  scheduler.spawn([&] { trace += "o"; });
  for (int i = 0; i < 4; ++i)
    scheduler.step();
  EXPECT_EQ(trace, "sow");
}

TEST(Signal, that_came_before_the_deadline_leaves_none_behind) {
  run(kTestClock, [] {
    Signal signal;
    auto fiber = spawn([&] {
      EXPECT_TRUE(signal.wait(after(1ms)));
      signal.wait();
    });
    yield();
    signal.send();
    sleep_for(2ms);
    EXPECT_EQ(signal.waiters(), 1u);
    signal.send();
    fiber.join();
  });
}

TEST(Signal, sent_back_and_forth_lets_posts_run) {
  run([] {
    Signal there, back;
    bool was_posted = false;
    auto other = spawn([&] {
      for (;;) {
        there.wait();
        back.send();
      }
    });
    EXPECT_TRUE(remote().post([&] { was_posted = true; }));
    for (int i = 0; i < 100'000 && !was_posted; ++i) {
      there.send();
      back.wait();
    }
    EXPECT_TRUE(was_posted);
    other.cancel();
  });
}

TEST(SignalMisuse, sent_on_another_thread_than_that_of_who_waits) {
  EXPECT_DEATH(run([] {
                 Signal signal;
                 auto fiber = spawn([&] { signal.wait(); });
                 yield();
                 std::thread([&] { run([&] { signal.send(); }); }).join();
               }),
               "another thread than its scheduler's");
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
    EXPECT_FALSE(event.is_set()); // two of those who wait have it
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
    EXPECT_TRUE(event.wait(after(-1ns)));
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

TEST(Event, a_cancelled_fiber_takes_nothing_that_is_set) {
  run([] {
    Event event(Event::kAuto, true);
    auto fiber = spawn([&] {
      current().cancel();
      event.wait();
      ADD_FAILURE();
    });
    EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(event.is_set());
  });
}

} // namespace
} // namespace cede
