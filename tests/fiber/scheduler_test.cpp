// SPDX-License-Identifier: MIT
// Rows: C-17 L-02 L-06 L-08 L-10 L-11 L-12 L-21 P-51 P-52 P-53 P-54 P-56 X-01 X-06 X-07 X-08 X-09
// Rows: X-10 X-11 X-12 X-13 X-15 X-16 X-17 X-18 X-25 X-26 X-39 X-42 D-10 D-23 D-25 D-26
// Field reports: 44 53 60
// Schedulers: the ways to drive one, and how it ends.
#include "../../src/core/stack.h"

#include "support/environment.h"

#include <cede/fiber.h>
#include <cede/generator.h>
#include <cede/process.h>
#include <cede/remote.h>
#include <cede/scheduler.h>

#include <chrono>
#include <ctime>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

TEST(Scheduler, run_gives_what_main_returned_and_throws_what_it_threw) {
  EXPECT_EQ(run([] { return 42; }), 42);
  EXPECT_THROW(run([] { throw std::runtime_error("main"); }), std::runtime_error);
  EXPECT_EQ(run([] { return std::make_unique<int>(4); }) != nullptr, true);
}

TEST(Scheduler, run_cancels_and_drains_the_rest_when_main_returns) {
  std::string trace;
  run([&] {
    struct Says {
      std::string& trace;
      ~Says() { trace += "drained "; }
    };
    spawn([&] {
      Says says{trace};
      park();
    });
    spawn([&] { trace += "early "; });
    yield();
    spawn([&] { trace += "never "; });
  });
  EXPECT_EQ(trace, "early drained ");
}

TEST(Scheduler, without_fibers_every_way_to_drive_it_returns_closed) {
  Scheduler scheduler;
  scheduler.run();
  EXPECT_EQ(scheduler.run_until(kForever), Progress::closed);
  EXPECT_EQ(scheduler.step(), Progress::closed);
  EXPECT_EQ(scheduler.poll_for(1h), Progress::closed);
}

TEST(Scheduler, step_runs_one_fiber_for_one_slice) {
  std::string trace;
  Scheduler scheduler(kTestClock);
  for (const char* name : {"a", "b"})
    scheduler.spawn([&trace, name] {
      for (int i = 0; i < 2; ++i) {
        trace += name;
        yield();
      }
    });
  for (const char* expected : {"a", "ab", "aba", "abab"}) {
    EXPECT_EQ(scheduler.step(), Progress::worked);
    EXPECT_EQ(trace, expected);
  }
  while (scheduler.step() == Progress::worked) {
  }
  EXPECT_EQ(scheduler.alive(), 0u);
}

TEST(Scheduler, step_never_blocks) {
  Scheduler scheduler;
  scheduler.spawn([] { sleep_for(1h); });
  EXPECT_EQ(scheduler.step(), Progress::worked);
  EXPECT_EQ(scheduler.step(), Progress::timed_out);
}

TEST(Scheduler, run_until_stops_at_its_deadline_also_among_fibers_that_never_stop) {
  Scheduler scheduler;
  std::uint64_t turns = 0;
  scheduler.spawn([&] {
    for (;;) {
      ++turns;
      yield();
    }
  });
  const TimePoint end = now() + 5ms;
  EXPECT_EQ(scheduler.run_until(end), Progress::timed_out);
  EXPECT_GE(now(), end);
  EXPECT_GT(turns, 0u);
}

TEST(Scheduler, run_until_a_passed_deadline_is_one_round) {
  std::string trace;
  Scheduler scheduler(kTestClock);
  for (const char* name : {"a", "b", "c"})
    scheduler.spawn([&trace, name] {
      for (;;) {
        trace += name;
        yield();
      }
    });
  EXPECT_EQ(scheduler.run_until(scheduler.now() - 1s), Progress::timed_out);
  EXPECT_EQ(trace, "abc");
}

