// SPDX-License-Identifier: MIT
// Rows: P-43 P-44 P-57 D-06 X-14 X-24 X-30
// Field reports: 40 43
// Asking fibers to end: what they meet, where, and what is kept.
#include <cede/cancel.h>
#include <cede/fiber.h>
#include <cede/generator.h>
#include <cede/scheduler.h>

#include <chrono>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <system_error>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

// Says in a trace that its scope was left.
struct Says {
  std::string& trace;
  const char* word;
  ~Says() { trace += word; }
};

TEST(Cancel, ends_a_sleep_and_code_after_it_never_runs) {
  std::string trace;
  run(kTestClock, [&] {
    auto sleeper = spawn([&] {
      Says gone{trace, "unwound "};
      sleep_for(50ms);
      trace += "after ";
    });
    sleep_for(5ms);
    EXPECT_TRUE(sleeper.cancel());
    EXPECT_FALSE(sleeper.cancel());
    EXPECT_EQ(AnyFiber(sleeper).join().error(), Errc::cancelled);
    EXPECT_EQ(sleeper.join(kForever).error(), Errc::cancelled);
    EXPECT_THROW(sleeper.join(), std::system_error);
  });
  EXPECT_EQ(trace, "unwound ");
}

TEST(Cancel, meets_a_fiber_in_each_kind_of_wait) {
  std::string trace;
  run([&] {
    auto waits_in = [&](const char* name, auto wait) {
      auto fiber = spawn([&trace, name, wait] {
        Says gone{trace, name};
        wait();
        trace += "after ";
      });
      yield();
      yield();
      fiber.cancel();
      EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled) << name;
    };
    auto endless = spawn([] { schedule(); });
    waits_in("yield ", [] {
      for (;;)
        yield();
    });
    waits_in("sleep ", [] { sleep_for(1h); });
    waits_in("park ", [] { park(); });
    waits_in("schedule ", [] { schedule(); });
    waits_in("join ", [&] { endless.join(); });
    waits_in("join-until ", [&] { std::ignore = endless.join(after(1h)); });
  });
  EXPECT_EQ(trace, "yield sleep park schedule join join-until ");
}

TEST(Cancel, of_one_that_never_started_runs_nothing_and_destroys_its_captures) {
  auto kept = std::make_shared<int>(1);
  bool ran = false;
  run([&] {
    auto fiber = spawn([kept, &ran] { ran = true; });
    EXPECT_EQ(kept.use_count(), 2);
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
    EXPECT_EQ(kept.use_count(), 1);
  });
  EXPECT_FALSE(ran);
}

