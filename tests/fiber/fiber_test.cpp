// SPDX-License-Identifier: MIT
// Rows: L-01 L-04 L-09 D-04 D-09 P-40 P-41 P-42 P-46 P-47 P-48 P-49 P-50 X-03 X-04 X-23 X-31
// Field reports: 37 38 40
// Fibers that are made, take turns, are joined and end.
#include <cede/fiber.h>
#include <cede/generator.h>
#include <cede/scheduler.h>

#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace cede {
namespace {

// What a call throws as std::system_error; no error if it returns.
template <class F>
std::error_code error_of(F f) {
  try {
    f();
  } catch (const std::system_error& error) {
    return error.code();
  }
  return {};
}

auto steps(std::string& trace, std::string name, int count) {
  return [&trace, name, count] {
    for (int step = 1; step <= count; ++step) {
      trace += name + std::to_string(step) + " ";
      yield();
    }
  };
}

TEST(Fiber, two_that_yield_take_turns) {
  std::string trace;
  Scheduler scheduler;
  scheduler.spawn(steps(trace, "A", 3));
  scheduler.spawn(steps(trace, "B", 3));
  trace += "spawned ";
  EXPECT_EQ(scheduler.alive(), 2u);
  scheduler.run();
  EXPECT_EQ(trace, "spawned A1 B1 A2 B2 A3 B3 ");
  EXPECT_EQ(scheduler.alive(), 0u);
}

TEST(Fiber, one_that_is_spawned_in_a_round_waits_for_the_next) {
  std::string trace;
  Scheduler scheduler;
  scheduler.spawn([&] {
    trace += "A1 ";
    spawn(steps(trace, "C", 2));
    yield();
    trace += "A2 ";
  });
  scheduler.spawn(steps(trace, "B", 2));
  scheduler.run();
  EXPECT_EQ(trace, "A1 B1 C1 A2 B2 C2 ");
}

TEST(Fiber, a_hundred_that_yield_run_once_each_round) {
  std::vector<int> counts(100);
  int rounds = 0, wrong = 0;
  Scheduler scheduler;
  for (int i = 0; i < 100; ++i)
    scheduler.spawn([&, i] {
      for (int round = 0; round < 300; ++round) {
        rounds += i == 0;
        ++counts[i];
        wrong += counts[i] != rounds;
        yield();
      }
    });
  scheduler.run();
  EXPECT_EQ(rounds, 300);
  EXPECT_EQ(wrong, 0);
}

TEST(Fiber, move_only_captures_and_results_travel) {
  auto result = run([] {
    auto fiber =
        spawn([word = std::make_unique<int>(5)] { return std::make_unique<int>(*word + 1); });
    auto first = fiber.join();
    EXPECT_EQ(error_of([&] { fiber.join(); }), Errc::already_joined);
    return first;
  });
  EXPECT_EQ(*result, 6);
}

TEST(Fiber, captures_too_large_for_a_record_travel_too) {
  struct Large {
    alignas(64) char bytes[400] = {'a', 'b'};
  };
  const char last = run([large = Large()] {
    auto fiber = spawn([large] { return large; });
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&large) % 64, 0u);
    return fiber.join().bytes[1];
  });
  EXPECT_EQ(last, 'b');
}

TEST(Fiber, a_body_may_return_a_reference) {
  int target = 1;
  run([&] {
    Fiber<int&> fiber = spawn([&]() -> int& { return target; });
    fiber.join() = 2;
    fiber.join(kForever)->get() += 1;
  });
  EXPECT_EQ(target, 3);
}

TEST(Fiber, join_gives_all_who_ask_the_same_before_and_after_the_end) {
  std::string trace;
  run([&] {
    Fiber<std::string> slow = spawn([] {
      yield();
      yield();
      return std::string("done ");
    });
    auto first = spawn([&] { trace += slow.join(); });
    auto second = spawn([&] { trace += slow.join(); });
    first.join();
    second.join();
    trace += slow.join();
  });
  EXPECT_EQ(trace, "done done done ");
}

TEST(Fiber, join_throws_what_ended_the_body_each_time) {
  run([] {
    Fiber<int> broken = spawn([]() -> int { throw std::runtime_error("broken"); });
    EXPECT_THROW(broken.join(), std::runtime_error);
    EXPECT_THROW(std::ignore = broken.join(kForever), std::runtime_error);
    EXPECT_EQ(AnyFiber(broken).join().error(), Errc::failed);
  });
}

TEST(Fiber, join_of_oneself_or_in_a_circle_is_refused) {
  run([] {
    Fiber<void> a, b;
    std::error_code of_self, of_circle;
    a = spawn([&] {
      of_self = error_of([] { current().join().value(); });
      b.join();
    });
    b = spawn([&] { of_circle = error_of([&] { a.join(); }); });
    a.join();
    EXPECT_EQ(of_self, Errc::deadlock);
    EXPECT_EQ(of_circle, Errc::deadlock);
  });
}

