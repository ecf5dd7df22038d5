// SPDX-License-Identifier: MIT
// Rows: L-10 X-36
// The watchdog names who keeps the thread to itself, and nobody else.
#include "support/environment.h"

#include <cede/remote.h>
#include <cede/watchdog.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

// What a watchdog told, on its own thread.
class Reports {
public:
  OverrunHandler handler() {
    return [this](const Overrun& overrun) {
      const std::lock_guard lock(mutex_);
      overruns_.push_back(overrun);
    };
  }
  std::vector<Overrun> all() {
    const std::lock_guard lock(mutex_);
    return overruns_;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return overruns_.size();
  }

private:
  std::mutex mutex_;
  std::vector<Overrun> overruns_;
};

// How long who is to be seen goes on at most: a watchdog's thread may be late on a busy machine.
constexpr auto kPatience = 30s;

// Keeps the thread busy until it has been told of `count` times.
[[gnu::noinline]] void hog_until(Reports& reports, std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (reports.count() < count && std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 10'000; ++i)
      asm volatile("");
}

// The longest time between two of its calls. Whoever sees it below a limit was in time, also where
// the machine was late.
class Gaps {
public:
  void mark() {
    const auto now = std::chrono::steady_clock::now();
    longest_ = std::max<std::chrono::nanoseconds>(longest_, now - last_);
    last_ = now;
  }
  std::chrono::nanoseconds longest() const { return longest_; }

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds longest_{};
};

// Whether the thread answers with where it is.
#if __has_include(<execinfo.h>)
constexpr bool kHasBacktraces = true;
#else
constexpr bool kHasBacktraces = false;
#endif

bool is_in(void (*function)(Reports&, std::size_t), const void* address) {
  const auto begin = reinterpret_cast<std::uintptr_t>(function);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at > begin && at < begin + 2048;
}

TEST(Watchdog, names_the_fiber_that_hogs_how_long_and_where) {
  Reports reports;
  Scheduler scheduler;
  Watchdog watchdog(scheduler, 30ms, reports.handler());
  scheduler.spawn(FiberOptions{.name = "innocent"}, [] { yield(); });
  scheduler.spawn(FiberOptions{.name = "hog"}, [&] {
    yield();
    hog_until(reports, 1);
    yield();
  });
  scheduler.run();
  const std::vector<Overrun> overruns = reports.all();
  const auto found = std::find_if(overruns.begin(), overruns.end(),
                                  [](const Overrun& overrun) { return overrun.name == "hog"; });
  ASSERT_NE(found, overruns.end());
  EXPECT_EQ(found->id, 2u);
  EXPECT_GE(found->time, 30ms);
  EXPECT_LT(found->time, kPatience);
  const auto is_in_hog = [](const void* address) { return is_in(hog_until, address); };
  // A backtrace from within an interceptor of AddressSanitizer's ends there.
  if (!test::kAddressSanitizer || found->backtrace.size() > 2) {
    EXPECT_EQ(std::any_of(found->backtrace.begin(), found->backtrace.end(), is_in_hog),
              kHasBacktraces)
        << found->to_text();
  }
}

TEST(Watchdog, tells_again_when_the_time_has_doubled) {
  Reports reports;
  Scheduler scheduler;
  Watchdog watchdog(scheduler, 50ms, reports.handler());
  scheduler.spawn([&] { hog_until(reports, 3); });
  scheduler.run();
  const std::vector<Overrun> overruns = reports.all();
  ASSERT_EQ(overruns.size(), 3u);
  EXPECT_GE(overruns[0].time, 50ms);
  EXPECT_GE(overruns[1].time, 2 * overruns[0].time);
  EXPECT_GE(overruns[2].time, 2 * overruns[1].time);
}

TEST(Watchdog, leaves_those_alone_who_yield_in_time) {
  Reports reports;
  Scheduler scheduler;
  Watchdog watchdog(scheduler, 500ms, reports.handler());
  Gaps gaps;
  scheduler.spawn([&] {
    for (int i = 0; i < 60; ++i) {
      std::this_thread::sleep_for(20ms);
      gaps.mark();
      yield();
    }
  });
  scheduler.run();
  EXPECT_TRUE(reports.all().empty() || gaps.longest() >= 450ms) << reports.all().front().to_text();
}

TEST(Watchdog, leaves_a_scheduler_alone_that_sleeps_or_is_not_driven) {
  Reports reports;
  Scheduler scheduler;
  Watchdog watchdog(scheduler, 200ms, reports.handler());
  scheduler.spawn([] { sleep_for(600ms); });
  scheduler.run();
  std::this_thread::sleep_for(600ms);
  EXPECT_TRUE(reports.all().empty()) << reports.all().front().to_text();
}

TEST(Watchdog, names_a_fiber_that_blocks_the_thread_on_standard_error) {
  testing::internal::CaptureStderr();
  run([] {
    Watchdog watchdog(50ms);
    spawn(FiberOptions{.name = "reader"}, [] { std::this_thread::sleep_for(1500ms); });
    yield();
  });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("cede: fiber 2 (reader) has not yielded for "), 0u) << text;
  EXPECT_NE(text.find(" ms\n"), std::string::npos) << text;
}

