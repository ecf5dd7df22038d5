// SPDX-License-Identifier: MIT
// Rows: C-06 C-10 C-11 C-14 C-T6
// Limits: what can befall a fiber in the queue, and the limit while there are some.
#include "support/environment.h"
#include "support/failing_new.h"
#include "support/limits.h"

#include <cede/fiber.h>
#include <cede/limit.h>
#include <cede/remote.h>
#include <cede/scheduler.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;
using test::counts;
using test::error_of;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

TEST(Limit, a_queued_one_that_is_cancelled_leaves_the_queue_at_once_and_never_runs) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    auto held = std::make_shared<int>();
    limit.spawn([] { sleep_for(2ms); });
    Fiber<void> front = limit.spawn([&] { trace += "never "; });
    limit.spawn([&] { trace += "second "; });
    Fiber<void> back = limit.spawn([&, held] { trace += "never "; });
    EXPECT_TRUE(front.cancel());
    EXPECT_TRUE(back.cancel());
    EXPECT_FALSE(back.cancel());
    limit.spawn([&] { trace += "third "; });
    EXPECT_EQ(held.use_count(), 2); // its body goes at its dispatch
    EXPECT_EQ(back.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(counts(limit), "1 2");
    EXPECT_EQ(trace, "");
    limit.wait();
    EXPECT_EQ(front.join(kForever).error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "second third ");
}

TEST(Limit, wait_waits_for_the_body_of_one_that_was_cancelled_in_the_queue) {
  run(kTestClock, [] {
    Limit limit(1);
    auto held = std::make_shared<int>();
    for (const bool is_running : {true, false}) {
      limit.spawn([] { yield(); });
      limit.spawn({.priority = kPriorityMin}, [held] {}).cancel();
      if (!is_running)
        yield(), yield();
      EXPECT_EQ(counts(limit), is_running ? "1 1" : "0 1");
      EXPECT_EQ(held.use_count(), 2);
      limit.wait();
      EXPECT_EQ(held.use_count(), 1);
    }
  });
}

TEST(Limit, forget_drops_a_queued_one) {
  run(kTestClock, [] {
    Limit limit(1);
    limit.spawn([] { sleep_for(2ms); });
    Fiber<void> queued = limit.spawn([] { ADD_FAILURE(); });
    Fiber<void> behind = limit.spawn([] {});
    EXPECT_TRUE(limit.forget(queued));
    EXPECT_TRUE(queued.is_cancelled());
    EXPECT_FALSE(limit.forget(queued));
    EXPECT_EQ(counts(limit), "1 1");
    EXPECT_EQ(queued.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(counts(limit), "1 1");
    behind.cancel();
    EXPECT_TRUE(limit.forget(behind)); // it hadn't ended
    EXPECT_EQ(counts(limit), "1 0");
    limit.wait();
    EXPECT_EQ(counts(limit), "0 0");
  });
}

TEST(Limit, forget_lets_a_running_one_go_on_and_frees_its_place_once) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    Fiber<void> running = limit.spawn([&] {
      sleep_for(3ms);
      trace += "forgotten ";
      limit.wait(); // it is no member any more
    });
    for (const char* name : {"a ", "b ", "c "})
      limit.spawn([&trace, name] {
        sleep_for(2ms);
        trace += name;
      });
    yield();
    EXPECT_TRUE(limit.forget(running));
    EXPECT_FALSE(limit.forget(running));
    EXPECT_FALSE(limit.forget(AnyFiber()));
    EXPECT_FALSE(limit.forget(current()));
    EXPECT_EQ(counts(limit), "1 2");
    limit.wait();
    running.join();
    EXPECT_FALSE(limit.forget(running));
  });
  EXPECT_EQ(trace, "a forgotten b c ");
}

TEST(Limit, who_waits_does_not_wait_for_what_is_forgotten) {
  run(kTestClock, [] {
    Limit limit(1);
    Limit other(1);
    Fiber<void> unstarted = limit.spawn([] { sleep_for(5ms); });
    EXPECT_FALSE(other.forget(unstarted));
    const TimePoint begin = now();
    spawn([&] { EXPECT_TRUE(limit.forget(unstarted)); });
    limit.wait();
    EXPECT_EQ(now(), begin);
    unstarted.join(); // it goes on
    EXPECT_EQ(now() - begin, 5ms);
  });
}

