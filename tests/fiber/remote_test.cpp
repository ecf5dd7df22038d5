// SPDX-License-Identifier: MIT
// Rows: X-02 X-05 X-12 X-13 X-18 X-27 X-28 X-32 X-34 X-37 D-02 D-07 D-13 D-24
// Field reports: 7 44
// Other threads: posts, calls and wakes, and what becomes of them when the scheduler is gone.
#include "support/environment.h"

#include <cede/fiber.h>
#include <cede/remote.h>
#include <cede/scheduler.h>

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

TEST(Remote, posts_run_in_order_between_fibers_and_run_returns_when_they_have) {
  std::string trace;
  Scheduler scheduler;
  Remote remote = scheduler.remote();
  for (const char* name : {"a", "b", "c"})
    EXPECT_TRUE(remote.post([&trace, name] {
      EXPECT_FALSE(current());
      trace += name;
    }));
  EXPECT_EQ(trace, "");
  scheduler.run();
  EXPECT_EQ(trace, "abc");
}

TEST(Remote, a_post_may_spawn_and_may_not_wait) {
  int ran = 0;
  Scheduler scheduler;
  EXPECT_TRUE(scheduler.remote().post([&] { spawn([&] { ++ran; }); }));
  scheduler.run();
  EXPECT_EQ(ran, 1);
  EXPECT_DEATH(
      {
        std::ignore = scheduler.remote().post([] { yield(); });
        scheduler.run();
      },
      "a wait in what the scheduler itself calls");
}

TEST(Remote, refuses_posts_over_the_limit_and_leaves_them_as_they_were) {
  int ran = 0;
  Scheduler scheduler(SchedulerOptions{.post_limit = 2});
  Remote remote = scheduler.remote();
  auto owned = std::make_unique<int>(3);
  auto post = [&ran, owned = std::move(owned)]() mutable { ran += *owned; };
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(remote.post([&] { ++ran; }));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(remote.post(std::move(post)).error(), Errc::again);
  EXPECT_EQ(scheduler.metrics().posts_refused, 3u);
  EXPECT_EQ(scheduler.metrics().posts_waiting, 2u);
  EXPECT_EQ(scheduler.step(), Progress::worked); // frees one place
  EXPECT_TRUE(remote.post(std::move(post)));
  scheduler.run();
  EXPECT_EQ(ran, 5);
}

TEST(Remote, wakes_get_through_when_no_post_does) {
  Scheduler scheduler(SchedulerOptions{.post_limit = 0});
  Waker waker;
  auto fiber = scheduler.spawn([&] {
    waker = cede::waker();
    return park();
  });
  scheduler.step();
  EXPECT_EQ(scheduler.remote().post([] {}).error(), Errc::again);
  waker.wake();
  scheduler.run();
  EXPECT_EQ(fiber.join(), WakeReason::woken);
}

TEST(Remote, an_error_in_a_post_goes_to_the_handler) {
  int errors = 0;
  Scheduler scheduler;
  scheduler.set_unhandled([&](const AnyFiber& fiber, std::exception_ptr) {
    EXPECT_FALSE(fiber);
    ++errors;
  });
  EXPECT_TRUE(scheduler.remote().post([] { throw std::runtime_error("post"); }));
  scheduler.run();
  EXPECT_EQ(errors, 1);
}

TEST(Remote, outlives_its_scheduler_and_says_that_it_is_closed) {
  Remote remote;
  Waker waker;
  auto destroyed = std::make_shared<int>(0);
  EXPECT_EQ(remote.post([] {}).error(), Errc::closed);
  {
    Scheduler scheduler;
    remote = scheduler.remote();
    scheduler.spawn([&] {
      waker = cede::waker();
      park();
    });
    scheduler.step();
    EXPECT_TRUE(remote.post([destroyed] { ++*destroyed; })); // accepted, so it runs
    scheduler.close();
  }
  EXPECT_EQ(*destroyed, 1);
  EXPECT_EQ(remote.post([destroyed] {}).error(), Errc::closed);
  waker.wake();
  EXPECT_EQ(destroyed.use_count(), 1);
}

