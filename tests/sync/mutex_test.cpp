// SPDX-License-Identifier: MIT
// Rows: P-64 D-27 C-T8
// Field reports: 46 49 51
// Mutexes, the priorities that they lend, and what is done once.
#include "support/environment.h"

#include <cede/fiber.h>
#include <cede/group.h>
#include <cede/mutex.h>
#include <cede/scheduler.h>
#include <cede/semaphore.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

FiberOptions at(int priority) {
  return {.priority = priority};
}

TEST(Mutex, is_handed_over_in_the_order_of_coming) {
  std::string trace;
  run([&] {
    Mutex mutex;
    mutex.lock();
    for (const char* name : {"a", "b", "c"})
      spawn([&, name] {
        const std::scoped_lock lock(mutex);
        trace += name;
        yield();
      });
    yield();
    EXPECT_EQ(mutex.waiters(), 3u);
    mutex.unlock();
    EXPECT_TRUE(mutex.is_locked()); // it is the first one's already
    EXPECT_FALSE(mutex.is_mine());
    EXPECT_FALSE(mutex.try_lock());
    mutex.lock();
    trace += "m";
    mutex.unlock();
  });
  EXPECT_EQ(trace, "abcm");
}

TEST(Mutex, works_with_the_standard_locks) {
  run(kTestClock, [] {
    Mutex one, two;
    {
      const std::scoped_lock both(one, two);
      EXPECT_TRUE(one.is_mine() && two.is_mine());
      auto other = spawn([&] {
        std::unique_lock lock(one, std::try_to_lock);
        EXPECT_FALSE(lock.owns_lock());
        EXPECT_FALSE(lock.try_lock_for(1ms));
        EXPECT_FALSE(lock.try_lock_until(now()));
        EXPECT_FALSE(lock.try_lock_until(std::chrono::system_clock::now()));
      });
      other.join();
      EXPECT_EQ(one.waiters(), 0u);
    }
    std::unique_lock timed(one, 1ms);
    EXPECT_TRUE(timed.owns_lock());
  });
}

TEST(Mutex, that_is_free_can_be_had_outside_fibers) {
  Mutex mutex;
  const std::scoped_lock lock(mutex);
  EXPECT_TRUE(mutex.is_mine());
  EXPECT_EQ(mutex.lock(kForever).error(), Errc::not_a_fiber);
}

TEST(Mutex, times_out_and_is_cancelled_without_a_trace) {
  run(kTestClock, [] {
    Mutex mutex;
    mutex.lock();
    auto late = spawn([&] { return mutex.lock(after(1ms)).error() == Errc::timed_out; });
    auto cancelled = spawn([&] { mutex.lock(); });
    sleep_for(2ms);
    EXPECT_TRUE(late.join());
    cancelled.cancel();
    EXPECT_EQ(cancelled.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(mutex.waiters(), 0u);
    mutex.unlock();
    EXPECT_FALSE(mutex.is_locked());
    EXPECT_TRUE(mutex.lock(after(-1ms)));
    mutex.unlock();
  });
}

TEST(Mutex, names_circles_and_oneself) {
  run([] {
    Mutex one, two;
    const std::scoped_lock lock(one);
    EXPECT_EQ(one.lock(kForever).error(), Errc::deadlock);
    EXPECT_THROW(one.lock(), std::system_error);
    EXPECT_EQ(one.lock(after(1ms)).error(), Errc::deadlock); // of oneself, though it would end
    auto other = spawn([&] {
      const std::scoped_lock mine(two);
      const std::scoped_lock theirs(one);
    });
    yield();
    EXPECT_EQ(two.lock(kForever).error(), Errc::deadlock);
    EXPECT_EQ(other.join(kForever).error(), Errc::deadlock); // the circle of a mutex and a join
    one.unlock();
    other.join();
    one.lock();
  });
}

TEST(Mutex, lets_a_circle_wait_that_a_deadline_ends) {
  run(kTestClock, [] {
    Mutex one, two;
    one.lock();
    auto other = spawn([&] {
      const std::scoped_lock mine(two);
      const std::scoped_lock theirs(one);
    });
    yield();
    const TimePoint begin = now();
    EXPECT_EQ(two.lock(after(2ms)).error(), Errc::timed_out);
    EXPECT_EQ(now() - begin, 2ms);
    one.unlock();
    other.join();
  });
}

TEST(Mutex, a_timed_lock_tells_no_more_than_time_outs_and_takes_any_clock) {
  run(kTestClock, [] {
    Mutex mutex;
    const std::scoped_lock lock(mutex);
    EXPECT_THROW(std::ignore = mutex.try_lock_for(1ms), std::system_error);
    auto other = spawn([&] {
      const TimePoint begin = now();
      EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() + 2h));
      EXPECT_GT(now() - begin, 1h);
      EXPECT_LE(now() - begin, 2h);
    });
    other.join();
  });
}

