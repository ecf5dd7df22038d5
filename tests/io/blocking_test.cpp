// SPDX-License-Identifier: MIT
// Rows: X-29 X-36 D-03 D-17 D-24
// Blocking calls on helpers' threads.
#include "support/environment.h"

#include <cede/cede.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

// Helpers' calls stop at one until it is opened.
class Gate {
public:
  void open() { is_open_ = true; }
  void pass() {
    ++arrived_;
    while (!is_open_)
      std::this_thread::sleep_for(1ms);
  }
  // Gives way to the others until so many calls have come.
  void await(int calls) const {
    while (arrived_ < calls)
      sleep_for(1ms);
  }
  int arrived() const { return arrived_; }

private:
  std::atomic<bool> is_open_{false};
  std::atomic<int> arrived_{0};
};

TEST(Blocking, gives_what_the_call_returns) {
  run([] {
    EXPECT_EQ(blocking([] { return 7; }), 7);
    EXPECT_EQ(*blocking([] { return std::make_unique<int>(8); }), 8);
    int number = 9;
    EXPECT_EQ(&blocking([&]() -> int& { return number; }), &number);
    bool was_called = false;
    blocking([&] { was_called = true; });
    EXPECT_TRUE(was_called);
    EXPECT_EQ(blocking(after(10s), [] { return std::string("text"); }).value(), "text");
    EXPECT_EQ(&blocking(kForever, [&]() -> int& { return number; }).value().get(), &number);
    EXPECT_TRUE(blocking(kForever, [] {}));
  });
}

TEST(Blocking, throws_what_the_call_throws) {
  run([] {
    EXPECT_THROW(blocking([] { throw std::runtime_error("x"); }), std::runtime_error);
    EXPECT_THROW(blocking([]() -> int { throw 3; }), int);
    EXPECT_THROW(std::ignore = blocking(kForever, [] { throw std::runtime_error("x"); }),
                 std::runtime_error);
  });
}

TEST(Blocking, lets_the_others_go_on_and_goes_on_where_it_was_called) {
  run([] {
    const std::thread::id home = std::this_thread::get_id();
    std::thread::id helper;
    std::atomic<bool> has_fired{false};
    Fiber<void> timer = spawn([&] {
      sleep_for(1ms);
      EXPECT_EQ(std::this_thread::get_id(), home);
      has_fired = true;
    });
    blocking([&] {
      helper = std::this_thread::get_id();
      while (!has_fired) // for ever, if it blocked them
        std::this_thread::sleep_for(1ms);
    });
    EXPECT_NE(helper, home);
    EXPECT_EQ(std::this_thread::get_id(), home);
    timer.join();
  });
}

TEST(Blocking, has_so_many_helpers_and_the_rest_in_turn) {
  SchedulerOptions options;
  options.helpers = 2;
  run(options, [] {
    Gate gate;
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::vector<int> order;
    Group group;
    for (int i = 0; i < 10; ++i)
      group.spawn([&, i] {
        blocking([&, i] {
          {
            const std::scoped_lock lock(mutex);
            threads.insert(std::this_thread::get_id());
            order.push_back(i);
          }
          gate.pass();
        });
      });
    gate.await(2);
    sleep_for(5ms);
    EXPECT_EQ(gate.arrived(), 2);
    gate.open();
    group.join();
    EXPECT_EQ(threads.size(), 2u);
    EXPECT_EQ(order.size(), 10u);
    EXPECT_TRUE(order[0] + order[1] == 1);
  });
}

TEST(Blocking, does_calls_in_the_order_in_which_they_came) {
  SchedulerOptions options;
  options.helpers = 1;
  run(options, [] {
    std::string order;
    Group group;
    for (char name = 'a'; name < 'j'; ++name)
      group.spawn([&, name] { blocking([&, name] { order += name; }); });
    group.join();
    EXPECT_EQ(order, "abcdefghi");
  });
}

TEST(Blocking, refuses_more_calls_than_may_wait) {
  SchedulerOptions options;
  options.helpers = 1;
  options.helper_queue = 2;
  run(options, [] {
    Gate gate;
    Group group;
    int done = 0;
    for (int i = 0; i < 3; ++i)
      group.spawn([&] {
        blocking([&] { gate.pass(); });
        ++done;
      });
    gate.await(1);
    bool has_begun = false;
    try {
      blocking([&] { has_begun = true; });
      ADD_FAILURE() << "it was taken";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), Errc::again);
    }
    EXPECT_EQ(blocking(kForever, [&] { has_begun = true; }).error(), Errc::again);
    EXPECT_FALSE(has_begun);
    gate.open();
    group.join();
    EXPECT_EQ(done, 3);
    blocking([&] { has_begun = true; });
    EXPECT_TRUE(has_begun);
  });
}