TEST(Scheduler, run_until_says_when_nobody_is_left_and_when_nobody_can_run) {
  Scheduler scheduler(kTestClock);
  auto fiber = scheduler.spawn([] { sleep_for(2ms); });
  EXPECT_EQ(scheduler.run_until(scheduler.now() + 1ms), Progress::timed_out);
  EXPECT_EQ(scheduler.run_until(kForever), Progress::closed);
  auto stuck = scheduler.spawn([] { park(); });
  EXPECT_EQ(scheduler.run_until(kForever), Progress::deadlock);
  EXPECT_EQ(scheduler.poll_for(1ms), Progress::deadlock);
  EXPECT_EQ(scheduler.step(), Progress::deadlock);
  EXPECT_EQ(scheduler.alive(), 1u);
}

TEST(Scheduler, poll_waits_for_the_next_deadline_and_takes_one_step) {
  Scheduler scheduler(kTestClock);
  int woken = 0;
  for (int i = 0; i < 2; ++i)
    scheduler.spawn([&] {
      sleep_for(3ms);
      ++woken;
    });
  scheduler.step();
  scheduler.step();
  EXPECT_EQ(scheduler.poll_for(1ms), Progress::timed_out);
  EXPECT_EQ(scheduler.poll_for(1h), Progress::worked);
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(scheduler.poll_for(1h), Progress::worked);
  EXPECT_EQ(scheduler.poll_for(1h), Progress::closed);
}

TEST(Scheduler, an_error_of_one_of_a_hundred_is_reported_and_the_others_finish) {
  std::vector<std::string> reports;
  int finished = 0;
  Scheduler scheduler;
  scheduler.set_unhandled([&](const AnyFiber& fiber, std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::runtime_error& exception) {
      reports.push_back(std::string(fiber.name()) + ": " + exception.what());
    }
  });
  for (int i = 0; i < 100; ++i)
    scheduler.spawn(FiberOptions{.name = i == 50 ? "unlucky" : ""}, [&, i] {
      if (i % 2 == 0)
        yield();
      if (i == 50)
        throw std::runtime_error("no luck");
      ++finished;
    });
  scheduler.run();
  EXPECT_EQ(finished, 99);
  EXPECT_EQ(reports, std::vector<std::string>{"unlucky: no luck"});
  EXPECT_EQ(scheduler.metrics().unhandled_errors, 1u);
}

TEST(Scheduler, gets_the_error_of_a_fiber_of_which_only_a_reference_is_kept) {
  int errors = 0;
  Scheduler scheduler;
  scheduler.set_unhandled([&](const AnyFiber&, const std::exception_ptr&) { ++errors; });
  const auto fail = [] { throw std::runtime_error("no luck"); };
  const AnyFiber made = scheduler.spawn(fail);
  Fiber<void> owner = scheduler.spawn(fail);
  Fiber<void> other = std::move(owner); // owns it still
  AnyFiber moved;
  moved = scheduler.spawn(fail);
  scheduler.run();
  EXPECT_EQ(errors, 2);
  moved = std::move(other);
  scheduler.run();
  EXPECT_EQ(errors, 3);
}

TEST(Scheduler, survives_a_handler_of_errors_that_fails) {
  testing::internal::CaptureStderr();
  Scheduler scheduler;
  scheduler.set_unhandled(
      [](const AnyFiber&, const std::exception_ptr&) { throw std::runtime_error("I can't"); });
  int finished = 0;
  scheduler.spawn(FiberOptions{.name = "unlucky"}, [] { throw std::runtime_error("no luck"); });
  scheduler.spawn([&] { ++finished; });
  scheduler.run();
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cede: an exception ended fiber unlucky: no luck\n"
            "cede: the handler of unhandled errors failed with that: I can't\n");
}

TEST(Scheduler, sees_that_a_fiber_has_led_out_of_it) {
  const auto lead_out = [] {
    Scheduler scheduler;
    Process outside;
    Process inside;
    Process slot;
    scheduler.spawn([&] { transfer(slot, outside); });
    const auto drive = [&](void*) {
      scheduler.run();
      return Next{outside};
    };
    newprocess(inside, drive).value();
    transfer(outside, inside);
    scheduler.run(); // which hasn't returned yet
  };
  EXPECT_DEATH(lead_out(), "a scheduler is driven from within one that is driven already");
}