TEST(Mutex, a_cancelled_fiber_has_none_that_is_free) {
  run([] {
    Mutex mutex;
    SharedMutex shared;
    const auto expect_cancelled = [](auto lock) {
      auto fiber = spawn([&] {
        current().cancel();
        lock();
      });
      EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
    };
    expect_cancelled([&] { mutex.lock(); });
    expect_cancelled([&] { std::ignore = mutex.lock(kForever); });
    expect_cancelled([&] { shared.lock(); });
    expect_cancelled([&] { shared.lock_shared(); });
    EXPECT_FALSE(mutex.is_locked());
    EXPECT_FALSE(shared.is_locked());
    EXPECT_EQ(shared.readers(), 0u);
  });
}

TEST(Mutex, shows_its_holder_and_those_who_wait_in_a_dump) {
  Scheduler scheduler(kTestClock);
  Mutex mutex;
  SharedMutex shared;
  scheduler.spawn(FiberOptions{.name = "holder"}, [&] {
    const std::scoped_lock both(mutex, shared);
    sleep_for(1ms);
  });
  scheduler.spawn([&] { const std::lock_guard lock(mutex); });
  scheduler.spawn([&] {
    ASSERT_TRUE(shared.try_lock_for(1s));
    shared.unlock();
  });
  scheduler.step(), scheduler.step(), scheduler.step();
  const std::string dump = scheduler.dump();
  EXPECT_NE(dump.find("fiber 2: waiting, priority 0, waits: a mutex of fiber 1, "), dump.npos);
  EXPECT_NE(dump.find("fiber 3: waiting, priority 0, waits: a shared mutex of fiber 1, "),
            dump.npos)
      << dump;
  EXPECT_EQ(scheduler.fibers().at(1).waits_for_id, 1u);
  scheduler.run();
}

// Low holds, middle never stops, high waits: high goes after one slice of low.
TEST(Mutex, lends_the_priority_of_who_waits) {
  std::string trace;
  run(kTestClock, [&] {
    current().set_priority(kPriorityMin);
    Mutex mutex;
    auto low = spawn(at(0), [&] {
      const std::scoped_lock lock(mutex);
      trace += "l";
      yield();
      trace += "L";
    });
    yield();
    bool is_over = false;
    auto middle = spawn(at(1), [&] {
      while (!is_over) {
        trace += trace.back() == 'm' ? "" : "m";
        yield();
      }
    });
    auto high = spawn(at(2), [&] {
      const std::scoped_lock lock(mutex);
      trace += "h";
      is_over = true;
    });
    high.join();
    EXPECT_EQ(low.priority(), 0);
    low.join();
    middle.join();
  });
  EXPECT_EQ(trace, "lLh");
}

TEST(Mutex, lends_along_a_chain) {
  std::string order;
  run(kTestClock, [&] {
    current().set_priority(kPriorityMax);
    Mutex one, two;
    Semaphore go(0);
    auto first = spawn(at(-4), [&] {
      const std::scoped_lock lock(one);
      go.acquire();
      order += "1";
    });
    sleep_for(1ms);
    auto second = spawn(at(-3), [&] {
      const std::scoped_lock lock(two);
      const std::scoped_lock then(one);
      order += "2";
    });
    sleep_for(1ms);
    auto high = spawn(at(2), [&] {
      const std::scoped_lock lock(two);
      order += "h";
    });
    sleep_for(1ms);
    auto spoiler = spawn(at(1), [&] { order += "s"; });
    go.release();
    high.join();
    for (auto* fiber : {&first, &second, &spoiler})
      fiber->join();
  });
  EXPECT_EQ(order, "12hs");
}