TEST(Remote, a_scheduler_that_is_closing_runs_what_it_accepted_and_takes_no_more) {
  int ran = 0;
  Scheduler scheduler;
  Remote remote = scheduler.remote();
  EXPECT_TRUE(remote.post([&] { ++ran; }));
  scheduler.close();
  EXPECT_EQ(remote.post([&] { ++ran; }).error(), Errc::closed);
  scheduler.run();
  EXPECT_EQ(ran, 1);
}

TEST(Remote, call_gives_what_ran_on_the_other_thread_or_throws_it) {
  Scheduler scheduler;
  Remote remote = scheduler.remote();
  const auto owner = std::this_thread::get_id();
  std::thread caller([&] {
    EXPECT_TRUE(remote.call([&] { return std::this_thread::get_id() == owner; }).value());
    EXPECT_THROW(std::ignore = remote.call([]() -> int { throw std::logic_error("far"); }),
                 std::logic_error);
    EXPECT_TRUE(remote.call([] {}).has_value());
    remote = Remote();
  });
  scheduler.spawn([] { park(after(50ms)); });
  while (scheduler.run_until(kForever) != Progress::closed) {
  }
  scheduler.close();
  caller.join();
}

TEST(Remote, call_from_a_fiber_lets_the_others_run) {
  std::string trace;
  std::atomic<bool> stop{false};
  Remote far;
  std::atomic<bool> is_up{false};
  std::thread other([&] {
    Scheduler scheduler;
    far = scheduler.remote();
    is_up = true;
    while (!stop)
      std::ignore = scheduler.poll_for(1ms), std::this_thread::yield();
  });
  while (!is_up)
    std::this_thread::yield();
  run([&] {
    auto busy = spawn([&] {
      for (int i = 0; i < 3; ++i) {
        trace += ".";
        yield();
      }
    });
    EXPECT_EQ(far.call([] { return 5; }).value(), 5);
    busy.join();
  });
  stop = true;
  other.join();
  EXPECT_EQ(trace, "...");
  EXPECT_EQ(far.call([] { return 1; }).error(), Errc::closed);
}

TEST(Remote, call_of_ones_own_scheduler_works_from_a_fiber_and_not_from_a_post) {
  Scheduler scheduler;
  Remote remote = scheduler.remote();
  auto fiber = scheduler.spawn([&] { return remote.call([] { return 2; }).value(); });
  EXPECT_TRUE(remote.post([&] { EXPECT_EQ(remote.call([] {}).error(), Errc::deadlock); }));
  scheduler.run();
  EXPECT_EQ(fiber.join(), 2);
}

TEST(Remote, call_ends_at_its_deadline) {
  Scheduler scheduler;
  Remote remote = scheduler.remote();
  EXPECT_EQ(remote.call([] { return 1; }, after(2ms)).error(), Errc::timed_out);
  scheduler.run(); // what was sent still runs
}

TEST(Remote, every_post_that_races_with_close_ran_or_was_refused) {
  const int rounds = test::scaled(200, 20);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> ran{0}, refused{0}, accepted{0};
    std::vector<std::thread> posters;
    {
      Scheduler scheduler(SchedulerOptions{.post_limit = 1000});
      for (int i = 0; i < 2; ++i)
        posters.emplace_back([&, remote = scheduler.remote()] {
          for (int post = 0; post < 50; ++post)
            ++(remote.post([&] { ++ran; }) ? accepted : refused);
        });
      scheduler.step();
      std::this_thread::yield();
      scheduler.close();
      for (std::thread& poster : posters)
        poster.join();
      scheduler.run();
    }
    EXPECT_EQ(accepted + refused, 100);
    EXPECT_EQ(ran, accepted);
  }
}

TEST(Remote, an_actor_takes_messages_of_four_threads_in_the_order_of_each) {
  constexpr int kSenders = 4;
  const int messages = test::scaled(25000, 500);
  std::vector<int> next(kSenders);
  int wrong = 0;
  std::vector<std::thread> senders;
  Scheduler scheduler;
  for (int sender = 0; sender < kSenders; ++sender)
    senders.emplace_back([&, sender, remote = scheduler.remote()] {
      for (int message = 0; message < messages;) {
        if (remote.post([&, sender, message] { wrong += next[sender]++ != message; }))
          ++message;
        else
          std::this_thread::yield();
      }
    });
  auto actor = scheduler.spawn([&] {
    while (next != std::vector<int>(kSenders, messages))
      sleep_for(1ms);
  });
  scheduler.run();
  for (std::thread& sender : senders)
    sender.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Waker, wakes_a_scheduler_that_sleeps_with_no_deadline) {
  Scheduler scheduler;
  Waker waker;
  auto fiber = scheduler.spawn([&] {
    waker = cede::waker();
    return park();
  });
  scheduler.step();
  std::thread other([waker] {
    std::this_thread::sleep_for(5ms);
    waker.wake();
  });
  scheduler.run();
  other.join();
  EXPECT_EQ(fiber.join(), WakeReason::woken);
}