TEST(Limit, a_wake_of_a_queued_one_is_not_lost) {
  run(kTestClock, [] {
    Limit limit(1);
    limit.spawn([] { sleep_for(1ms); });
    Fiber<WakeReason> queued = limit.spawn([] { return park(after(1s)); });
    EXPECT_TRUE(queued.wake());
    EXPECT_FALSE(queued.wake());
    yield();
    EXPECT_EQ(queued.state(), FiberState::created);
    EXPECT_EQ(queued.join(), WakeReason::woken);
  });
}

TEST(Limit, those_that_are_queued_hold_no_stack) {
  const int fibers = test::scaled(100'000, 2'000);
  Scheduler scheduler(kTestClock);
  Limit limit(8);
  std::size_t most = 0;
  int ended = 0;
  const auto member = [&] {
    most = std::max(most, scheduler.metrics().stacks);
    yield();
    ++ended;
  };
  scheduler.remote()
      .post([&] { // no fiber
        for (int i = 0; i < fibers; ++i)
          limit.spawn(member);
        EXPECT_EQ(counts(limit), "8 " + std::to_string(fibers - 8));
        EXPECT_EQ(scheduler.metrics().stacks, 0u);
        EXPECT_EQ(scheduler.alive(), fibers + 0u);
      })
      .value();
  scheduler.run();
  EXPECT_EQ(ended, fibers);
  EXPECT_EQ(most, 8u);
  EXPECT_EQ(counts(limit), "0 0");
}

TEST(Limit, nothing_but_its_turn_starts_a_queued_one) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    limit.spawn([] { sleep_for(5ms); });
    Fiber<void> queued = limit.spawn([&] {
      trace += "started ";
      EXPECT_EQ(park(), WakeReason::woken);
      EXPECT_THROW(yield(), int);
    });
    EXPECT_TRUE(queued.suspend());
    EXPECT_TRUE(queued.resume());
    EXPECT_FALSE(queued.resume());
    queued.set_priority(kPriorityMax);
    queued.set_priority(kPriorityNormal);
    EXPECT_TRUE(queued.wake());
    EXPECT_FALSE(queued.make_ready());
    EXPECT_FALSE(yield_to(queued));
    EXPECT_TRUE(queued.suspend());
    EXPECT_TRUE(queued.raise(std::make_exception_ptr(1)));
    EXPECT_FALSE(queued.is_suspended());
    sleep_for(4ms);
    EXPECT_EQ(queued.state(), FiberState::created);
    EXPECT_EQ(trace, "");
    limit.wait();
    EXPECT_THROW(queued.join(), int);
  });
  EXPECT_EQ(trace, "started ");
}

TEST(Limit, one_that_was_suspended_in_the_queue_has_its_place_and_starts_when_it_is_resumed) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    limit.spawn([] { sleep_for(1ms); });
    Fiber<void> first = limit.spawn([&] { trace += "first "; });
    Fiber<void> second = limit.spawn([&] { trace += "second "; });
    limit.spawn([&] { trace += "third "; });
    first.suspend();
    second.suspend();
    sleep_for(2ms);
    EXPECT_EQ(counts(limit), "1 2");
    EXPECT_EQ(trace, "");
    second.resume();
    yield();
    EXPECT_EQ(trace, "");
    first.resume();
    limit.wait();
  });
  EXPECT_EQ(trace, "first second third ");
}

TEST(Limit, one_that_is_suspended_in_the_queue_ends_when_it_is_cancelled) {
  run(kTestClock, [] {
    Limit limit(1);
    limit.spawn([] { sleep_for(1ms); });
    Fiber<void> queued = limit.spawn([] { ADD_FAILURE(); });
    queued.suspend();
    queued.cancel();
    EXPECT_FALSE(queued.is_suspended());
    yield();
    EXPECT_EQ(queued.state(), FiberState::finished);
    EXPECT_EQ(counts(limit), "1 0");
  });
}

