// SPDX-License-Identifier: MIT
// Rows: C-01 C-02 C-03 C-04 C-05 C-06 C-07 C-08 C-09 C-T1 C-T2 C-T4 C-T5 C-T7 C-T8
// Limits: who runs when, and who waits for them.
#include "support/limits.h"

#include <cede/fiber.h>
#include <cede/limit.h>
#include <cede/scheduler.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;
using test::counts;
using test::error_of;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};
// No system has as much.
constexpr FiberOptions kHuge{.stack = {.bytes = std::size_t{1} << 62}};

// What a scheduler's handler was told of while `main` and all others ran.
std::vector<std::exception_ptr> unhandled_of(auto main) {
  std::vector<std::exception_ptr> told;
  Scheduler scheduler(kTestClock);
  scheduler.set_unhandled(
      [&](const AnyFiber&, std::exception_ptr error) { told.push_back(std::move(error)); });
  scheduler.spawn(main);
  scheduler.run();
  return told;
}

template <class... Args>
constexpr bool kCanMake = std::is_constructible_v<Limit, Args...>;
static_assert(kCanMake<int> && kCanMake<unsigned char> && kCanMake<unsigned long long>);
static_assert(!kCanMake<double> && !kCanMake<float> && !kCanMake<bool> && !kCanMake<>);
static_assert(!std::is_convertible_v<int, Limit> && !kCanMake<const Limit&> && !kCanMake<Limit>);

TEST(Limit, is_a_whole_number_of_fibers_of_at_least_one) {
  EXPECT_EQ(error_of([] { Limit limit(0); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([] { Limit limit(0u); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([] { Limit limit(-1); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([] { Limit limit(std::int64_t{-1} << 40); }), Errc::invalid_argument);
  EXPECT_EQ(Limit(1).max(), 1u);
  EXPECT_EQ(Limit(std::uint8_t{200}).max(), 200u);
  EXPECT_EQ(Limit(std::size_t{1} << 40).max(), std::size_t{1} << 40);
}

TEST(Limit, of_one_runs_its_fibers_one_after_the_other) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    for (const char* name : {"a", "b", "c"})
      limit.spawn([&trace, name] {
        trace += name;
        sleep_for(1ms);
        trace += name;
      });
    EXPECT_EQ(trace, ""); // none before its turn
    limit.wait();
  });
  EXPECT_EQ(trace, "aabbcc");
}

TEST(Limit, spawn_gives_what_the_plain_one_gives) {
  run(kTestClock, [] {
    Limit limit(1);
    Fiber<int> seven = limit.spawn([] { return 7; });
    auto unique = limit.spawn([it = std::make_unique<int>(8)]() mutable { return std::move(it); });
    int value = 9;
    Fiber<int&> reference = limit.spawn([&]() -> int& { return value; });
    Fiber<void> named = limit.spawn({.name = "named", .priority = 2}, [] { park(); });
    EXPECT_EQ(named.name(), "named");
    EXPECT_EQ(named.priority(), 2);
    EXPECT_EQ(&reference.join(), &value);
    EXPECT_EQ(*unique.join(), 8);
    EXPECT_EQ(seven.join(), 7);
    EXPECT_TRUE(named.cancel());
    EXPECT_EQ(named.join(kForever).error(), Errc::cancelled);

    EXPECT_EQ(error_of([&] { limit.spawn(std::function<void()>()); }), Errc::invalid_argument);
    EXPECT_EQ(error_of([&] { limit.spawn({.priority = 9}, [] {}); }), Errc::invalid_argument);
    EXPECT_EQ(counts(limit), "0 0");
  });
  Limit limit(1);
  EXPECT_EQ(error_of([&] { limit.spawn([] {}); }), Errc::not_a_fiber);
}

TEST(Limit, a_member_spawns_others_also_if_there_is_room_for_it_alone) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    limit.spawn([&] {
      for (const char* name : {"b", "c"})
        limit.spawn([&trace, &limit, name] {
          EXPECT_EQ(limit.running(), 1u);
          trace += name;
        });
      EXPECT_EQ(counts(limit), "1 2");
      yield();
      trace += "a";
    });
    limit.wait();
  });
  EXPECT_EQ(trace, "abc");
}

struct Inside {
  std::size_t& count;
  explicit Inside(std::size_t& counted) : count(counted) { ++count; }
  ~Inside() { --count; }
};