TEST(Cancel, of_oneself_is_met_at_the_next_wait) {
  std::string trace;
  run([&] {
    auto fiber = spawn([&] {
      current().cancel();
      EXPECT_TRUE(cancel_requested());
      trace += "still ";
      yield();
      trace += "after ";
    });
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "still ");
}

TEST(Cancel, that_is_swallowed_is_met_again_at_each_wait) {
  int met = 0;
  run([&] {
    auto fiber = spawn([&] {
      for (int i = 0; i < 5; ++i) {
        try {
          i % 2 == 0 ? yield() : sleep_for(1h);
        } catch (...) {
          ++met;
        }
      }
    });
    yield();
    fiber.cancel();
    fiber.join(); // it returned normally, so it has returned
  });
  EXPECT_EQ(met, 5);
}

TEST(Cancel, that_is_swallowed_for_ever_fails_a_check) {
  EXPECT_DEATH(run([] {
                 spawn([] {
                   for (;;) {
                     try {
                       yield();
                     } catch (...) {
                     }
                   }
                 });
                 yield();
               }),
               "swallows the exception and waits on");
}

TEST(Cancel, loses_to_a_wake_that_came_first) {
  WakeReason reason{};
  run([&] {
    auto fiber = spawn([&] {
      reason = park();
      EXPECT_THROW(yield(), Cancelled);
      throw Cancelled();
    });
    yield();
    fiber.wake();
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(reason, WakeReason::woken);
}

TEST(Cancel, wins_over_a_permit_at_the_entry_of_park) {
  run([] {
    auto fiber = spawn([] {
      current().wake();
      current().cancel();
      park();
      ADD_FAILURE();
    });
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
  });
}

TEST(Cancel, waits_for_the_end_of_a_shield) {
  std::string trace;
  run(kTestClock, [&] {
    auto fiber = spawn([&] {
      {
        Shield shield;
        sleep_for(10ms);
        yield();
        trace += "shielded ";
        Shield nested;
      }
      trace += "open ";
      yield();
      trace += "after ";
    });
    sleep_for(1ms);
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "shielded open ");
}

TEST(Cancel, destructors_may_wait_under_a_shield) {
  std::string trace;
  run(kTestClock, [&] {
    struct Closes {
      std::string& trace;
      ~Closes() {
        Shield shield;
        sleep_for(5ms);
        trace += "closed ";
      }
    };
    auto fiber = spawn([&] {
      Closes closes{trace};
      sleep_for(1h);
    });
    yield();
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
    trace += "joined ";
  });
  EXPECT_EQ(trace, "closed joined ");
}

TEST(Cancel, a_fiber_that_unwinds_is_not_thrown_at_again) {
  std::string trace;
  run(kTestClock, [&] {
    struct CleansUp {
      std::string& trace;
      AnyFiber& other;
      ~CleansUp() {
        yield(); // one turn
        sleep_for(1h);
        trace += other.join(after(1h)).error() == Errc::cancelled ? "reported " : "? ";
        trace += park() == WakeReason::cancelled ? "reported " : "? ";
      }
    };
    AnyFiber endless = spawn([] { sleep_for(2h); });
    auto fiber = spawn([&] {
      CleansUp cleans{trace, endless};
      sleep_for(1h);
    });
    yield();
    fiber.cancel();
    const TimePoint before = now();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
    EXPECT_EQ(now(), before);
  });
  EXPECT_EQ(trace, "reported reported ");
}

TEST(Cancel, a_plain_join_while_unwinding_waits_as_under_a_shield) {
  std::string trace;
  run(kTestClock, [&] {
    Fiber<int> child;
    struct Joins {
      std::string& trace;
      Fiber<int>& child;
      ~Joins() { trace += std::to_string(child.join()) + " "; }
    };
    auto fiber = spawn([&] {
      child = spawn([] {
        sleep_for(5ms);
        return 5;
      });
      Joins joins{trace, child};
      sleep_for(1h);
    });
    yield();
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "5 ");
}

TEST(Cancel, by_result_reports_where_nothing_is_in_flight) {
  run([] {
    auto fiber = spawn([]() noexcept {
      CancelByResult by_result;
      current().cancel();
      yield();
      EXPECT_EQ(park(), WakeReason::cancelled);
      EXPECT_EQ(current().join(after(1h)).error(), Errc::cancelled);
    });
    fiber.join();
  });
}

TEST(Cancel, by_result_ends_with_its_scope) {
  run([] {
    auto fiber = spawn([] {
      {
        CancelByResult by_result;
        yield();
        yield();
      }
      EXPECT_THROW(yield(), Cancelled);
    });
    yield();
    fiber.cancel();
    fiber.join();
  });
}

TEST(Cancel, passes_through_generators_to_the_fiber_that_waits_in_them) {
  std::string trace;
  run([&] {
    auto fiber = spawn([&] {
      Says outer{trace, "fiber "};
      Generator<int> numbers([&](auto& give) {
        Says inner{trace, "generator "};
        for (;;) {
          yield();
          give(1);
        }
      });
      for ([[maybe_unused]] int number : numbers) {
      }
    });
    yield();
    yield();
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "generator fiber ");
}

TEST(Cancel, in_a_catch_block_keeps_the_exception_that_is_handled) {
  std::string trace;
  run([&] {
    auto fiber = spawn([&] {
      try {
        throw std::runtime_error("handled");
      } catch (const std::runtime_error& error) {
        try {
          yield();
          trace += "after ";
        } catch (const Cancelled&) {
          trace += error.what();
          throw;
        }
      }
    });
    yield();
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "handled");
}

TEST(Cancel, is_no_std_exception_and_another_exception_that_leaves_is_a_failure) {
  run([] {
    auto fiber = spawn([] {
      try {
        yield();
      } catch (const std::exception&) {
        ADD_FAILURE();
      } catch (const Cancelled&) {
        throw std::logic_error("on the way out");
      }
    });
    yield();
    fiber.cancel();
    EXPECT_THROW(fiber.join(), std::logic_error);
  });
}

TEST(Cancel, a_fiber_may_drop_the_last_handle_of_itself_and_cancel_itself) {
  int ended = 0;
  run([&] {
    for (int i = 0; i < 1000; ++i) {
      auto* handle = new Fiber<void>;
      *handle = spawn([&ended, handle] {
        delete handle;
        ++ended;
        current().cancel();
        yield();
        ADD_FAILURE();
      });
    }
    yield();
    yield();
  });
  EXPECT_EQ(ended, 1000);
}

} // namespace
} // namespace cede