TEST(Scheduler, an_error_that_nobody_joins_is_a_line_on_standard_error_by_default) {
  testing::internal::CaptureStderr();
  Scheduler scheduler;
  auto kept = scheduler.spawn([] { throw std::runtime_error("kept"); });
  scheduler.spawn(FiberOptions{.name = "loud"}, [] { throw std::runtime_error("lost"); });
  scheduler.run();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "cede: an exception ended fiber loud: lost\n");
  testing::internal::CaptureStderr();
  kept = {};
  scheduler.run();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "cede: an exception ended fiber 1: kept\n");
}

TEST(Scheduler, a_deadlock_is_reported_with_who_waits_and_ends_the_program_with_51) {
  EXPECT_EXIT(run([] {
                Fiber<void> a, b;
                a = spawn(FiberOptions{.name = "alpha"}, [&] { park(); });
                b = spawn(FiberOptions{.name = "beta"}, [&] { a.join(); });
                b.join();
              }),
              testing::ExitedWithCode(51),
              "deadlock: no fiber can ever run again\n"
              "fiber 1 .main.: waiting, priority 0, waits: join of fiber 3, spawned at .*\n"
              "fiber 2 .alpha.: waiting, priority 0, waits: park, spawned at .*\n"
              "fiber 3 .beta.: waiting, priority 0, waits: join of fiber 2, spawned at .*");
}

TEST(Scheduler, a_sleeper_or_a_remote_is_no_deadlock) {
  Scheduler scheduler(kTestClock);
  auto fiber = scheduler.spawn([] { park(after(1h)); });
  scheduler.run();
  auto waiting = scheduler.spawn([] { park(); });
  Remote remote = scheduler.remote();
  EXPECT_EQ(scheduler.step(), Progress::worked);
  EXPECT_EQ(scheduler.step(), Progress::timed_out);
  remote.unref();
  EXPECT_EQ(scheduler.step(), Progress::deadlock);
}

TEST(Scheduler, an_idle_hook_can_help) {
  int asked = 0;
  AnyFiber parked;
  Scheduler scheduler;
  scheduler.set_idle([&] {
    ++asked;
    return parked.wake();
  });
  parked = scheduler.spawn([] {
    EXPECT_EQ(park(), WakeReason::woken);
    EXPECT_EQ(park(), WakeReason::woken);
  });
  scheduler.run();
  EXPECT_EQ(asked, 2);
}

TEST(Scheduler, an_idle_hook_that_waits_fails_a_check) {
  EXPECT_DEATH(
      {
        Scheduler scheduler;
        scheduler.set_idle([] {
          sleep_for(1h);
          return true;
        });
        scheduler.spawn([] { park(); });
        scheduler.run();
      },
      "a sleep in what the scheduler itself calls");
}

TEST(Scheduler, destroying_it_unwinds_who_is_left) {
  std::string trace;
  struct Says {
    std::string& trace;
    ~Says() { trace += "gone "; }
  };
  {
    Scheduler scheduler;
    for (int i = 0; i < 3; ++i)
      scheduler.spawn([&] {
        Says says{trace};
        park();
      });
    scheduler.spawn([says = std::make_unique<Says>(Says{trace})] {});
    trace.clear();
    scheduler.step();
    scheduler.step();
  }
  EXPECT_EQ(trace, "gone gone gone "); // two that wait, and the captures of one that never ran
}

TEST(Scheduler, close_has_to_be_driven_and_cancels_what_is_spawned_later) {
  bool ran = false;
  Scheduler scheduler;
  auto fiber = scheduler.spawn([] { park(); });
  scheduler.step();
  scheduler.close();
  scheduler.close();
  EXPECT_EQ(scheduler.alive(), 1u);
  auto late = scheduler.spawn([&] { ran = true; });
  scheduler.run();
  EXPECT_EQ(scheduler.alive(), 0u);
  EXPECT_FALSE(ran);
  EXPECT_TRUE(late.is_cancelled());
  EXPECT_EQ(late.join(kForever).error(), Errc::cancelled);
}