// Fibers that come to every kind of end, some after hours in the queue.
TEST(Limit, never_are_more_started_and_unfinished_and_always_as_many_as_may_be) {
  std::size_t inside = 0;
  std::size_t peak = 0;
  const auto lost = unhandled_of([&] {
    std::mt19937 random(2);
    Limit limit(5);
    std::vector<AnyFiber> fibers;
    for (int i = 0; i < 100; ++i) {
      Fiber<void> fiber = limit.spawn([&, pause = random() % 2000 * 1s, i] {
        const Inside scope(inside);
        peak = std::max(peak, inside);
        sleep_for(pause);
        EXPECT_TRUE(inside == 5 || limit.queued() == 0);
        if (i % 5 == 0)
          throw i;
      });
      fibers.push_back(fiber);
    }
    for (int i = 0; i < 100; i += 7) {
      fibers[i].cancel();
      sleep_for(500s);
    }
    limit.wait();
  });
  EXPECT_EQ(inside, 0u);
  EXPECT_EQ(peak, 5u);
  EXPECT_GT(lost.size(), 10u);
}

TEST(Limit, a_queued_one_waits_however_long_the_others_take) {
  run(kTestClock, [] {
    Limit limit(1);
    const TimePoint begin = now();
    limit.spawn([] { sleep_for(1000h); });
    Fiber<TimePoint> second = limit.spawn([] { return now(); });
    sleep_for(999h);
    EXPECT_EQ(second.state(), FiberState::created);
    EXPECT_EQ(counts(limit), "1 1");
    EXPECT_EQ(second.join() - begin, 1000h);
  });
}

TEST(Limit, wait_returns_without_a_switch_if_there_is_nobody) {
  Scheduler scheduler(kTestClock);
  Limit limit(1);
  EXPECT_TRUE(limit.wait(after(-1ms))); // outside fibers too
  scheduler.spawn([&] {
    Fiber<void> other = spawn([] {});
    const auto switches = scheduler.metrics().switches;
    limit.wait();
    EXPECT_TRUE(limit.wait(after(-1ms)));
    EXPECT_EQ(scheduler.metrics().switches, switches);
    EXPECT_EQ(other.state(), FiberState::created);
  });
  scheduler.run();
}

TEST(Limit, wait_waits_for_those_that_have_not_started) {
  run(kTestClock, [] {
    Limit limit(1);
    int ended = 0;
    for (int i = 0; i < 3; ++i)
      limit.spawn([&] { ++ended; });
    EXPECT_EQ(counts(limit), "1 2");
    limit.wait();
    EXPECT_EQ(ended, 3);
    EXPECT_EQ(counts(limit), "0 0");
  });
}

TEST(Limit, outside_fibers_nobody_can_wait) {
  Limit limit(1);
  Scheduler scheduler(kTestClock);
  scheduler.spawn([&] {
    limit.spawn([] { sleep_for(1ms); });
    std::thread([&] { EXPECT_EQ(limit.wait(kForever).error(), Errc::not_a_fiber); }).join();
  });
  EXPECT_EQ(scheduler.run_until(scheduler.now() + 1us), Progress::timed_out);
  EXPECT_EQ(error_of([&] { limit.wait(); }), Errc::not_a_fiber);
  scheduler.run();
  EXPECT_TRUE(limit.wait(kForever));
}

// Has one in the only place and one behind it; the first is brought to its end by `end`.
void expect_given_back(const FiberOptions& options, std::function<void()> body,
                       const std::function<void(AnyFiber)>& end) {
  Limit limit(1);
  Fiber<void> first = limit.spawn(options, std::move(body));
  Fiber<void> second = limit.spawn([&] { EXPECT_EQ(counts(limit), "1 0"); });
  end(first);
  limit.wait();
  EXPECT_EQ(counts(limit), "0 0");
  EXPECT_TRUE(second.join(kForever));
  EXPECT_FALSE(AnyFiber(first).join());
}