TEST(Blocking, without_any_helper_is_refused) {
  SchedulerOptions options;
  options.helpers = 0;
  run(options, [] { EXPECT_EQ(blocking(kForever, [] {}).error(), Errc::again); });
}

TEST(Blocking, that_is_cancelled_before_it_begins_never_does) {
  SchedulerOptions options;
  options.helpers = 1;
  run(options, [] {
    Gate gate;
    std::string trace;
    Fiber<void> first = spawn([&] { blocking([&] { gate.pass(); }); });
    gate.await(1);
    Fiber<void> second = spawn([&] { blocking([&] { trace += "second "; }); });
    Fiber<void> third = spawn([&] { blocking([&] { trace += "third"; }); });
    yield();
    second.cancel();
    EXPECT_EQ(second.AnyFiber::join(kForever).error(), Errc::cancelled);
    gate.open();
    first.join();
    third.join();
    EXPECT_EQ(trace, "third");
  });
}

TEST(Blocking, that_is_cancelled_last_in_line_leaves_the_line_whole) {
  SchedulerOptions options;
  options.helpers = 1;
  run(options, [] {
    Gate gate;
    std::string trace;
    Fiber<void> first = spawn([&] { blocking([&] { gate.pass(); }); });
    gate.await(1);
    Fiber<void> last = spawn([&] { blocking([&] { trace += "last"; }); });
    yield();
    last.cancel();
    std::ignore = last.AnyFiber::join(kForever);
    Fiber<void> next = spawn([&] { blocking([&] { trace += "next"; }); });
    yield();
    gate.open();
    first.join();
    next.join();
    EXPECT_EQ(trace, "next");
  });
}