TEST(Scheduler, drain_names_those_who_are_left_at_its_deadline) {
  Scheduler scheduler(kTestClock);
  auto stubborn = scheduler.spawn(FiberOptions{.name = "stubborn"}, [] {
    Shield shield;
    sleep_for(1h);
  });
  scheduler.spawn([] { park(); });
  scheduler.step();
  const std::vector<FiberInfo> left = scheduler.drain(scheduler.now() + 5s);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].name, "stubborn");
  EXPECT_STREQ(left[0].waits_for, "sleep");
  EXPECT_TRUE(scheduler.drain(kForever).empty());
}

TEST(Scheduler, is_driven_by_its_own_thread_and_not_from_within) {
  Scheduler scheduler;
  EXPECT_DEATH(std::thread([&] { scheduler.run(); }).join(), "driven on another thread");
  EXPECT_DEATH(std::thread([&] { std::ignore = scheduler.alive(); }).join(), "use its Remote");
  EXPECT_DEATH(std::thread([&] { scheduler.spawn([] {}); }).join(), "on another thread");
  EXPECT_DEATH(run([] { run([] {}); }), "driven from within");
  EXPECT_DEATH(
      {
        scheduler.spawn([&] { scheduler.step(); });
        scheduler.run();
      },
      "driven from within");
}

TEST(Scheduler, handles_are_used_on_its_thread_only) {
  Scheduler scheduler;
  AnyFiber fiber = scheduler.spawn([] { park(); });
  EXPECT_DEATH(std::thread([&] { fiber.wake(); }).join(), "use a Waker or a Remote");
  EXPECT_DEATH(std::thread([&] { fiber.cancel(); }).join(), "use a Waker or a Remote");
  scheduler.spawn([&] { fiber.wake(); });
  scheduler.run();
}

TEST(Scheduler, orders_by_priority_in_turn_or_at_random) {
  auto trace_of = [](SchedulerOptions options) {
    std::string trace;
    Scheduler scheduler(options);
    for (int i = 0; i < 8; ++i)
      scheduler.spawn(FiberOptions{.priority = i % 2}, [&trace, i] {
        trace += static_cast<char>('a' + i);
        yield();
        trace += static_cast<char>('A' + i);
      });
    scheduler.run();
    return trace;
  };
  EXPECT_EQ(trace_of({}), "bdfhBDFHacegACEG");
  EXPECT_EQ(trace_of({.order = ReadyOrder::in_turn}), "abcdefghABCDEFGH");
  const std::string one = trace_of({.order = ReadyOrder::at_random, .seed = 1});
  EXPECT_EQ(one, trace_of({.order = ReadyOrder::at_random, .seed = 1}));
  EXPECT_NE(one, trace_of({.order = ReadyOrder::at_random, .seed = 2}));
  EXPECT_EQ(one.size(), 16u);
}

TEST(Scheduler, timers_are_served_though_somebody_always_yields) {
  for (const int priority : {kPriorityNormal, kPriorityMax}) {
    bool stop = false;
    run([&] {
      spawn(FiberOptions{.priority = priority}, [&] {
        sleep_for(2ms);
        stop = true;
      });
      while (!stop)
        yield();
    });
    EXPECT_TRUE(stop);
  }
}

TEST(Scheduler, a_higher_priority_keeps_the_lower_from_running_and_nobody_from_waking) {
  run([] {
    current().set_priority(kPriorityMax);
    AnyFiber sleeper = spawn([] {
      sleep_for(1ms);
      park();
    });
    sleep_for(1ms);
    while (sleeper.state() != FiberState::ready)
      yield();
    for (int i = 0; i < 1000; ++i)
      yield();
    EXPECT_EQ(sleeper.state(), FiberState::ready);
  });
}

TEST(Scheduler, a_fiber_that_yields_for_nothing_lets_equals_run_as_often) {
  int a = 0, b = 0, most = 0;
  run([&] {
    auto first = spawn([&] {
      for (int i = 0; i < 1000; ++i) {
        ++a;
        most = std::max(most, std::abs(a - b));
        sleep_for(0s);
      }
    });
    auto second = spawn([&] {
      for (int i = 0; i < 1000; ++i) {
        ++b;
        most = std::max(most, std::abs(a - b));
        yield();
      }
    });
    first.join();
    second.join();
  });
  EXPECT_LE(most, 2);
}