TEST(Fiber, join_in_a_circle_is_allowed_where_an_edge_has_a_deadline) {
  run(SchedulerOptions{.has_test_clock = true}, [] {
    Fiber<void> a, b;
    a = spawn(
        [&] { EXPECT_EQ(b.join(after(std::chrono::milliseconds(5))).error(), Errc::timed_out); });
    b = spawn([&] { a.join(); });
    b.join();
  });
}

TEST(Fiber, join_outside_fibers_gives_what_is_there_and_waits_for_nothing) {
  Scheduler scheduler;
  Fiber<int> fiber = scheduler.spawn([] { return 3; });
  EXPECT_EQ(error_of([&] { fiber.join(); }), Errc::not_a_fiber);
  EXPECT_EQ(fiber.join(kForever).error(), Errc::not_a_fiber);
  scheduler.run();
  EXPECT_EQ(fiber.join(), 3);
}

TEST(Fiber, handles_of_ended_fibers_and_schedulers_harm_nobody) {
  AnyFiber stale;
  EXPECT_FALSE(stale);
  EXPECT_EQ(stale.join().error(), Errc::deadlock);
  {
    Scheduler scheduler;
    stale = scheduler.spawn(FiberOptions{.name = "early"}, [] {});
    scheduler.run();
    for (int i = 0; i < 1000; ++i) {
      int woken = 0;
      AnyFiber parker = scheduler.spawn(
          [&] { woken += park(after(std::chrono::seconds(0))) == WakeReason::woken; });
      EXPECT_FALSE(stale.wake());
      EXPECT_FALSE(stale.cancel());
      EXPECT_FALSE(stale.make_ready());
      scheduler.run();
      EXPECT_EQ(woken, 0);
      EXPECT_FALSE(parker.is_cancelled());
    }
  }
  EXPECT_EQ(stale.state(), FiberState::finished);
  EXPECT_EQ(stale.name(), "early");
  stale.set_priority(1);
  EXPECT_FALSE(stale.cancel());
}

TEST(Fiber, finish_ends_it_from_any_depth_with_a_value) {
  struct Count {
    int& count;
    ~Count() { ++count; }
  };
  int destroyed = 0;
  const std::string result = run([&] {
    return spawn([&]() -> std::string {
             std::function<void(int)> down = [&](int depth) {
               Count count{destroyed};
               if (depth > 0)
                 down(depth - 1);
               else
                 finish(std::string("from below"));
             };
             down(50);
             return "unreached";
           })
        .join();
  });
  EXPECT_EQ(result, "from below");
  EXPECT_EQ(destroyed, 51);
}

TEST(Fiber, finish_of_another_type_fails_a_check) {
  EXPECT_DEATH(run([] { finish(1.5); }), "finish with a value of another type");
  EXPECT_DEATH(finish(), "finish outside fibers");
}

TEST(Fiber, higher_priorities_go_first_and_interrupt_a_round) {
  std::string trace;
  Scheduler scheduler;
  scheduler.spawn(FiberOptions{.priority = kPriorityMin}, steps(trace, "low", 1));
  scheduler.spawn([&] {
    trace += "a1 ";
    spawn(FiberOptions{.priority = kPriorityMax}, steps(trace, "high", 2));
    yield();
    trace += "a2 ";
  });
  scheduler.spawn(steps(trace, "b", 2));
  scheduler.run();
  EXPECT_EQ(trace, "a1 high1 high2 b1 a2 b2 low1 ");
}

TEST(Fiber, set_priority_moves_a_fiber_that_is_ready_at_once) {
  std::string trace;
  Scheduler scheduler;
  AnyFiber a = scheduler.spawn(steps(trace, "a", 1));
  AnyFiber b = scheduler.spawn(steps(trace, "b", 1));
  AnyFiber c = scheduler.spawn(steps(trace, "c", 1));
  c.set_priority(2);
  a.set_priority(-1);
  EXPECT_THROW(b.set_priority(kPriorityMax + 1), std::system_error);
  EXPECT_THROW(b.set_priority(kPriorityMin - 1), std::system_error);
  scheduler.run();
  EXPECT_EQ(trace, "c1 b1 a1 ");
}

TEST(Fiber, one_that_lowers_itself_lets_the_others_go_at_its_next_yield) {
  std::string trace;
  Scheduler scheduler;
  scheduler.spawn([&] {
    current().set_priority(-2);
    trace += "a1 ";
    yield();
    trace += "a2 ";
  });
  scheduler.spawn(steps(trace, "b", 2));
  scheduler.run();
  EXPECT_EQ(trace, "a1 b1 b2 a2 ");
}