TEST(Limit, however_one_ends_the_next_one_starts_and_who_waits_is_woken) {
  const auto lost = unhandled_of([] {
    const auto nothing = [](const AnyFiber&) {};
    const auto cancel = [](const AnyFiber& fiber) { fiber.cancel(); };
    const auto cancel_running = [](const AnyFiber& fiber) {
      yield();
      fiber.cancel();
    };
    expect_given_back(
        {}, [] { throw 1; }, nothing);
    expect_given_back(
        {}, [] { park(); }, cancel);
    expect_given_back(
        {}, [] { park(); }, cancel_running);
    expect_given_back(
        {}, [] { yield(), yield(); }, cancel_running);
    expect_given_back(
        {}, [] { park(); }, [](const AnyFiber& fiber) { fiber.raise(std::make_exception_ptr(1)); });
    expect_given_back(
        kHuge, [] {}, nothing);
    Limit limit(1);
    Fiber<int> finishing = limit.spawn([]() -> int { finish(7); });
    limit.spawn([] {});
    limit.wait();
    EXPECT_EQ(finishing.join(), 7);
  });
  EXPECT_EQ(lost.size(), 2u); // join() of a plain handle takes none
}

TEST(Limit, the_next_one_is_ready_before_who_joins) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    Fiber<void> first = limit.spawn([] { sleep_for(1ms); });
    limit.spawn([&] { trace += "next "; });
    spawn([&] {
      first.join();
      trace += "joiner";
    });
    limit.wait();
  });
  EXPECT_EQ(trace, "next joiner");
}

TEST(Limit, an_error_is_its_joiners_or_the_handlers_after_the_place_was_given_back) {
  const auto error = std::make_exception_ptr(std::runtime_error("it"));
  Limit limit(1);
  std::string at_handler;
  std::vector<std::exception_ptr> told;
  Scheduler scheduler(kTestClock);
  scheduler.set_unhandled([&](const AnyFiber&, std::exception_ptr lost) {
    told.push_back(lost);
    at_handler = counts(limit);
  });
  scheduler.spawn([&] {
    const auto throws = [&] { std::rethrow_exception(error); };
    limit.spawn(throws);
    Fiber<void> joined = limit.spawn(throws);
    try {
      joined.join();
      ADD_FAILURE();
    } catch (const std::runtime_error&) {
      EXPECT_EQ(std::current_exception(), error);
    }
    EXPECT_EQ(counts(limit), "0 0");
    limit.wait(); // it throws nobody's error
  });
  scheduler.run();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], error);
  EXPECT_EQ(at_handler, "1 0"); // the other one has it
}

TEST(Limit, a_value_is_no_error_and_an_error_without_content_is_one) {
  std::size_t values = 0;
  const auto lost = unhandled_of([&] {
    Limit limit(1);
    limit.spawn([] { return true; });
    limit.spawn([] { return std::make_error_code(std::errc::io_error); });
    limit.spawn([] { return std::make_exception_ptr(1); });
    values += limit.spawn([] { return Result<int>(Errc::failed); }).join() ? 0 : 1;
    values += limit.spawn([] { return std::string("error"); }).join().size();
    limit.spawn([] { throw nullptr; });
    limit.spawn([] { throw std::exception_ptr(); });
    limit.spawn([] { throw false; });
    limit.wait();
  });
  EXPECT_EQ(values, 6u);
  EXPECT_EQ(lost.size(), 3u);
}

TEST(Limit, starts_are_first_come_first_served_whatever_the_priority) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(2);
    const auto member = [&](const char* name) {
      return [&trace, name] {
        trace += name;
        sleep_for(1ms);
      };
    };
    for (const char* name : {"a", "b", "c", "d"})
      limit.spawn(member(name));
    limit.spawn({.priority = kPriorityMax}, member("e"));
    limit.spawn({.priority = kPriorityMin}, member("f"));
    limit.spawn({.priority = kPriorityMax}, member("g"));
    limit.wait();
  });
  EXPECT_EQ(trace, "abcdefg");
}

TEST(Limit, who_waits_stands_in_nobodys_way) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(2);
    limit.spawn([] { sleep_for(5ms); });
    spawn([&] {
      limit.wait();
      trace += "waiter ";
    });
    yield();
    for (const char* name : {"a ", "b "})
      limit.spawn([&trace, name] { trace += name; });
    EXPECT_EQ(counts(limit), "2 1");
    sleep_for(1ms);
    EXPECT_EQ(trace, "a b ");
    sleep_for(5ms);
  });
  EXPECT_EQ(trace, "a b waiter ");
}