TEST(Watchdog, tells_of_a_post_that_does_not_return) {
  Reports reports;
  Scheduler scheduler;
  Watchdog watchdog(scheduler, 30ms, reports.handler());
  ASSERT_TRUE(scheduler.remote().post([&] { hog_until(reports, 1); }));
  scheduler.run();
  ASSERT_FALSE(reports.all().empty());
  EXPECT_EQ(reports.all().front().id, 0u);
  EXPECT_EQ(reports.all().front().to_text().find("cede: what a scheduler calls itself"), 0u);
}

TEST(Watchdog, leaves_posts_alone_that_each_return_in_time) {
  Reports reports;
  Scheduler scheduler;
  Watchdog watchdog(scheduler, 400ms, reports.handler());
  const Remote remote = scheduler.remote();
  Gaps gaps;
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(remote.post([&gaps] {
      std::this_thread::sleep_for(100ms);
      gaps.mark();
    }));
  scheduler.run();
  EXPECT_TRUE(reports.all().empty() || gaps.longest() >= 350ms) << reports.all().front().to_text();
}

TEST(Watchdog, others_of_the_same_thread_may_go_in_any_order) {
  Reports reports;
  Scheduler first, second;
  auto one = std::make_unique<Watchdog>(first, 30ms);
  const Watchdog other(second, 30ms, reports.handler());
  one.reset();
  second.spawn([&] { hog_until(reports, 1); });
  second.run();
  ASSERT_FALSE(reports.all().empty());
  EXPECT_EQ(!reports.all().front().backtrace.empty(), kHasBacktraces);
}

TEST(Watchdog, gives_yields_back_their_short_way) {
  Scheduler scheduler;
  const auto switches_of_yields = [&] {
    scheduler.spawn([] {
      for (int i = 0; i < 1000; ++i)
        yield();
    });
    const std::uint64_t before = scheduler.metrics().switches;
    scheduler.run();
    return scheduler.metrics().switches - before;
  };
  const std::uint64_t unwatched = switches_of_yields();
  {
    Watchdog watchdog(scheduler, 10s);
    switches_of_yields();
  }
  EXPECT_EQ(switches_of_yields(), unwatched);
}

TEST(Watchdog, refuses_what_it_cannot_watch) {
  Scheduler scheduler;
  EXPECT_THROW(Watchdog(scheduler, 0ms), std::system_error);
  EXPECT_DEATH(Watchdog(1s), "where no scheduler is driven");
  EXPECT_DEATH(std::thread([&] { Watchdog(scheduler, 1s); }).join(), "made on another thread");
  // No thread of a watchdog's runs meanwhile: emulators don't survive a fork beside others.
  EXPECT_DEATH(
      {
        Watchdog first(scheduler, 1s);
        Watchdog second(scheduler, 1s);
      },
      "watched by two watchdogs");
  EXPECT_DEATH(
      {
        auto other = std::make_unique<Scheduler>();
        Watchdog first(*other, 1s);
        other.reset();
      },
      "destroyed before its watchdog");
}

} // namespace
} // namespace cede