TEST(Limit, a_priority_that_is_set_in_the_queue_holds_at_the_start) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    limit.spawn([] { sleep_for(1ms); });
    Fiber<void> queued = limit.spawn([&] { trace += "queued "; });
    queued.set_priority(kPriorityMax);
    spawn([&] {
      sleep_for(1ms);
      spawn([&] { trace += "plain "; });
    });
    limit.wait();
    yield();
    yield();
    EXPECT_EQ(queued.priority(), kPriorityMax);
  });
  EXPECT_EQ(trace, "queued plain ");
}

TEST(Limit, its_queue_ends_with_the_scheduler) {
  Scheduler scheduler(kTestClock);
  Limit limit(2);
  std::string trace;
  scheduler.spawn([&] {
    for (int i = 0; i < 5; ++i)
      limit.spawn([&] {
        trace += "started ";
        try {
          sleep_for(1h);
        } catch (const Cancelled&) {
          limit.spawn([&] { trace += "never "; });
          EXPECT_LE(limit.running(), 2u);
          throw;
        }
      });
  });
  EXPECT_EQ(scheduler.run_until(scheduler.now() + 1us), Progress::timed_out);
  EXPECT_EQ(counts(limit), "2 3");
  EXPECT_EQ(scheduler.drain(kForever).size(), 0u);
  EXPECT_EQ(counts(limit), "0 0");
  EXPECT_EQ(trace, "started started ");
}

TEST(Limit, what_is_spawned_when_the_scheduler_is_closed_is_cancelled_at_birth) {
  Scheduler scheduler(kTestClock);
  scheduler.spawn([&] {
    const Shield shield;
    scheduler.close();
    Limit limit(1);
    Fiber<void> first = limit.spawn([] { ADD_FAILURE(); });
    Fiber<void> second = limit.spawn([] { ADD_FAILURE(); });
    EXPECT_TRUE(first.is_cancelled());
    EXPECT_TRUE(second.is_cancelled());
    yield(); // both were ready: neither waits for the other
    EXPECT_EQ(first.state(), FiberState::finished);
    EXPECT_EQ(second.state(), FiberState::finished);
    limit.wait();
  });
  scheduler.run();
}

TEST(Limit, that_is_destroyed_wakes_who_waits_and_its_members_go_on_as_before) {
  std::string trace;
  run(kTestClock, [&] {
    auto limit = std::make_unique<Limit>(1);
    for (const char* name : {"a", "b", "c"})
      limit->spawn([&trace, name] {
        trace += name;
        sleep_for(1ms);
        trace += name;
      });
    Fiber<void> cancelled = limit->spawn([] { ADD_FAILURE(); });
    spawn([&, it = limit.get()] {
      EXPECT_EQ(it->wait(kForever).error(), Errc::closed);
      trace += "closed ";
    });
    Fiber<std::error_code> plain =
        spawn([it = limit.get()] { return error_of([&] { it->wait(); }); });
    yield();
    limit.reset();
    cancelled.cancel();
    EXPECT_EQ(plain.join(), Errc::closed);
    sleep_for(5ms);
  });
  EXPECT_EQ(trace, "aclosed abbcc");
}

TEST(Limit, may_be_destroyed_by_a_member) {
  std::string trace;
  run(kTestClock, [&] {
    auto limit = std::make_shared<Limit>(1);
    limit->spawn([&trace, &limit] {
      limit->spawn([&trace] { trace += "last"; });
      limit.reset();
      trace += "first ";
      yield();
    });
    limit->spawn([&trace] { trace += "second "; });
    limit->spawn([limit] { ADD_FAILURE(); }).cancel();
    sleep_for(1ms);
    EXPECT_EQ(limit, nullptr);
  });
  EXPECT_EQ(trace, "first second last");
}