TEST(Fiber, yield_to_runs_the_one_that_is_named) {
  std::string trace;
  Scheduler scheduler;
  AnyFiber c;
  scheduler.spawn([&] {
    trace += "a1 ";
    EXPECT_TRUE(yield_to(c));
    trace += "a2 ";
    EXPECT_FALSE(yield_to(current()));
    EXPECT_FALSE(yield_to(AnyFiber()));
  });
  scheduler.spawn(steps(trace, "b", 1));
  c = scheduler.spawn(FiberOptions{.priority = kPriorityMin}, steps(trace, "c", 1));
  scheduler.run();
  EXPECT_FALSE(yield_to(c));
  EXPECT_EQ(trace, "a1 c1 b1 a2 ");
}

TEST(Fiber, schedule_leaves_until_somebody_makes_it_ready) {
  std::string trace;
  Scheduler scheduler;
  AnyFiber a = scheduler.spawn([&] {
    trace += "a1 ";
    schedule();
    trace += "a2 ";
  });
  scheduler.spawn([&] {
    EXPECT_EQ(a.state(), FiberState::waiting);
    EXPECT_TRUE(a.wake()); // a permit, for park only
    trace += "b1 ";
    yield();
    EXPECT_TRUE(a.make_ready());
    EXPECT_FALSE(a.make_ready());
    EXPECT_EQ(a.state(), FiberState::ready);
    trace += "b2 ";
  });
  scheduler.run();
  EXPECT_EQ(trace, "a1 b1 b2 a2 ");
}

TEST(Fiber, takes_the_permit_of_a_wake_without_letting_others_run) {
  run([] {
    int turns = 0;
    const AnyFiber main = current();
    auto other = spawn([&] {
      for (; turns < 100; ++turns)
        yield();
      main.wake();
    });
    yield();
    for (int i = 0; i < 5; ++i) {
      main.wake();
      const int before = turns;
      EXPECT_EQ(park(), WakeReason::woken);
      EXPECT_EQ(turns, before);
    }
    other.join();
  });
}

TEST(Fiber, says_what_it_does) {
  Scheduler scheduler;
  AnyFiber fiber = scheduler.spawn(FiberOptions{.name = "worker", .priority = 2}, [] {
    EXPECT_EQ(current().state(), FiberState::running);
    EXPECT_EQ(current().name(), "worker");
    EXPECT_EQ(current().priority(), 2);
    yield();
  });
  EXPECT_EQ(fiber.state(), FiberState::created);
  EXPECT_FALSE(current());
  scheduler.step();
  EXPECT_EQ(fiber.state(), FiberState::ready);
  scheduler.run();
  EXPECT_EQ(fiber.state(), FiberState::finished);
}

TEST(Fiber, bad_input_is_refused_and_loses_nothing) {
  Scheduler scheduler;
  void (*nothing)() = nullptr;
  EXPECT_EQ(error_of([&] { scheduler.spawn(nothing); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { scheduler.spawn(std::function<void()>()); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { scheduler.spawn(FiberOptions{.priority = 4}, [] {}); }),
            Errc::invalid_argument);
  EXPECT_EQ(error_of([] { spawn([] {}); }), Errc::not_a_fiber);
  EXPECT_EQ(error_of([] { park(); }), Errc::not_a_fiber);
  EXPECT_EQ(error_of([] { schedule(); }), Errc::not_a_fiber);
  yield();
  EXPECT_EQ(scheduler.alive(), 0u);
}

TEST(Fiber, a_generator_may_be_pulled_by_two_and_may_yield_inside) {
  std::string trace;
  run([&] {
    Generator<int> numbers([](auto& give) {
      for (int i = 1; i <= 4; ++i) {
        yield();
        give(i);
      }
    });
    auto pull = [&](const char* who) {
      return [&trace, &numbers, who] {
        for (int i = 0; i < 2; ++i) {
          try {
            trace += who + std::to_string(*numbers.begin()) + " ";
          } catch (const std::system_error& error) {
            trace += error.code() == Errc::busy ? "busy " : "? ";
          }
          yield();
        }
      };
    };
    auto a = spawn(pull("a"));
    auto b = spawn(pull("b"));
    a.join();
    b.join();
  });
  EXPECT_NE(trace.find("a1 "), std::string::npos);
  EXPECT_NE(trace.find("busy "), std::string::npos);
}

TEST(Fiber, a_hundred_thousand_short_ones_run_on_one_stack) {
  std::size_t most = 0;
  int ran = 0;
  Scheduler scheduler;
  scheduler.spawn([&] {
    for (int batch = 0; batch < 100; ++batch) {
      for (int i = 0; i < 1000; ++i)
        spawn([&] { ++ran; });
      most = std::max(most, scheduler.metrics().stacks);
      yield();
    }
  });
  scheduler.run();
  EXPECT_EQ(ran, 100'000);
  EXPECT_EQ(most, 1u);
}

} // namespace
} // namespace cede
