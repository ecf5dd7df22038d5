// SPDX-License-Identifier: MIT
// Rows: P-62 P-65 C-12 C-T8
// Field reports: 46 49 51
// Semaphores, against a model that only counts.
#include "support/environment.h"

#include <cede/cancel.h>
#include <cede/fiber.h>
#include <cede/scheduler.h>
#include <cede/semaphore.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

TEST(Semaphore, hands_units_over_in_turn_the_first_in_line_first) {
  std::string trace;
  run([&] {
    Semaphore semaphore(1);
    const auto taker = [&](const char* name, long units) {
      return [&, name, units] {
        semaphore.acquire(units);
        trace += name;
      };
    };
    spawn(taker("3", 3));
    spawn(taker("1", 1)); // it is there, but somebody is before
    yield();
    EXPECT_EQ(trace, "");
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.release();
    EXPECT_EQ(semaphore.count(), 2);
    semaphore.release(2);
    EXPECT_EQ(semaphore.count(), 0); // handed over, though nobody has run
    EXPECT_FALSE(semaphore.try_acquire());
    yield();
  });
  EXPECT_EQ(trace, "31");
}

TEST(Semaphore, who_leaves_the_line_lets_those_behind_go_at_once) {
  run(kTestClock, [] {
    Semaphore semaphore(1);
    auto large = spawn([&] { return semaphore.acquire(5, after(1ms)).error() == Errc::timed_out; });
    int gone = 0;
    spawn([&] {
      semaphore.acquire();
      ++gone;
    });
    yield();
    large.suspend(); // it can't look itself
    sleep_for(2ms);
    EXPECT_EQ(gone, 1);
    large.resume();
    EXPECT_TRUE(large.join());

    auto cancelled = spawn([&] { semaphore.acquire(5); });
    spawn([&] {
      semaphore.acquire();
      ++gone;
    });
    yield();
    semaphore.release();
    yield();
    EXPECT_EQ(gone, 1);
    cancelled.cancel();
    cancelled.suspend();
    yield();
    EXPECT_EQ(gone, 2);
    cancelled.resume();
    EXPECT_EQ(cancelled.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(semaphore.count(), 0);
  });
}

TEST(Semaphore, may_begin_below_zero_and_be_adjusted) {
  run(kTestClock, [] {
    Semaphore semaphore(-2);
    EXPECT_EQ(semaphore.acquire(after(1ms)).error(), Errc::timed_out);
    semaphore.release(2);
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.adjust(3);
    semaphore.acquire(3);
    semaphore.adjust(-4);
    EXPECT_EQ(semaphore.count(), -4);
    {
      semaphore.release(5);
      const auto guard = semaphore.guard();
      EXPECT_EQ(semaphore.count(), 0);
    }
    EXPECT_EQ(semaphore.count(), 1);
  });
}

TEST(Semaphore, lets_nobody_go_before_its_debt_is_paid) {
  run([] {
    Semaphore semaphore(-1);
    auto waiter = spawn([&] { semaphore.acquire(); });
    yield();
    semaphore.release();
    EXPECT_EQ(semaphore.waiters(), 1u);
    EXPECT_EQ(semaphore.count(), 0);
    semaphore.release();
    waiter.join();
    EXPECT_EQ(semaphore.count(), 0);
  });
}

TEST(Semaphore, refuses_what_can_never_work) {
  Semaphore semaphore(1);
  EXPECT_THROW(semaphore.acquire(0), std::system_error);
  EXPECT_EQ(semaphore.acquire(-1, kForever).error(), Errc::invalid_argument);
  EXPECT_FALSE(semaphore.try_acquire(0));
  EXPECT_THROW(semaphore.release(0), std::system_error);
  EXPECT_THROW(semaphore.release(std::numeric_limits<long>::max()), std::system_error);
  EXPECT_THROW(Semaphore(-2).adjust(std::numeric_limits<long>::min()), std::system_error);
  EXPECT_EQ(semaphore.count(), 1);
  semaphore.acquire();
  EXPECT_EQ(semaphore.acquire(kForever).error(), Errc::not_a_fiber);
}

TEST(Semaphore, refuses_more_than_can_be_counted_also_while_somebody_waits) {
  run([] {
    Semaphore semaphore(1);
    auto waiter = spawn([&] { semaphore.acquire(5); });
    yield();
    EXPECT_THROW(semaphore.release(std::numeric_limits<long>::max()), std::system_error);
    EXPECT_EQ(semaphore.count(), 1);
    semaphore.release(4);
    waiter.join();
    EXPECT_EQ(semaphore.count(), 0);
  });
}

TEST(Semaphore, a_guard_gives_back_once_what_it_took) {
  Semaphore semaphore(3);
  {
    auto guard = semaphore.guard(2);
    const auto moved = std::move(guard);
    EXPECT_EQ(semaphore.count(), 1);
  }
  EXPECT_EQ(semaphore.count(), 3);
}

TEST(Semaphore, a_cancelled_fiber_takes_nothing_that_is_there) {
  run([] {
    Semaphore semaphore(1);
    for (const bool has_deadline : {false, true}) {
      auto fiber = spawn([&] {
        current().cancel();
        if (has_deadline)
          std::ignore = semaphore.acquire(kForever);
        else
          semaphore.acquire();
      });
      EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
    }
    EXPECT_EQ(semaphore.count(), 1);
  });
}

TEST(Semaphore, that_ends_wakes_who_waits_with_closed) {
  run([] {
    auto semaphore = std::make_unique<Semaphore>(0);
    int closed = 0;
    for (long units = 1; units < 4; ++units)
      spawn([&, it = semaphore.get(), units] {
        closed += it->acquire(units, kForever).error() == Errc::closed ? 1 : 0;
      });
    auto thrown = spawn([it = semaphore.get()] { it->acquire(); });
    yield();
    semaphore.reset();
    EXPECT_THROW(thrown.join(), std::system_error);
    EXPECT_EQ(closed, 3);
  });
}

TEST(Semaphore, takes_no_time_out_for_units_that_are_there) {
  run(kTestClock, [] {
    Semaphore semaphore(1);
    EXPECT_TRUE(semaphore.acquire(after(-1ns)));
    for (int i = 0; i < 1000; ++i)
      EXPECT_EQ(semaphore.acquire(after(0ns)).error(), Errc::timed_out);
    EXPECT_EQ(semaphore.waiters(), 0u);
    semaphore.release();
    EXPECT_EQ(semaphore.count(), 1);
  });
}

// Random steps of a few fibers. What must hold at each: units are neither made nor lost, and those
// who get some get them in the order in which they asked.
TEST(Semaphore, does_what_the_model_does) {
  const int steps = test::scaled(1'000'000, 20'000);
  run(kTestClock, [&] {
    std::mt19937 random(1);
    const auto below = [&](unsigned limit) { return random() % limit; };
    constexpr long kUnits = 5;
    Semaphore semaphore(kUnits);
    long held = 0;
    int done = 0;
    struct Asked {
      int ticket;
      Deadline deadline;
      AnyFiber fiber;
      bool may_have_left() const { return fiber.is_cancelled() || deadline <= Deadline(now()); }
    };
    std::deque<Asked> line; // of those who wait
    int tickets = 0;
    std::vector<Fiber<void>> fibers(8);
    const auto body = [&] {
      for (;;) {
        const long units = 1 + below(3);
        const int ticket = tickets++;
        const Deadline deadline = below(2) == 0 ? kForever : after(below(3) * 1ms);
        const bool has_to_wait = semaphore.count() < units || semaphore.waiters() > 0;
        if (has_to_wait)
          line.push_back({ticket, deadline, current()});
        struct Leave {
          std::deque<Asked>& line;
          int ticket;
          ~Leave() {
            std::erase_if(line, [&](const Asked& asked) { return asked.ticket == ticket; });
          }
        };
        {
          Leave leave{line, ticket};
          const Result<void> had = semaphore.acquire(units, deadline);
          if (!had) {
            ASSERT_EQ(had.error(), Errc::timed_out);
            continue;
          }
          // All who waited already and still do would have gone first.
          for (const Asked& asked : line)
            if (has_to_wait && !asked.may_have_left()) {
              ASSERT_GE(asked.ticket, ticket);
            }
        }
        struct Held {
          Semaphore& semaphore;
          long& held;
          long units;
          ~Held() {
            held -= units;
            semaphore.release(units);
          }
        } back{semaphore, held, units};
        held += units;
        ASSERT_LE(held, kUnits);
        ++done;
        if (below(2) == 0)
          yield();
        else
          sleep_for(below(3) * 1ms);
      }
    };
    for (int step = 0; step < steps / 10; ++step) {
      auto& fiber = fibers[below(8)];
      if (!fiber || fiber.state() == FiberState::finished)
        fiber = spawn(body);
      else if (below(50) == 0)
        fiber.cancel();
      if (below(3) == 0)
        sleep_for(below(2) * 1ms);
      else
        yield();
      if (HasFailure())
        break;
    }
    for (auto& fiber : fibers)
      fiber.cancel();
    for (auto& fiber : fibers)
      if (fiber)
        std::ignore = fiber.join(kForever);
    EXPECT_EQ(semaphore.waiters(), 0u);
    EXPECT_GT(done, steps / 100);
    EXPECT_EQ(held, 0);
    EXPECT_EQ(semaphore.count(), kUnits);
  });
}

TEST(SemaphoreSet, excludes_by_key_and_forgets_keys_that_are_back) {
  run(kTestClock, [] {
    SemaphoreSet<std::string> keys;
    keys.acquire("a");
    keys.acquire("b");
    EXPECT_EQ(keys.size(), 2u);
    EXPECT_EQ(keys.acquire("a", after(1ms)).error(), Errc::timed_out);
    auto second = spawn([&] { keys.acquire("a"); });
    yield();
    EXPECT_EQ(keys.waiters("a"), 1u);
    keys.release("a");
    EXPECT_EQ(keys.size(), 2u); // it is the other's now
    second.join();
    keys.release("a");
    keys.release("b");
    EXPECT_EQ(keys.size(), 0u);
    EXPECT_EQ(keys.count("a"), 1);
    keys.release("up"); // before any acquire
    EXPECT_EQ(keys.count("up"), 2);
    keys.acquire("up");
    EXPECT_EQ(keys.acquire("a", 2, kForever).error(), Errc::invalid_argument);
    EXPECT_THROW(keys.acquire("a", 0), std::system_error);
  });
}

TEST(SemaphoreSet, gives_each_key_the_units_with_which_all_begin) {
  run(kTestClock, [] {
    SemaphoreSet<int> keys(3);
    keys.acquire(1, 2);
    EXPECT_EQ(keys.count(1), 1);
    EXPECT_EQ(keys.acquire(1, 2, after(1ms)).error(), Errc::timed_out);
    EXPECT_FALSE(keys.try_acquire(1, 2));
    EXPECT_TRUE(keys.acquire(1, after(-1ns)));
    EXPECT_TRUE(keys.try_acquire(2, 3));
    EXPECT_THROW(keys.acquire(3, 4), std::system_error);
    EXPECT_THROW(keys.try_acquire(3, 4), std::system_error);
    EXPECT_EQ(keys.size(), 2u);
    auto second = spawn([&] { return keys.acquire(2, 2, after(1s)).has_value(); });
    yield();
    EXPECT_EQ(keys.waiters(2), 1u);
    keys.release(2, 3);
    EXPECT_EQ(keys.count(2), 1);
    EXPECT_TRUE(second.join());
    keys.release(2, 2);
    keys.release(1, 3);
    EXPECT_EQ(keys.size(), 0u);
  });
  EXPECT_THROW(SemaphoreSet<int>(0), std::system_error);
}

TEST(SemaphoreSet, keeps_no_key_that_nobody_has_changed) {
  run([] {
    SemaphoreSet<std::string> keys;
    auto cancelled = spawn([&] {
      current().cancel();
      {
        const CancelByResult scope;
        EXPECT_EQ(keys.acquire("a", kForever).error(), Errc::cancelled);
      }
      keys.acquire("b");
    });
    EXPECT_EQ(cancelled.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(keys.size(), 0u);
    keys.release("c"); // before any acquire
    keys.acquire("c");
    EXPECT_EQ(keys.count("c"), 1);
    EXPECT_THROW(keys.release("d", 0), std::system_error);
    EXPECT_EQ(keys.size(), 0u);
  });
}

TEST(SemaphoreSet, compares_keys_as_it_is_told) {
  struct ByTens {
    bool operator()(int one, int other) const { return one / 10 < other / 10; }
  };
  SemaphoreSet<int, ByTens> keys;
  keys.acquire(11);
  EXPECT_FALSE(keys.try_acquire(17));
  EXPECT_TRUE(keys.try_acquire(21));
  keys.release(19);
  keys.release(21);
  EXPECT_EQ(keys.size(), 0u);
}

} // namespace
} // namespace cede