TEST(Scheduler, a_sleep_costs_no_processor_time) {
  if (test::is_observed() || test::kEmulated)
    GTEST_SKIP() << "the observer works while the program sleeps";
  const std::clock_t before = std::clock();
  Scheduler scheduler;
  scheduler.spawn([] { sleep_for(200ms); });
  scheduler.run();
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.05);
  EXPECT_LT(scheduler.metrics().switches, 50u);
}

TEST(Scheduler, ten_thousand_fibers_take_no_thread) {
  int woken = 0;
  const int count = test::scaled(10000, 100);
  run(kTestClock, [&] {
    for (int i = 0; i < count; ++i)
      spawn([&] {
        sleep_for(1ms);
        ++woken;
      });
    sleep_for(2ms);
  });
  EXPECT_EQ(woken, count);
}

TEST(Scheduler, threads_that_had_one_leave_no_stack_behind) {
  const std::size_t before = core::count_stacks().in_use;
  for (int i = 0; i < 3; ++i)
    std::thread([] {
      run([] {
        auto child = spawn([] { yield(); });
        child.join();
      });
    }).join();
  EXPECT_EQ(core::count_stacks().in_use, before);
}

TEST(Scheduler, metrics_move_with_their_causes) {
  Scheduler scheduler(kTestClock);
  scheduler.spawn([] { sleep_for(1h); });
  scheduler.spawn([] { park(); });
  scheduler.spawn([] {});
  EXPECT_EQ(scheduler.metrics().alive, 3u);
  EXPECT_EQ(scheduler.metrics().stacks, 0u);
  scheduler.step();
  scheduler.step();
  scheduler.step();
  const SchedulerMetrics metrics = scheduler.metrics();
  EXPECT_EQ(metrics.alive, 2u);
  EXPECT_EQ(metrics.stacks, 2u);
  EXPECT_EQ(metrics.deadlines, 1u);
  EXPECT_EQ(metrics.spawned, 3u);
  EXPECT_GE(metrics.switches, 3u);
}

TEST(Scheduler, says_where_each_fiber_was_spawned) {
  const auto place = [](unsigned line) { return std::string(__FILE__ ":") + std::to_string(line); };
  Scheduler scheduler;
  const auto spawns = [] { spawn([] {}); };
  const unsigned line = __LINE__;
  scheduler.spawn(spawns);
  scheduler.spawn(FiberOptions{}, [] {});
  const std::vector<FiberInfo> fibers = scheduler.fibers();
  EXPECT_EQ(fibers.at(0).spawned_at, place(line + 1));
  EXPECT_EQ(fibers.at(1).spawned_at, place(line + 2));
  scheduler.step();
  EXPECT_EQ(scheduler.fibers().back().spawned_at, place(line - 1));
}

TEST(Scheduler, says_that_main_was_spawned_where_run_was_called) {
  const std::string here = std::string(__FILE__ ":") + std::to_string(__LINE__ + 1);
  EXPECT_EXIT(run([] { park(); }), testing::ExitedWithCode(51), "spawned at " + here);
}

TEST(Scheduler, dump_tells_each_fiber_and_circles) {
  Scheduler scheduler(kTestClock);
  Fiber<void> a, b;
  a = scheduler.spawn(FiberOptions{.name = "a"}, [&] {
    EXPECT_THROW(b.join(), std::system_error);
    b.cancel();
  });
  b = scheduler.spawn(FiberOptions{.name = "b", .priority = 1}, [&] {
    sleep_for(1500us);
    a.join();
  });
  scheduler.step();
  const std::string dump = scheduler.dump();
  EXPECT_NE(dump.find("fiber 1 (a): created, priority 0, spawned at "), std::string::npos) << dump;
  EXPECT_NE(dump.find("fiber 2 (b): waiting, priority 1, waits: sleep, 1500 us left, spawned at "),
            std::string::npos)
      << dump;
}

} // namespace
} // namespace cede