TEST(Mutex, takes_back_what_it_lent_when_who_lent_has_left) {
  std::string order;
  run(kTestClock, [&] {
    current().set_priority(kPriorityMax);
    Mutex mutex;
    auto holder = spawn(at(-2), [&] {
      const std::scoped_lock lock(mutex);
      sleep_for(2ms);
      order += "h";
    });
    sleep_for(1ms);
    auto late = spawn(at(2), [&] { return mutex.lock(kForever).has_value(); });
    auto timed = spawn(at(2), [&] { return mutex.lock(after(500us)).has_value(); });
    sleep_for(100us);
    late.cancel();
    EXPECT_FALSE(timed.join());
    auto other = spawn(at(-1), [&] {
      sleep_until(after(500us)); // until the holder's time
      order += "o";
    });
    holder.join();
    other.join();
  });
  EXPECT_EQ(order, "oh");
}

TEST(Mutex, lends_what_its_waiters_are_given_while_they_wait) {
  std::string order;
  run(kTestClock, [&] {
    Mutex mutex;
    mutex.lock();
    auto waiter = spawn(at(-2), [&] {
      const std::scoped_lock lock(mutex);
      order += "w";
    });
    sleep_for(1ms);
    current().set_priority(-4);
    auto other = spawn(at(-1), [&] { order += "o"; });
    waiter.set_priority(1); // so that main, which holds it, goes before the other
    yield();
    EXPECT_EQ(order, "");
    mutex.unlock();
    waiter.join();
    other.join();
  });
  EXPECT_EQ(order, "wo");
}

TEST(Mutex, is_handed_over_with_what_those_behind_lend) {
  std::string trace;
  run(kTestClock, [&] {
    current().set_priority(kPriorityMax);
    Mutex mutex;
    Semaphore go(0);
    auto first = spawn(at(-3), [&] {
      mutex.lock();
      go.acquire();
      mutex.unlock();
      yield(); // it has its own priority again
      trace += "1";
    });
    sleep_for(1ms);
    auto second = spawn(at(-2), [&] {
      const std::scoped_lock lock(mutex);
      trace += "2";
    });
    sleep_for(1ms);
    auto high = spawn(at(2), [&] {
      const std::scoped_lock lock(mutex);
      trace += "h";
    });
    sleep_for(1ms);
    auto spoiler = spawn(at(1), [&] { trace += "s"; });
    go.release();
    for (auto* fiber : {&high, &second, &first, &spoiler})
      fiber->join();
  });
  EXPECT_EQ(trace, "2hs1");
}

TEST(Mutex, takes_back_what_it_lent_when_its_waiter_is_lowered) {
  std::string trace;
  run(kTestClock, [&] {
    Mutex mutex;
    mutex.lock();
    auto waiter = spawn(at(-2), [&] {
      const std::scoped_lock lock(mutex);
      trace += "w";
    });
    sleep_for(1ms);
    current().set_priority(-4);
    waiter.set_priority(1);
    waiter.set_priority(-3);
    auto other = spawn(at(-1), [&] { trace += "o"; });
    yield();
    trace += "m";
    mutex.unlock();
    waiter.join();
    other.join();
  });
  EXPECT_EQ(trace, "omw");
}

TEST(Mutex, a_waiter_of_lower_priority_takes_nothing_from_its_holder) {
  std::string trace;
  run(kTestClock, [&] {
    Mutex mutex;
    mutex.lock();
    auto waiter = spawn(at(-2), [&] {
      const std::scoped_lock lock(mutex);
      trace += "w";
    });
    sleep_for(1ms);
    auto other = spawn(at(-1), [&] { trace += "o"; });
    yield();
    trace += "m";
    mutex.unlock();
    waiter.join();
    other.join();
  });
  EXPECT_EQ(trace, "mow");
}

