// SPDX-License-Identifier: MIT
// Field reports: 49 51
// Conditions: whatever ends a wait, the lock is held again.
#include <cede/cancel.h>
#include <cede/condition.h>
#include <cede/fiber.h>
#include <cede/mutex.h>
#include <cede/scheduler.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <gtest/gtest.h>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

TEST(ConditionVariable, waits_without_the_lock_and_has_it_again_whatever_happened) {
  run(kTestClock, [] {
    Mutex mutex;
    ConditionVariable filled;
    std::deque<int> queue;
    std::vector<int> taken;
    auto consumer = spawn([&] {
      std::unique_lock lock(mutex);
      while (taken.size() < 3) {
        filled.wait(lock, [&] { return !queue.empty(); });
        EXPECT_TRUE(mutex.is_mine());
        taken.push_back(queue.front());
        queue.pop_front();
      }
    });
    for (int i = 0; i < 3; ++i) {
      yield();
      const std::scoped_lock lock(mutex);
      queue.push_back(i);
      filled.notify_one();
    }
    consumer.join();
    EXPECT_EQ(taken, (std::vector{0, 1, 2}));

    std::unique_lock lock(mutex);
    EXPECT_EQ(filled.wait_for(lock, 1ms), std::cv_status::timeout);
    EXPECT_FALSE(filled.wait_for(lock, 1ms, [] { return false; }));
    EXPECT_TRUE(filled.wait_until(lock, after(1ms), [] { return true; }));
    EXPECT_TRUE(mutex.is_mine());
    lock.unlock();

    bool had_it = false;
    auto cancelled = spawn([&] {
      std::unique_lock mine(mutex);
      try {
        filled.wait(mine);
      } catch (const Cancelled&) {
        had_it = mutex.is_mine();
        throw;
      }
    });
    yield();
    EXPECT_EQ(filled.waiters(), 1u);
    lock.lock();
    cancelled.cancel();
    yield();
    yield(); // it waits for the mutex, shielded
    EXPECT_EQ(mutex.waiters(), 1u);
    lock.unlock();
    EXPECT_EQ(cancelled.join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(had_it);
    EXPECT_FALSE(mutex.is_locked());
  });
}

TEST(ConditionVariable, takes_the_lock_again_also_if_a_cancellation_came_after_the_notification) {
  run([] {
    Mutex mutex;
    ConditionVariable condition;
    bool had_it = false;
    auto fiber = spawn([&] {
      std::unique_lock lock(mutex);
      condition.wait(lock);
      had_it = mutex.is_mine();
      yield(); // the cancellation
      ADD_FAILURE();
    });
    yield();
    condition.notify_one();
    fiber.cancel();
    EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(had_it);
  });
}

TEST(ConditionVariable, wakes_one_or_all_in_turn) {
  std::string trace;
  run([&] {
    Mutex mutex;
    ConditionVariable condition;
    for (const char* name : {"a", "b", "c"})
      spawn([&, name] {
        std::unique_lock lock(mutex);
        condition.wait(lock);
        trace += name;
      });
    yield();
    condition.notify_one();
    yield();
    yield();
    EXPECT_EQ(trace, "a");
    condition.notify_all();
    EXPECT_EQ(condition.waiters(), 0u);
    yield();
    yield();
    condition.notify_all(); // nobody
  });
  EXPECT_EQ(trace, "abc");
}

TEST(ConditionVariable, asks_the_predicate_before_each_wait_and_after_the_last) {
  run(kTestClock, [] {
    Mutex mutex;
    ConditionVariable condition;
    std::unique_lock lock(mutex);
    condition.wait(lock, [] { return true; });
    bool is_true = false;
    auto other = spawn([&] {
      sleep_for(1ms);
      condition.notify_one(); // too early
      sleep_for(1ms);
      is_true = true; // of which nobody is told
    });
    EXPECT_TRUE(condition.wait_for(lock, 3ms, [&] { return is_true; }));
    is_true = false;
    auto notifier = spawn([&] {
      condition.notify_one(); // too early
      yield();
      is_true = true;
      condition.notify_one();
    });
    condition.wait(lock, [&] { return is_true; });
    EXPECT_TRUE(is_true);
    other.join();
    notifier.join();
  });
}

TEST(ConditionVariable, a_cancelled_fiber_keeps_its_lock) {
  std::string trace;
  run([&] {
    Mutex mutex;
    ConditionVariable condition;
    auto fiber = spawn([&] {
      std::unique_lock lock(mutex);
      yield(); // for the other to wait
      current().cancel();
      try {
        condition.wait(lock);
      } catch (const Cancelled&) {
        trace += "c";
        throw;
      }
    });
    auto other = spawn([&] {
      const std::scoped_lock lock(mutex);
      trace += "o";
    });
    other.join();
    EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "co");
}

TEST(ConditionVariable, is_waited_for_also_by_a_fiber_that_unwinds) {
  run([] {
    Mutex mutex;
    ConditionVariable condition;
    bool was_notified = false;
    struct Last {
      Mutex& mutex;
      ConditionVariable& condition;
      bool& was_notified;
      ~Last() {
        std::unique_lock lock(mutex);
        condition.wait(lock);
        was_notified = true;
      }
    };
    auto fiber = spawn([&] {
      const Last last{mutex, condition, was_notified};
      park();
    });
    yield();
    fiber.cancel();
    yield();
    yield();
    EXPECT_EQ(condition.waiters(), 1u);
    condition.notify_one();
    EXPECT_EQ(fiber.join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(was_notified);
  });
}

TEST(ConditionVariable, can_be_waited_for_by_fibers_only) {
  Mutex mutex;
  ConditionVariable condition;
  std::unique_lock lock(mutex);
  EXPECT_THROW(condition.wait(lock), std::system_error);
  EXPECT_THROW(condition.wait_for(lock, 1ms), std::system_error);
  EXPECT_TRUE(mutex.is_mine());
}

TEST(ConditionVariable, a_stop_ends_its_wait) {
  run(kTestClock, [] {
    Mutex mutex;
    ConditionVariable condition;
    std::stop_source source;
    int asked = 0;
    auto waiter = spawn([&] {
      std::unique_lock lock(mutex);
      const bool was_true = condition.wait(lock, source.get_token(), [&] { return ++asked > 9; });
      EXPECT_TRUE(mutex.is_mine());
      return was_true;
    });
    yield();
    condition.notify_one(); // too early
    yield();
    EXPECT_EQ(condition.waiters(), 1u);
    source.request_stop();
    EXPECT_EQ(condition.waiters(), 0u);
    EXPECT_FALSE(waiter.join());
    EXPECT_EQ(asked, 3);

    std::unique_lock lock(mutex); // of what was requested before
    EXPECT_FALSE(condition.wait(lock, source.get_token(), [] { return false; }));
    EXPECT_TRUE(condition.wait(lock, source.get_token(), [] { return true; }));
    EXPECT_TRUE(mutex.is_mine());
  });
}

TEST(ConditionVariable, a_wait_that_a_stop_may_end_ends_also_otherwise) {
  run(kTestClock, [] {
    Mutex mutex;
    ConditionVariable condition;
    std::stop_source source;
    const std::stop_token token = source.get_token();
    std::unique_lock lock(mutex);
    const TimePoint begin = now();
    EXPECT_FALSE(condition.wait_for(lock, std::stop_token(), 3ms, [] { return false; }));
    EXPECT_EQ(now() - begin, 3ms);
    bool is_true = false;
    auto other = spawn([&] {
      is_true = true;
      condition.notify_all();
    });
    EXPECT_TRUE(condition.wait(lock, token, [&] { return is_true; }));
    other.join();
    auto cancelled = spawn([&] {
      std::unique_lock mine(mutex);
      condition.wait(mine, token, [] { return false; });
    });
    lock.unlock();
    yield();
    EXPECT_EQ(condition.waiters(), 1u);
    cancelled.cancel();
    EXPECT_EQ(cancelled.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(condition.waiters(), 0u);
  });
}

// A test clock stands still while somebody outside might request the stop.
TEST(ConditionVariable, a_wait_that_a_stop_may_end_is_timed_by_the_real_clock) {
  run([] {
    Mutex mutex;
    ConditionVariable condition;
    const std::unique_lock lock(mutex);
    std::stop_source source;
    EXPECT_FALSE(condition.wait_for(mutex, source.get_token(), 2ms, [] { return false; }));
    EXPECT_TRUE(mutex.is_mine());
  });
}

TEST(ConditionVariable, that_is_waited_for_when_it_ends_fails_a_check) {
  EXPECT_DEATH(run([] {
                 Mutex mutex;
                 auto* condition = new ConditionVariable;
                 spawn([&] {
                   std::unique_lock lock(mutex);
                   condition->wait(lock);
                 });
                 yield();
                 delete condition;
               }),
               "condition variable is destroyed");
}

} // namespace
} // namespace cede
