// SPDX-License-Identifier: MIT
// Rows: L-19 P-33 P-55 X-30 X-39
// What else can be asked of a fiber: to stop for a while, to throw, to say when it ends, and to
// call something at each switch.
#include <cede/fiber.h>
#include <cede/scheduler.h>

#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

TEST(Suspend, keeps_a_fiber_from_running_in_each_of_its_states) {
  std::string trace;
  run(kTestClock, [&] {
    auto created = spawn([&] { trace += "created "; });
    auto ready = spawn([&] {
      yield();
      trace += "ready ";
    });
    auto waiting = spawn([&] {
      sleep_for(1ms);
      trace += "waiting ";
    });
    EXPECT_TRUE(created.suspend());
    EXPECT_FALSE(created.suspend());
    yield();
    EXPECT_TRUE(ready.suspend());
    EXPECT_TRUE(waiting.suspend());
    EXPECT_TRUE(waiting.is_suspended());
    sleep_for(10ms);
    EXPECT_EQ(trace, "");
    EXPECT_EQ(waiting.state(), FiberState::ready); // its time has come, its turn has not
    EXPECT_TRUE(waiting.resume());
    EXPECT_TRUE(created.resume());
    EXPECT_TRUE(ready.resume());
    EXPECT_FALSE(ready.resume());
    sleep_for(1ms);
    EXPECT_FALSE(ready.suspend());
  });
  EXPECT_EQ(trace, "waiting created ready ");
}

TEST(Suspend, of_oneself_leaves_at_once) {
  std::string trace;
  run([&] {
    AnyFiber self = spawn([&] {
      trace += "a ";
      current().suspend();
      trace += "b ";
    });
    yield();
    yield();
    trace += "- ";
    self.resume();
    yield();
  });
  EXPECT_EQ(trace, "a - b ");
}

TEST(Suspend, gives_way_to_a_cancellation) {
  run([&] {
    auto self = spawn([] { current().suspend(); });
    auto created = spawn([] {});
    created.suspend();
    yield();
    EXPECT_TRUE(self.cancel());
    EXPECT_TRUE(created.cancel());
    EXPECT_EQ(AnyFiber(self).join().error(), Errc::cancelled);
    EXPECT_EQ(AnyFiber(created).join().error(), Errc::cancelled);
  });
}

TEST(Suspend, is_refused_by_who_has_to_end) {
  run([&] {
    auto created = spawn([] {});
    created.cancel();
    EXPECT_FALSE(created.suspend());
    EXPECT_EQ(AnyFiber(created).join().error(), Errc::cancelled);
    auto shielded = spawn([] {
      const Shield shield;
      current().cancel();
      EXPECT_FALSE(current().suspend());
      return 1;
    });
    EXPECT_EQ(shielded.join(), 1);
  });
}

TEST(Raise, throws_once_at_the_wait_that_it_finds) {
  std::string trace;
  run(kTestClock, [&] {
    const auto error = std::make_exception_ptr(std::runtime_error("raised "));
    const auto catch_in = [&](auto wait) {
      auto fiber = spawn([&trace, wait] {
        try {
          wait();
          trace += "after ";
        } catch (const std::runtime_error& raised) {
          trace += raised.what();
        }
        yield(); // it is thrown once
        sleep_for(1ms);
      });
      yield();
      EXPECT_TRUE(fiber.raise(error));
      EXPECT_FALSE(fiber.raise(error));
      fiber.join();
      EXPECT_FALSE(fiber.raise(error));
    };
    catch_in([] { yield(); });
    catch_in([] { sleep_for(1h); });
    catch_in([] { park(); });
    catch_in([] { current().suspend(); });
    EXPECT_THROW(current().raise(nullptr), std::system_error);
  });
  EXPECT_EQ(trace, "raised raised raised raised ");
}

TEST(Raise, waits_for_the_end_of_a_shield_and_for_one_that_has_not_begun) {
  std::string trace;
  run(kTestClock, [&] {
    auto fiber = spawn([&] {
      try {
        {
          Shield shield;
          sleep_for(1ms);
          trace += "shielded ";
        }
        yield();
      } catch (const std::runtime_error&) {
        trace += "raised ";
      }
    });
    fiber.raise(std::make_exception_ptr(std::runtime_error("early")));
    fiber.join();
  });
  EXPECT_EQ(trace, "shielded raised ");
}