TEST(Mutex, lends_by_all_that_a_fiber_holds) {
  std::string trace;
  run(kTestClock, [&] {
    current().set_priority(kPriorityMax);
    std::array<Mutex, 3> mutexes;
    Semaphore go(0);
    Group fibers;
    const auto start = [&](int priority, auto body) {
      std::ignore = fibers.spawn(at(priority), body);
      sleep_for(1ms);
    };
    start(-4, [&] {
      for (Mutex& mutex : mutexes)
        mutex.lock();
      go.acquire();
      for (const std::size_t next : {1u, 0u, 2u}) {
        trace += "h";
        mutexes[next].unlock();
        yield();
      }
    });
    for (const auto& [which, priority] :
         {std::pair(0u, 3), std::pair(0u, 3), std::pair(1u, -2), std::pair(2u, 0)})
      start(priority, [&, at = which] {
        const std::scoped_lock lock(mutexes[at]);
        trace += std::to_string(at);
      });
    go.release();
    for (const auto& [name, priority] : {std::pair("x", 2), std::pair("y", -1)})
      std::ignore = fibers.spawn(at(priority), [&, text = name] { trace += text; });
    fibers.join();
  });
  EXPECT_EQ(trace, "hh00xh2y1");
}

TEST(Mutex, who_was_handed_it_lends_nothing_to_itself) {
  std::string trace;
  run(kTestClock, [&] {
    Mutex mutex;
    mutex.lock();
    auto fiber = spawn(at(1), [&] {
      const std::scoped_lock lock(mutex);
      trace += "f";
      current().set_priority(-1);
      yield();
      trace += "F";
    });
    sleep_for(1ms);
    auto other = spawn([&] { trace += "o"; });
    mutex.unlock();
    fiber.join();
    other.join();
  });
  EXPECT_EQ(trace, "foF");
}

TEST(Mutex, misuse_fails_a_check) {
  EXPECT_DEATH(
      {
        Mutex mutex;
        mutex.unlock();
      },
      "nobody holds");
  EXPECT_DEATH(run([] {
                 Mutex mutex;
                 mutex.lock();
                 spawn([&] { mutex.unlock(); }).join();
               }),
               "doesn't hold it");
  EXPECT_DEATH(run([] {
                 Mutex mutex;
                 mutex.lock();
                 std::thread([&] { run([&] { mutex.lock(); }); }).join();
               }),
               "by fibers of two schedulers");
  EXPECT_DEATH(
      {
        Mutex mutex;
        mutex.lock();
        mutex.~Mutex();
      },
      "destroyed that is held");
}

TEST(Mutex, must_not_be_taken_to_a_fibers_end) {
  const char* message = "a fiber has ended that holds a mutex";
  EXPECT_DEATH(run([] {
                 Mutex mutex;
                 spawn([&] { mutex.lock(); }).join();
               }),
               message);
  EXPECT_DEATH(run([] {
                 SharedMutex mutex;
                 spawn([&] { mutex.lock(); }).join();
               }),
               message);
  EXPECT_DEATH(run([] {
                 Mutex mutex;
                 spawn([&] {
                   mutex.lock();
                   yield();
                 });
                 yield();
                 mutex.lock();
               }),
               message);
}

// Random steps; nobody is in with another, nobody is forgotten, priorities are as given at the end.
TEST(Mutex, does_what_the_model_does) {
  const int steps = test::scaled(100'000, 3'000);
  run(kTestClock, [&] {
    std::mt19937 random(7);
    const auto below = [&](unsigned limit) { return random() % limit; };
    constexpr int kMutexes = 3;
    struct Guarded {
      Mutex mutex;
      int inside = 0;
    };
    std::vector<Guarded> guarded(kMutexes);
    int done = 0;
    const auto body = [&](auto& self, unsigned from) -> void {
      const unsigned which = from + below(kMutexes - from);
      Guarded& it = guarded[which];
      if (const Result<void> had = it.mutex.lock(below(2) == 0 ? kForever : after(below(3) * 1ms));
          !had) {
        ASSERT_EQ(had.error(), Errc::timed_out);
        return;
      }
      struct Inside {
        Guarded& it;
        explicit Inside(Guarded& guarded) : it(guarded) { EXPECT_EQ(++it.inside, 1); }
        ~Inside() {
          --it.inside;
          it.mutex.unlock();
        }
      } inside(it);
      ++done;
      if (which + 1 < kMutexes && below(2) == 0)
        self(self, which + 1);
      if (below(2) == 0)
        yield();
      else
        sleep_for(below(3) * 1ms);
    };
    std::vector<Fiber<void>> fibers(8);
    for (int step = 0; step < steps; ++step) {
      auto& fiber = fibers[below(8)];
      if (!fiber || fiber.state() == FiberState::finished)
        fiber = spawn(at(static_cast<int>(below(4)) - 3), [&] { body(body, 0); });
      else if (below(20) == 0)
        fiber.cancel();
      else if (below(5) == 0)
        fiber.set_priority(static_cast<int>(below(4)) - 3);
      if (below(3) == 0)
        sleep_for(below(2) * 1ms);
      else
        yield();
      if (HasFailure())
        break;
    }
    for (auto& fiber : fibers)
      if (fiber)
        std::ignore = fiber.join(kForever);
    EXPECT_GT(done, steps / 10);
    for (Guarded& it : guarded)
      EXPECT_FALSE(it.mutex.is_locked());
  });
}