TEST(Limit, its_members_are_of_one_scheduler) {
  Scheduler other(kTestClock);
  Limit limit(1);
  auto held = std::make_shared<int>();
  other.spawn([&] { limit.spawn([] { sleep_for(1ms); }); });
  EXPECT_EQ(other.run_until(other.now() + 1us), Progress::timed_out);
  run(kTestClock, [&] {
    EXPECT_EQ(error_of([&] { limit.spawn([held] { ADD_FAILURE(); }); }), Errc::invalid_argument);
    std::array<char, 200> large{};
    EXPECT_EQ(error_of([&] { limit.spawn([held, large] { return large; }); }),
              Errc::invalid_argument);
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(limit.wait(kForever).error(), Errc::invalid_argument);
  });
  EXPECT_EQ(counts(limit), "1 0");
  other.run();
  run(kTestClock, [&] { // and then of another one
    limit.spawn([] { sleep_for(1ms); });
    limit.wait();
  });
}

TEST(Limit, a_queued_one_is_seen_to_wait_for_it) {
  Scheduler scheduler(kTestClock);
  Limit limit(1);
  scheduler.spawn({.name = "waiter"}, [&] {
    limit.spawn({.name = "running"}, [] { sleep_for(1ms); });
    limit.spawn({.name = "queued"}, [] {});
    limit.wait();
  });
  EXPECT_EQ(scheduler.run_until(scheduler.now() + 1us), Progress::timed_out);
  const std::vector<FiberInfo> fibers = scheduler.fibers();
  ASSERT_EQ(fibers.size(), 3u);
  EXPECT_STREQ(fibers[0].waits_for, "the members of a limit");
  EXPECT_STREQ(fibers[1].waits_for, "sleep");
  EXPECT_STREQ(fibers[2].waits_for, "a limit");
  EXPECT_EQ(fibers[2].state, FiberState::created);
  EXPECT_NE(scheduler.dump().find("fiber 3 (queued): created, priority 0, waits: a limit"),
            std::string::npos)
      << scheduler.dump();
  scheduler.run();
}

TEST(Limit, whose_running_ones_can_never_end_is_a_deadlock) {
  Limit limit(1);
  Scheduler scheduler(kTestClock);
  scheduler.spawn([&] {
    limit.spawn([] { park(); });
    limit.spawn([] { ADD_FAILURE(); });
    limit.wait();
  });
  EXPECT_EQ(scheduler.run_until(kForever), Progress::deadlock);
  EXPECT_EQ(counts(limit), "1 1");
}

TEST(Limit, a_spawn_without_memory_leaves_nothing) {
  if (!test::can_fail_allocations())
    GTEST_SKIP() << "observers stand in front of this program's operator new";
  run(kTestClock, [] {
    Limit limit(1);
    auto held = std::make_shared<int>();
    const std::array<char, 200> large{};
    int failures = 0;
    limit.spawn([] {}).join(); // makes what stays
    for (int nth = 0;; ++nth) {
      const long before = test::allocations_alive;
      auto body = [held, large] { return large.size(); };
      test::allocations_until_failure = nth;
      Fiber<std::size_t> fiber;
      const std::error_code error = error_of([&] { fiber = limit.spawn(body); });
      test::allocations_until_failure = test::kNever;
      if (!error)
        break;
      ++failures;
      EXPECT_EQ(error, Errc::no_memory);
      EXPECT_EQ(held.use_count(), 2); // with this one
      EXPECT_EQ(test::allocations_alive, before);
      EXPECT_EQ(counts(limit), "0 0");
    }
    EXPECT_EQ(failures, 2); // of its body and of its extras
    limit.wait();
    EXPECT_EQ(held.use_count(), 1);
  });
}

TEST(LimitMisuse, on_another_thread_than_its_members) {
  EXPECT_DEATH(run(kTestClock,
                   [] {
                     Limit limit(1);
                     limit.spawn([] { park(); });
                     std::thread([&] { limit.forget(AnyFiber()); }).join();
                   }),
               "a limit is used on another thread");
}

TEST(LimitMisuse, destroyed_on_another_thread_than_its_members) {
  EXPECT_DEATH(run(kTestClock,
                   [] {
                     auto limit = std::make_unique<Limit>(1);
                     limit->spawn([] { park(); });
                     std::thread([&] { limit.reset(); }).join();
                   }),
               "a limit is used on another thread");
}

} // namespace
} // namespace cede