TEST(Limit, all_who_wait_are_woken_though_the_first_spawns_again) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    limit.spawn([] { sleep_for(1ms); });
    spawn([&] {
      limit.wait();
      trace += "a ";
      limit.spawn([&] {
        sleep_for(1ms);
        trace += "member ";
      });
    });
    spawn([&] {
      limit.wait();
      EXPECT_EQ(limit.running(), 1u);
      trace += "b ";
    });
    spawn([&] {
      sleep_for(1ms);
      yield();
      limit.wait(); // it came later
      trace += "c ";
    });
    sleep_for(5ms);
  });
  EXPECT_EQ(trace, "a b member c ");
}

TEST(Limit, who_waited_first_is_woken_first) {
  std::string trace;
  run(kTestClock, [&] {
    Limit limit(1);
    limit.spawn([] { sleep_for(1ms); });
    for (int i = 0; i < 6; ++i)
      spawn([&, i] {
        sleep_for((7 * i % 6) * 1us);
        limit.wait();
        trace += static_cast<char>('0' + i);
      });
    sleep_for(2ms);
  });
  EXPECT_EQ(trace, "012345");
}

TEST(Limit, a_wake_does_not_end_its_wait) {
  run(kTestClock, [] {
    Limit limit(1);
    limit.spawn([] { sleep_for(5ms); });
    Fiber<void> waits = spawn([&] {
      limit.wait();
      EXPECT_EQ(counts(limit), "0 0");
      EXPECT_EQ(park(after(1ms)), WakeReason::woken); // that is what it was for
    });
    yield();
    waits.wake();
    waits.make_ready();
    yield();
    EXPECT_EQ(waits.state(), FiberState::waiting);
    waits.join();
  });
}

TEST(Limit, a_member_that_waits_would_never_go_on) {
  run(kTestClock, [] {
    Limit limit(1);
    Limit other(1);
    limit.spawn([&] {
      EXPECT_EQ(limit.wait(kForever).error(), Errc::deadlock);
      EXPECT_EQ(error_of([&] { limit.wait(); }), Errc::deadlock);
      EXPECT_EQ(limit.wait(after(1ms)).error(), Errc::timed_out);
      EXPECT_EQ(limit.wait(after(-1ms)).error(), Errc::timed_out);
      other.spawn([] { sleep_for(1ms); });
      other.wait();
    });
    limit.spawn([] {});
    limit.wait();
  });
}

TEST(Limit, a_wait_that_times_out_or_is_cancelled_leaves_nothing_behind) {
  run(kTestClock, [] {
    Limit limit(1);
    limit.spawn([] { sleep_for(5ms); });
    for (int i = 0; i < 1000; ++i)
      EXPECT_EQ(limit.wait(after(0ns)).error(), Errc::timed_out);
    Fiber<WakeReason> cancelled = spawn([&] {
      try {
        limit.wait();
      } catch (const Cancelled&) {
        const Shield shield;
        return park(after(1s)); // nothing of the limit ends it
      }
      return WakeReason::woken;
    });
    Fiber<WakeReason> timed = spawn([&] {
      EXPECT_EQ(limit.wait(after(1ms)).error(), Errc::timed_out);
      return park(after(1s));
    });
    yield();
    cancelled.cancel();
    EXPECT_TRUE(limit.wait(after(1s)));
    EXPECT_EQ(cancelled.join(), WakeReason::timed_out);
    EXPECT_EQ(timed.join(), WakeReason::timed_out);
  });
}

TEST(Limit, a_cancelled_fiber_does_not_begin_to_wait) {
  run(kTestClock, [] {
    Limit limit(1);
    Fiber<void> cancelled = spawn([&] {
      current().cancel();
      EXPECT_THROW(limit.wait(), Cancelled); // also if it need not wait
      limit.spawn([] { sleep_for(1ms); });
      EXPECT_THROW((void)limit.wait(after(1ms)), Cancelled);
      const CancelByResult by_result;
      EXPECT_EQ(limit.wait(after(1ms)).error(), Errc::cancelled);
      EXPECT_EQ(limit.running(), 1u);
      limit.wait(); // this form can't report it
      EXPECT_EQ(limit.running(), 0u);
    });
    EXPECT_TRUE(cancelled.join(kForever));
  });
}

TEST(LimitMisuse, waited_for_where_nothing_may_wait) {
  EXPECT_DEATH(run(kTestClock,
                   [] {
                     const NoSuspend scope;
                     Limit(1).wait();
                   }),
               "a wait inside a NoSuspend scope");
}

} // namespace
} // namespace cede