TEST(RecursiveMutex, is_given_back_as_often_as_it_was_taken) {
  run(kTestClock, [] {
    RecursiveMutex mutex;
    mutex.lock();
    mutex.lock();
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_TRUE(mutex.try_lock_for(1ms));
    EXPECT_TRUE(mutex.lock(kForever));
    auto other = spawn([&] {
      EXPECT_FALSE(mutex.try_lock());
      EXPECT_FALSE(mutex.try_lock_for(1ms));
      const std::scoped_lock lock(mutex);
    });
    sleep_for(2ms);
    for (int i = 0; i < 4; ++i)
      mutex.unlock();
    yield();
    EXPECT_EQ(mutex.waiters(), 1u);
    mutex.unlock();
    other.join();
    EXPECT_FALSE(mutex.is_locked());
  });
}

TEST(RecursiveMutex, is_given_back_by_its_holder_only) {
  EXPECT_DEATH(run([] {
                 RecursiveMutex mutex;
                 mutex.lock();
                 mutex.lock();
                 spawn([&] { mutex.unlock(); }).join();
               }),
               "doesn't hold it");
}

TEST(SharedMutex, lets_readers_in_together_and_a_waiting_writer_before_later_ones) {
  std::string trace;
  run(kTestClock, [&] {
    SharedMutex mutex;
    mutex.lock_shared();
    EXPECT_TRUE(mutex.try_lock_shared());
    EXPECT_FALSE(mutex.try_lock());
    auto writer = spawn([&] {
      const std::scoped_lock lock(mutex);
      trace += "w";
      yield();
    });
    yield();
    for (int i = 0; i < 2; ++i)
      spawn([&] {
        const std::shared_lock lock(mutex);
        trace += "r";
        yield();
        trace += "R";
      });
    yield();
    EXPECT_FALSE(mutex.try_lock_shared());
    EXPECT_FALSE(mutex.try_lock_shared_for(1ms));
    mutex.unlock_shared();
    mutex.unlock_shared();
    mutex.lock();
    EXPECT_EQ(mutex.readers(), 0u);
    mutex.unlock();
  });
  EXPECT_EQ(trace, "wrrRR");
}

TEST(SharedMutex, a_writer_that_gives_up_lets_the_readers_behind_it_in) {
  run(kTestClock, [] {
    SharedMutex mutex;
    mutex.lock_shared();
    auto writer = spawn([&] { EXPECT_FALSE(mutex.try_lock_for(1ms)); });
    int readers = 0;
    auto reader = spawn([&] {
      mutex.lock_shared();
      ++readers;
    });
    yield();
    EXPECT_EQ(readers, 0);
    sleep_for(2ms);
    EXPECT_EQ(readers, 1);
    mutex.unlock_shared();
    mutex.unlock_shared();
    writer.join();
    reader.join();
  });
}