TEST(Raise, and_a_cancellation_are_both_met) {
  std::string trace;
  run([&] {
    auto fiber = spawn([&] {
      try {
        yield();
      } catch (const std::runtime_error&) {
        trace += "raised ";
      }
      try {
        yield();
      } catch (const Cancelled&) {
        trace += "cancelled ";
        throw;
      }
    });
    yield();
    fiber.raise(std::make_exception_ptr(std::runtime_error("first")));
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "raised cancelled ");
}

TEST(OnExit, is_called_newest_first_after_the_clean_up_and_before_the_joiners) {
  std::string trace;
  struct Says {
    std::string& trace;
    ~Says() { trace += "destructor "; }
  };
  run([&] {
    auto fiber = spawn([&] {
      Says says{trace};
      yield();
    });
    EXPECT_TRUE(fiber.on_exit([&](Result<void> how) { trace += how ? "old " : "? "; }));
    EXPECT_TRUE(fiber.on_exit([&](Result<void> how) { trace += how ? "new " : "? "; }));
    fiber.join();
    trace += "joined";
    EXPECT_FALSE(fiber.on_exit([](Result<void>) {}));
    EXPECT_THROW(fiber.on_exit(nullptr), std::system_error);
  });
  EXPECT_EQ(trace, "destructor new old joined");
}

TEST(OnExit, says_how_it_ended_also_of_one_that_never_ran) {
  std::vector<std::error_code> ends;
  run([&] {
    const auto note = [&](Result<void> how) {
      ends.push_back(how ? std::error_code() : how.error());
    };
    auto fails = spawn([] { throw std::logic_error("fails"); });
    auto never = spawn([] {});
    fails.on_exit(note);
    never.on_exit(note);
    never.cancel();
    EXPECT_THROW(fails.join(), std::logic_error);
    yield();
  });
  EXPECT_EQ(ends, (std::vector<std::error_code>{Errc::failed, Errc::cancelled}));
}

TEST(OnExit, must_not_wait_and_may_throw) {
  int reports = 0;
  Scheduler scheduler;
  scheduler.set_unhandled([&](const AnyFiber&, std::exception_ptr) { ++reports; });
  auto fiber = scheduler.spawn([] {});
  fiber.on_exit([](Result<void>) { throw std::runtime_error("exit"); });
  scheduler.run();
  EXPECT_EQ(reports, 1);
  EXPECT_DEATH(
      {
        scheduler.spawn([] {}).on_exit([](Result<void>) { yield(); });
        scheduler.run();
      },
      "a wait in what the scheduler itself calls");
}

// Adds one to a number, with the others running in between.
void add_slowly(int& number) {
  const int before = number;
  yield();
  number = before + 1;
}

TEST(NoSuspend, says_where_an_update_would_be_lost) {
  int number = 0;
  run([&] {
    auto one = spawn([&] { add_slowly(number); });
    auto other = spawn([&] { add_slowly(number); });
    one.join();
    other.join();
  });
  EXPECT_EQ(number, 1); // one is lost
  EXPECT_DEATH(run([&] {
                 NoSuspend whole;
                 add_slowly(number);
               }),
               "a wait inside a NoSuspend scope");
}

TEST(NoSuspend, refuses_each_call_that_could_let_others_run) {
  const auto inside = [](auto wait) {
    return [wait] {
      run([wait] {
        auto ended = spawn([] {});
        yield();
        NoSuspend whole;
        wait(ended);
      });
    };
  };
  const char* message = "a wait inside a NoSuspend scope";
  EXPECT_DEATH(inside([](auto&) { yield(); })(), message);
  EXPECT_DEATH(inside([](auto&) { sleep_for(0s); })(), message);
  EXPECT_DEATH(inside([](auto&) { sleep_for(1s); })(), message);
  EXPECT_DEATH(inside([](auto&) { park(); })(), message);
  EXPECT_DEATH(inside([](auto&) { schedule(); })(), message);
  EXPECT_DEATH(inside([](auto& ended) { yield_to(ended); })(), message);
  run([] {
    {
      NoSuspend whole, nested;
      auto other = spawn([] {});
      other.wake();
    }
    yield();
  });
}

TEST(SwitchHooks, are_called_at_each_switch_of_their_fiber_and_no_other) {
  std::string trace;
  run([&] {
    auto hooked = spawn([&] {
      trace += "a ";
      {
        SwitchHooks outer([&] { trace += "("; }, [&] { trace += ")"; });
        SwitchHooks inner([&] { trace += "["; }, [&] { trace += "]"; });
        trace += "b";
        yield();
        trace += "c";
        yield();
      }
      trace += " d";
      yield();
    });
    auto plain = spawn([&] {
      for (int i = 0; i < 3; ++i) {
        trace += " . ";
        yield();
      }
    });
    hooked.join();
    plain.join();
  });
  EXPECT_EQ(trace, "a ([b]) . ([c]) . ([]) d . ");
}

TEST(SwitchHooks, are_called_when_a_wait_throws) {
  std::string trace;
  run([&] {
    auto hooked = spawn([&] {
      SwitchHooks hooks([&] { trace += "+"; }, [&] { trace += "-"; });
      yield();
      trace += "after";
    });
    yield();
    hooked.cancel();
    EXPECT_EQ(AnyFiber(hooked).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "+-+-");
}

} // namespace
} // namespace cede