TEST(Blocking, that_is_cancelled_while_it_runs_is_asked_to_stop_and_waited_for) {
  run([] {
    std::string trace;
    std::atomic<bool> has_begun{false};
    Fiber<void> fiber = spawn([&] {
      std::string text = "on the stack";
      const std::size_t size = blocking([&](std::stop_token token) {
        has_begun = true;
        while (!token.stop_requested())
          std::this_thread::yield();
        std::this_thread::sleep_for(5ms);
        return text.size(); // it is still there
      });
      trace += std::to_string(size);
      sleep_for(0s);
      trace += " went on";
    });
    while (!has_begun)
      sleep_for(1ms);
    fiber.cancel();
    EXPECT_EQ(fiber.AnyFiber::join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(trace, "12");
  });
}

TEST(Blocking, that_ends_between_a_cancellation_and_its_fiber_s_turn_is_not_waited_for_again) {
  run([] {
    Gate gate;
    int result = 0;
    Fiber<void> fiber = spawn(FiberOptions{.priority = kPriorityMin}, [&] {
      result = blocking([&] {
        gate.pass();
        return 7;
      });
    });
    gate.await(1);
    fiber.cancel();
    gate.open();
    const TimePoint begin = now();
    while (now() - begin < 50ms)
      yield(); // services, and no turn for the fiber
    std::ignore = fiber.AnyFiber::join(kForever);
    EXPECT_EQ(result, 7);
  });
}

TEST(Blocking, needs_no_queue_while_helpers_are_free) {
  SchedulerOptions options;
  options.helpers = 1;
  options.helper_queue = 0;
  run(options, [] {
    for (int i = 0; i < 1000; ++i)
      EXPECT_TRUE(blocking(kForever, [] {}));
  });
}

TEST(Blocking, with_a_deadline_before_it_begins_never_does) {
  SchedulerOptions options;
  options.helpers = 1;
  run(options, [] {
    Gate gate;
    Fiber<void> first = spawn([&] { blocking([&] { gate.pass(); }); });
    gate.await(1);
    bool has_begun = false;
    EXPECT_EQ(blocking(after(2ms), [&] { has_begun = true; }).error(), Errc::timed_out);
    gate.open();
    first.join();
    EXPECT_FALSE(has_begun);
  });
}

TEST(Blocking, with_a_deadline_while_it_runs_is_asked_to_stop_and_its_result_counts) {
  run([] {
    Result<int> result = Errc::timed_out;
    while (!result) // until a helper takes it in time
      result = blocking(after(20ms), [&](std::stop_token token) {
        while (!token.stop_requested())
          std::this_thread::yield();
        return 5;
      });
    EXPECT_EQ(result.value(), 5);
  });
}

TEST(Blocking, is_done_under_a_shield_and_reported_in_its_scope) {
  run([] {
    int done = 0;
    std::error_code error;
    Fiber<void> fiber = spawn([&] {
      current().cancel();
      {
        const Shield shield;
        done += blocking([] { return 1; });
      }
      const CancelByResult scope;
      done += blocking([] { return 10; }); // it can't report
      error = blocking(kForever, [&] { done += 100; }).error();
    });
    fiber.join();
    EXPECT_EQ(done, 11);
    EXPECT_EQ(error, Errc::cancelled);
  });
}

TEST(Blocking, of_a_cancelled_fiber_throws_before_it_begins) {
  run([] {
    bool has_begun = false;
    Fiber<void> fiber = spawn([&] {
      current().cancel();
      blocking([&] { has_begun = true; });
    });
    EXPECT_EQ(fiber.AnyFiber::join(kForever).error(), Errc::cancelled);
    EXPECT_FALSE(has_begun);
  });
}

TEST(Blocking, on_a_plain_thread_and_inside_itself_is_a_call) {
  const std::thread::id here = std::this_thread::get_id();
  EXPECT_EQ(blocking([] { return std::this_thread::get_id(); }), here);
  run([] {
    EXPECT_TRUE(blocking([] {
      const std::thread::id helper = std::this_thread::get_id();
      return blocking([] { return std::this_thread::get_id(); }) == helper;
    }));
  });
}

TEST(Blocking, keeps_a_test_clock_from_jumping) {
  SchedulerOptions options;
  options.has_test_clock = true;
  run(options, [] {
    const TimePoint begin = now();
    std::atomic<bool> is_over{false};
    bool has_fired = false;
    Fiber<void> timer = spawn([&] {
      sleep_for(1h);
      has_fired = true;
    });
    blocking([&] { std::this_thread::sleep_for(20ms); });
    EXPECT_FALSE(has_fired);
    EXPECT_EQ(now(), begin);
    timer.join();
    is_over = true;
  });
}

TEST(Blocking, is_no_deadlock_while_it_runs) {
  Scheduler scheduler;
  Gate gate;
  Fiber<void> fiber = scheduler.spawn([&] { blocking([&] { gate.pass(); }); });
  EXPECT_EQ(scheduler.run_until(after(10ms)), Progress::timed_out);
  gate.open();
  scheduler.run();
}

TEST(Blocking, of_several_schedulers_is_done_by_helpers_of_their_own) {
  std::atomic<int> sum{0};
  run_on(3, [&] {
    for (int i = 0; i < 20; ++i)
      sum += blocking([] { return 1; });
  });
  EXPECT_EQ(sum, 60);
}

TEST(Blocking, is_shown_in_dumps) {
  Scheduler scheduler;
  Gate gate;
  Fiber<void> fiber = scheduler.spawn([&] { blocking([&] { gate.pass(); }); });
  EXPECT_EQ(scheduler.run_until(now()), Progress::timed_out);
  EXPECT_NE(scheduler.dump().find("waits: blocking"), std::string::npos) << scheduler.dump();
  gate.open();
  scheduler.run();
}

#ifndef _WIN32
TEST(Blocking, leaves_signals_to_the_program_s_own_threads) {
  run([] {
    sigset_t kept;
    blocking([&] { pthread_sigmask(SIG_BLOCK, nullptr, &kept); });
    EXPECT_EQ(sigismember(&kept, SIGTERM), 1);
    EXPECT_EQ(sigismember(&kept, SIGSEGV), 0);
    pthread_sigmask(SIG_BLOCK, nullptr, &kept);
    EXPECT_EQ(sigismember(&kept, SIGTERM), 0);
  });
}
#endif

TEST(BlockingDeathTest, in_a_post_fails_a_check) {
  EXPECT_DEATH(run([] {
                 std::ignore = remote().post([] { blocking([] {}); });
                 sleep_for(1ms);
               }),
               "a wait in what the scheduler itself calls");
}

TEST(BlockingDeathTest, inside_a_scope_of_no_suspend_fails_a_check) {
  EXPECT_DEATH(run([] {
                 const NoSuspend scope;
                 blocking([] {});
               }),
               "inside a NoSuspend scope");
}

} // namespace
} // namespace cede