TEST(Waker, parks_and_wakes_from_another_thread_are_never_lost) {
  const int rounds = test::scaled(20000, 1000);
  std::atomic<int> parked{0};
  Scheduler scheduler;
  Waker waker;
  auto fiber = scheduler.spawn([&] {
    waker = cede::waker();
    for (int i = 0; i < rounds; ++i) {
      ++parked;
      EXPECT_EQ(park(), WakeReason::woken);
    }
  });
  scheduler.step();
  std::thread other([&] {
    for (int woken = 0; woken < rounds; ++woken) {
      while (parked.load() <= woken)
        std::this_thread::yield();
      waker.wake();
    }
  });
  scheduler.run();
  other.join();
  EXPECT_EQ(parked, rounds);
}

TEST(Waker, several_wakes_before_the_fiber_runs_are_one) {
  Scheduler scheduler;
  Waker waker;
  scheduler.spawn([&] {
    waker = cede::waker();
    EXPECT_EQ(park(), WakeReason::woken);
    EXPECT_EQ(park(after(1ms)), WakeReason::timed_out);
  });
  scheduler.step();
  for (int i = 0; i < 3; ++i)
    waker.wake();
  scheduler.run();
  waker.wake(); // of one that has ended
  scheduler.run();
}

// A wake that is merged into one on its way comes after the posts before it all the same.
TEST(Waker, does_not_overtake_the_posts_before_it) {
  Scheduler scheduler;
  const Remote remote = scheduler.remote();
  std::string letters;
  std::string read;
  auto reader = scheduler.spawn([&] {
    while (read.size() < 3) {
      while (letters.empty())
        ASSERT_EQ(park(after(1s)), WakeReason::woken);
      read += letters;
      letters.clear();
    }
  });
  scheduler.step();
  ASSERT_TRUE(remote.post([&, wake = waker(reader)] {
    // These wait for the next round, while the wake that is sent already runs in this one.
    for (const char letter : {'a', 'b', 'c'})
      ASSERT_TRUE(remote.post([&letters, letter] { letters += letter; }));
    wake.wake();
  }));
  waker(reader).wake();
  scheduler.run();
  EXPECT_EQ(read, "abc");
}

TEST(Waker, when_the_last_is_dropped_a_deadlock_is_seen) {
  Scheduler scheduler;
  Waker waker;
  auto fiber = scheduler.spawn([&] {
    waker = cede::waker();
    park();
  });
  scheduler.step();
  EXPECT_EQ(scheduler.step(), Progress::timed_out);
  std::thread other([&] {
    std::this_thread::sleep_for(5ms);
    waker = Waker();
  });
  EXPECT_EQ(scheduler.run_until(kForever), Progress::deadlock);
  other.join();
}

// A message, and right after it nobody is left who could send one: it is no deadlock.
TEST(Waker, the_last_word_of_who_leaves_is_heard) {
  const int rounds = test::scaled(100000, 2000);
  std::atomic<Waker*> handed{nullptr};
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    for (unsigned turn = 0; !is_over; ++turn)
      if (const std::unique_ptr<Waker> waker{handed.exchange(nullptr)}) {
        for (std::atomic<unsigned> spin{turn % 64}; spin > 0; --spin) {
        }
        waker->wake();
      } else if (turn % 1024 == 0) {
        std::this_thread::yield(); // spinning meets the moment more often
      }
  });
  Scheduler scheduler;
  auto fiber = scheduler.spawn([&] {
    for (int i = 0; i < rounds; ++i) {
      handed = new Waker(waker());
      EXPECT_EQ(park(), WakeReason::woken);
    }
  });
  EXPECT_EQ(scheduler.run_until(kForever), Progress::closed);
  is_over = true;
  other.join();
}

} // namespace
} // namespace cede