TEST(SharedMutex, reads_by_all_the_forms_that_have_a_time) {
  run(kTestClock, [] {
    SharedMutex mutex;
    mutex.lock_shared();
    EXPECT_TRUE(mutex.try_lock_shared_for(1ms));
    EXPECT_TRUE(mutex.try_lock_shared_until(now()));
    EXPECT_TRUE(mutex.lock_shared(after(-1ms)));
    EXPECT_EQ(mutex.readers(), 4u);
    EXPECT_FALSE(mutex.try_lock_until(now() + 1ms));
    for (int i = 0; i < 4; ++i) {
      EXPECT_FALSE(mutex.try_lock());
      mutex.unlock_shared();
    }
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_EQ(mutex.lock_shared(kForever).error(), Errc::deadlock);
    EXPECT_EQ(mutex.lock(kForever).error(), Errc::deadlock);
    mutex.unlock();
  });
}

TEST(SharedMutex, lends_its_writer_what_those_have_who_wait_and_no_longer) {
  std::string order;
  run(kTestClock, [&] {
    current().set_priority(kPriorityMax);
    SharedMutex mutex;
    Semaphore go(0);
    auto writer = spawn(at(-2), [&] {
      const std::scoped_lock lock(mutex);
      go.acquire();
      order += "w";
    });
    sleep_for(1ms);
    auto reader = spawn(at(2), [&] {
      const std::shared_lock lock(mutex);
      order += "r";
    });
    sleep_for(1ms);
    auto spoiler = spawn(at(1), [&] { order += "s"; });
    go.release();
    writer.join();
    auto late = spawn(at(-2), [&] {
      const std::scoped_lock lock(mutex);
      sleep_for(1ms);
      order += "l";
    });
    sleep_for(500us);
    auto other = spawn(at(-1), [&] {
      sleep_for(500us); // until the writer's time
      order += "o";
    });
    for (auto* fiber : {&late, &other, &reader, &spoiler})
      fiber->join();
  });
  EXPECT_EQ(order, "wrsol");
}

TEST(SharedMutex, misuse_fails_a_check) {
  EXPECT_DEATH(SharedMutex().unlock(), "nobody writes");
  EXPECT_DEATH(SharedMutex().unlock_shared(), "nobody reads");
  EXPECT_DEATH(run([] {
                 SharedMutex mutex;
                 mutex.lock();
                 spawn([&] { mutex.unlock(); }).join();
               }),
               "doesn't hold it");
  EXPECT_DEATH(
      {
        SharedMutex mutex;
        mutex.lock_shared();
        mutex.~SharedMutex();
      },
      "destroyed that is held");
}

TEST(Mutex, is_not_locked_where_its_fiber_must_not_wait) {
  EXPECT_DEATH(run([] {
                 Mutex mutex;
                 const NoSuspend whole;
                 mutex.lock();
               }),
               "a wait inside a NoSuspend scope");
  run([] {
    Mutex mutex;
    const NoSuspend whole;
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  });
}

TEST(Once, is_waited_for_no_longer_than_until_a_deadline) {
  run(kTestClock, [] {
    Once once;
    auto caller = spawn([&] { once.call([] { sleep_for(5ms); }); });
    yield();
    const auto never = [] { ADD_FAILURE(); };
    EXPECT_EQ(once.call(never, after(1ms)).error(), Errc::timed_out);
    EXPECT_TRUE(once.call(never, after(1s)));
    EXPECT_TRUE(once.call(never, after(-1s)));
    caller.join();
    Once other;
    bool was_called = false;
    EXPECT_TRUE(other.call([&] { was_called = true; }, after(-1s)));
    EXPECT_TRUE(was_called && other.is_done());
  });
}

TEST(Once, is_called_once_and_again_after_a_throw) {
  run([] {
    Once once;
    int calls = 0;
    auto first = spawn([&] {
      once.call([&] {
        ++calls;
        yield();
        throw 1;
      });
    });
    std::vector<Fiber<void>> others;
    for (int i = 0; i < 3; ++i)
      others.push_back(spawn([&] {
        once.call([&] {
          yield();
          EXPECT_FALSE(once.is_done());
          ++calls;
        });
        EXPECT_EQ(calls, 2);
      }));
    EXPECT_THROW(first.join(), int);
    for (auto& other : others)
      other.join();
    EXPECT_TRUE(once.is_done());
    once.call([] { ADD_FAILURE(); });
    Once inner;
    EXPECT_THROW(inner.call([&] { inner.call([] {}); }), std::system_error);
  });
}

} // namespace
} // namespace cede
