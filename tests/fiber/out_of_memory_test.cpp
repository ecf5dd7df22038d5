// SPDX-License-Identifier: MIT
// Field reports: 28
// Each allocation of a scheduler's work fails in turn: it is reported, nothing is lost, and the
// scheduler can be used as before.
#include "support/failing_new.h"

#include <cede/cede.h>

#include <array>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <new>
#include <string>
#include <system_error>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

// Whether `f` reported that there is no memory, by an exception or by an error.
bool reports_no_memory(const std::function<std::error_code()>& f) {
  try {
    return f() == Errc::no_memory;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const std::system_error& error) {
    return error.code() == Errc::no_memory;
  }
}

// Does `work` with the first allocation failing, then with the second and so on, until none is left
// to fail. After each failure `check` sees whether all is well. Returns how often it failed.
int fail_each_allocation(const std::function<std::error_code()>& work,
                         const std::function<void()>& check) {
  for (int nth = 0;; ++nth) {
    test::allocations_until_failure = nth;
    const bool is_reported = reports_no_memory(work);
    const bool has_failed = test::allocations_until_failure < 0;
    test::allocations_until_failure = test::kNever;
    check();
    if (!has_failed)
      return nth;
    EXPECT_TRUE(is_reported) << "allocation " << nth;
  }
}

class OutOfMemory : public testing::Test {
protected:
  void SetUp() override {
    if (!test::can_fail_allocations())
      GTEST_SKIP() << "observers stand in front of this program's operator new";
    run([] {}); // what a thread needs once
  }
};

TEST_F(OutOfMemory, making_a_scheduler_leaks_nothing) {
  const long before = test::allocations_alive;
  const int failures = fail_each_allocation(
      [] {
        Scheduler scheduler;
        return std::error_code();
      },
      [&] { EXPECT_EQ(test::allocations_alive, before); });
  EXPECT_GT(failures, 2);
}

TEST_F(OutOfMemory, spawn_of_every_kind_leaves_the_scheduler_usable) {
  Scheduler scheduler(kTestClock);
  int ran = 0;
  const auto still_runs = [&] {
    ran = 0;
    scheduler.spawn([&] { ++ran; });
    scheduler.run();
    EXPECT_GE(ran, 1);
    EXPECT_EQ(scheduler.alive(), 0u);
  };
  const std::array<char, 200> large{};
  EXPECT_GT(fail_each_allocation(
                [&] {
                  scheduler.spawn([&] { ++ran; });
                  scheduler.spawn(FiberOptions{.name = "named"}, [&] { sleep_for(1ms); });
                  scheduler.spawn([&ran, large] { ran += large[0]; });
                  return std::error_code();
                },
                still_runs),
            1);
}

TEST_F(OutOfMemory, what_is_asked_of_a_fiber_is_reported_and_harms_nothing) {
  Scheduler scheduler(kTestClock);
  int exits = 0;
  const std::exception_ptr error = std::make_exception_ptr(1);
  EXPECT_GT(fail_each_allocation(
                [&] {
                  auto fiber = scheduler.spawn([] { sleep_for(1ms); });
                  Waker waker = cede::waker(fiber);
                  fiber.on_exit([&](Result<void>) { ++exits; });
                  return std::error_code();
                },
                [&] {
                  scheduler.run();
                  EXPECT_EQ(scheduler.alive(), 0u);
                }),
            2);
  EXPECT_GT(exits, 0);
  auto fiber = scheduler.spawn([] { EXPECT_THROW(yield(), int); });
  fail_each_allocation([&] { return fiber.raise(error), std::error_code(); }, [] {});
  scheduler.run();
}

TEST_F(OutOfMemory, posts_and_calls_say_so) {
  Scheduler scheduler;
  Remote remote = scheduler.remote();
  int ran = 0;
  EXPECT_EQ(fail_each_allocation(
                [&] {
                  const Result<void> posted = remote.post([&] { ++ran; });
                  return posted ? std::error_code() : posted.error();
                },
                [&] { scheduler.run(); }),
            1);
  EXPECT_EQ(ran, 1);
  auto caller = scheduler.spawn([&] {
    EXPECT_GT(fail_each_allocation(
                  [&] {
                    const Result<int> called = remote.call([&] { return ++ran; });
                    return called ? std::error_code() : called.error();
                  },
                  [] {}),
              1);
  });
  scheduler.run();
  EXPECT_EQ(ran, 2);
}

TEST_F(OutOfMemory, waits_and_ends_allocate_nothing) {
  run(kTestClock, [] {
    auto other = spawn([] {
      for (;;)
        park();
    });
    yield();
    test::allocations_until_failure = 0;
    for (int i = 0; i < 10; ++i) {
      other.wake();
      yield();
      sleep_for(1ms);
      EXPECT_EQ(park(after(1ms)), WakeReason::timed_out);
    }
    other.cancel();
    EXPECT_EQ(test::allocations_until_failure, 0);
    test::allocations_until_failure = test::kNever;
    EXPECT_EQ(AnyFiber(other).join().error(), Errc::cancelled);
  });
}

TEST_F(OutOfMemory, finish_with_a_value_says_so) {
  run([] {
    auto fiber = spawn([]() -> std::string {
      test::allocations_until_failure = 0;
      try {
        finish(std::string("x"));
      } catch (const std::bad_alloc&) {
        test::allocations_until_failure = test::kNever;
        return "no memory";
      }
    });
    EXPECT_EQ(fiber.join(), "no memory");
  });
}

TEST_F(OutOfMemory, a_whole_run_leaks_nothing_whatever_fails) {
  const std::function<std::error_code()> work = [] {
    return run(kTestClock, [] {
      Group group;
      auto fiber = group.spawn([] { sleep_for(1ms); });
      FiberLocal<int> local;
      *local = 1;
      Waker waker = cede::waker();
      return fiber.join(after(1s)).has_value() ? std::error_code() : Errc::cancelled;
    });
  };
  EXPECT_EQ(work(), std::error_code());
  const long before = test::allocations_alive;
  int nth = 0;
  const int failures = fail_each_allocation(work, [&] {
    EXPECT_EQ(test::allocations_alive, before) << "allocation " << nth;
    ++nth;
  });
  EXPECT_GT(failures, 5);
}

} // namespace
} // namespace cede
