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
    yield();
    yield();
    condition.notify_all(); // nobody
  });
  EXPECT_EQ(trace, "abc");
}

TEST(ConditionVariable, stops_waiting_when_a_stop_is_requested_and_says_what_is_true) {
  run(kTestClock, [] {
    Mutex mutex;
    ConditionVariable condition;
    std::stop_source source;
    bool is_ready = false;
    const auto wait = [&] {
      std::unique_lock lock(mutex);
      const bool was = condition.wait(lock, source.get_token(), [&] { return is_ready; });
      EXPECT_TRUE(mutex.is_mine());
      return was;
    };
    auto notified = spawn(wait), stopped = spawn(wait);
    yield();
    is_ready = true;
    condition.notify_one();
    EXPECT_TRUE(notified.join());
    is_ready = false;
    condition.notify_one(); // nothing to be had: it waits on
    yield();
    EXPECT_EQ(condition.waiters(), 1u);
    source.request_stop();
    EXPECT_FALSE(stopped.join());
    EXPECT_EQ(condition.waiters(), 0u);
    EXPECT_FALSE(wait()); // without waiting, from now on
    is_ready = true;
    EXPECT_TRUE(wait());
  });
  run([] { // a test clock stands still while somebody outside might request the stop
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
