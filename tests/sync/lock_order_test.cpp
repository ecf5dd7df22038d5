// SPDX-License-Identifier: MIT
// Field reports: 60
// Orders of locking by which fibers could wait for each other, told though they didn't.
#include <cede/condition.h>
#include <cede/fiber.h>
#include <cede/mutex.h>
#include <cede/scheduler.h>

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

// What is reported while `body` runs in a fiber of a scheduler that checks.
template <class F>
std::vector<std::string> reports_of(F body) {
  Scheduler scheduler({.has_test_clock = true, .checks_lock_order = true});
  std::vector<std::string> reports;
  scheduler.set_lock_order([&](const std::string& report) { reports.push_back(report); });
  auto main = scheduler.spawn(FiberOptions{.name = "main"}, [&] { body(); });
  scheduler.run();
  main.join();
  return reports;
}

// Locks one and then the other, and gives both back.
template <class One, class Other>
void lock_both(One& one, Other& other) {
  const std::scoped_lock first(one);
  const std::scoped_lock second(other);
}

TEST(LockOrder, of_two_fibers_that_never_met_is_told_once) {
  const auto reports = reports_of([] {
    Mutex a, b;
    for (int i = 0; i < 3; ++i) {
      spawn(FiberOptions{.name = "there"}, [&] { lock_both(a, b); }).join();
      spawn(FiberOptions{.name = "back"}, [&] { lock_both(b, a); }).join();
    }
  });
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_NE(reports[0].find("(back) locks"), std::string::npos) << reports[0];
  EXPECT_NE(reports[0].find("(there) has locked"), std::string::npos) << reports[0];
}

TEST(LockOrder, that_is_always_the_same_is_fine) {
  EXPECT_TRUE(reports_of([] {
                Mutex a, b, c;
                for (int i = 0; i < 3; ++i) {
                  lock_both(a, b);
                  lock_both(b, c);
                  lock_both(a, c);
                }
              }).empty());
}

TEST(LockOrder, of_three_that_close_a_circle_is_told_with_the_way_back) {
  const auto reports = reports_of([] {
    Mutex a, b, c;
    lock_both(a, b);
    lock_both(b, c);
    lock_both(c, a);
  });
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_NE(reports[0].find(", and fiber"), std::string::npos) << reports[0];
}

TEST(LockOrder, counts_a_lock_that_was_waited_for) {
  EXPECT_EQ(reports_of([] {
              Mutex a, b;
              std::unique_lock held(a);
              auto other = spawn([&] { lock_both(a, b); });
              yield(); // it waits
              held.unlock();
              other.join();
              lock_both(b, a);
            }).size(),
            1u);
}

TEST(LockOrder, counts_what_try_lock_holds_but_not_what_it_tries) {
  EXPECT_TRUE(reports_of([] {
                Mutex a, b;
                lock_both(a, b);
                const std::scoped_lock first(b);
                const std::unique_lock second(a, std::try_to_lock); // it can't wait
                EXPECT_TRUE(second.owns_lock());
              }).empty());
  EXPECT_EQ(reports_of([] {
              Mutex a, b;
              lock_both(a, b);
              const std::unique_lock first(b, std::try_to_lock);
              const std::scoped_lock second(a);
            }).size(),
            1u);
}

TEST(LockOrder, forgets_a_mutex_with_its_end) {
  EXPECT_TRUE(reports_of([] {
                Mutex a;
                std::optional<Mutex> b; // always at the same address
                b.emplace();
                lock_both(a, *b);
                b.emplace();
                lock_both(*b, a);
              }).empty());
}

TEST(LockOrder, holds_for_locks_that_are_given_back_in_another_order) {
  EXPECT_TRUE(reports_of([] {
                Mutex a, b, c;
                std::unique_lock first(a);
                std::unique_lock second(b, std::try_to_lock);
                first.unlock();
                {
                  const std::scoped_lock third(c); // while b alone is held
                  second.unlock();
                }
                lock_both(c, a);
              }).empty());
}

TEST(LockOrder, is_not_concerned_by_a_lock_taken_again) {
  EXPECT_TRUE(reports_of([] {
                RecursiveMutex a;
                const std::scoped_lock first(a);
                const std::scoped_lock second(a);
              }).empty());
}

TEST(LockOrder, of_a_lock_that_was_not_had_counts_while_it_was_wanted_only) {
  const auto reports = reports_of([] {
    Mutex a, b, c;
    std::unique_lock held(b);
    auto other = spawn([&] {
      const std::scoped_lock first(a);
      EXPECT_FALSE(b.try_lock_for(1ms));
      const std::scoped_lock second(c); // a is held, b is not
    });
    other.join();
    held.unlock();
    lock_both(c, b);
  });
  EXPECT_TRUE(reports.empty()) << reports[0];
}

TEST(LockOrder, counts_a_condition_that_takes_its_mutex_again) {
  EXPECT_EQ(reports_of([] {
              Mutex a, b;
              ConditionVariable condition;
              auto waiting = spawn([&] {
                std::unique_lock first(a);
                const std::scoped_lock second(b);
                condition.wait(first); // takes a again, with b
              });
              yield();
              condition.notify_one();
              waiting.join();
            }).size(),
            1u);
}

TEST(LockOrder, counts_readers_and_writers_alike) {
  EXPECT_EQ(reports_of([] {
              SharedMutex a;
              Mutex b;
              {
                const std::shared_lock first(a);
                const std::scoped_lock second(b);
              }
              const std::scoped_lock first(b);
              const std::scoped_lock second(a);
            }).size(),
            1u);
  EXPECT_TRUE(reports_of([] {
                SharedMutex a;
                Mutex b;
                { const std::shared_lock first(a); }
                lock_both(b, a); // it was given back
                lock_both(b, a);
              }).empty());
}

TEST(LockOrder, is_told_on_standard_error_by_default_and_ends_nothing) {
  testing::internal::CaptureStderr();
  run({.checks_lock_order = true}, [] {
    Mutex a, b;
    lock_both(a, b);
    lock_both(b, a);
  });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cede: lock order: fiber 1 (main) locks"),
            std::string::npos);
}

TEST(LockOrder, is_not_looked_at_unless_asked_for) {
  testing::internal::CaptureStderr();
  run([] {
    Mutex a, b;
    lock_both(a, b);
    lock_both(b, a);
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

} // namespace
} // namespace cede
