// SPDX-License-Identifier: MIT
// Rows: X-28
// run_on: a scheduler on each of several threads.
#include "support/environment.h"

#include <cede/remote.h>
#include <cede/scheduler.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#if __has_include(<sys/resource.h>)
#include <sys/resource.h>
#endif

namespace cede {
namespace {

// As std::latch, which loses wake-ups where the C++ library emulates the waiting of atomics.
class Arrivals {
public:
  explicit Arrivals(int expected) : missing_(expected) {}
  void count_down() { --missing_; }
  void wait() const {
    while (missing_ > 0)
      std::this_thread::yield();
  }
  void arrive_and_wait() {
    count_down();
    wait();
  }

private:
  std::atomic<int> missing_;
};

using namespace std::chrono_literals;

constexpr SchedulerOptions kTest{.has_test_clock = true};

TEST(RunOn, calls_main_with_its_number_on_each_thread_at_once) {
  std::vector<std::thread::id> threads(4);
  Arrivals all_there(4);
  run_on(4, [&](unsigned number) {
    threads[number] = std::this_thread::get_id();
    all_there.arrive_and_wait();
  });
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  std::sort(threads.begin(), threads.end());
  EXPECT_EQ(std::unique(threads.begin(), threads.end()), threads.end());
}

TEST(RunOn, each_main_is_a_fiber_of_a_scheduler_of_its_own) {
  std::atomic<int> done = 0;
  run_on(3, kTest, [&] {
    EXPECT_EQ(current().name(), "main");
    EXPECT_EQ(current().id(), 1u);
    Fiber<void> child = spawn([&] {
      sleep_for(1h); // its clock is the test's
      ++done;
    });
    spawn([] { park(); });
    child.join();
    return done.load();
  });
  EXPECT_EQ(done, 3);
}

TEST(RunOn, what_a_main_throws_is_thrown_after_all_have_ended) {
  std::atomic<int> ended = 0;
  Arrivals has_thrown(1);
  const auto main = [&](unsigned number) {
    struct Ends {
      std::atomic<int>& ended;
      ~Ends() { ++ended; }
    } ends{ended};
    if (number == 1) {
      has_thrown.count_down();
      throw std::runtime_error("broken");
    }
    has_thrown.wait();
    yield();
  };
  EXPECT_THROW(run_on(3, main), std::runtime_error);
  EXPECT_EQ(ended, 3);
}

TEST(RunOn, of_several_exceptions_the_lowest_is_thrown_and_the_others_are_printed) {
  testing::internal::CaptureStderr();
  std::string thrown;
  try {
    run_on(4, [](unsigned number) {
      if (number != 1)
        throw std::runtime_error("broken " + std::to_string(number));
    });
  } catch (const std::runtime_error& error) {
    thrown = error.what();
  }
  EXPECT_EQ(thrown, "broken 0");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "cede: an exception ended main on thread 2: broken 2\n"
            "cede: an exception ended main on thread 3: broken 3\n");
}

TEST(RunOn, no_thread_or_no_main_is_an_error) {
  const auto error_of = [](unsigned threads, const std::function<void()>& main) {
    try {
      run_on(threads, main);
    } catch (const std::system_error& error) {
      return error.code();
    }
    return std::error_code();
  };
  bool ran = false;
  EXPECT_EQ(error_of(0, [&] { ran = true; }), Errc::invalid_argument);
  EXPECT_EQ(error_of(2, {}), Errc::invalid_argument);
  EXPECT_FALSE(ran);
  EXPECT_EQ(error_of(1, [&] { ran = true; }), std::error_code());
  EXPECT_TRUE(ran);
}

TEST(RunOn, schedulers_post_to_each_other_and_the_order_of_each_pair_is_kept) {
  constexpr unsigned kThreads = 3;
  constexpr int kPosts = 300;
  struct Side { // after the start, of its own thread only
    Remote remote;
    Waker main;
    std::vector<int> next = std::vector<int>(kThreads);
    int left = kThreads * kPosts;
  };
  std::vector<Side> sides(kThreads);
  Arrivals are_known(kThreads);
  run_on(kThreads, [&](unsigned from) {
    sides[from].remote = remote();
    sides[from].main = waker();
    are_known.arrive_and_wait();
    for (int i = 0; i < kPosts; ++i)
      for (Side& to : sides)
        to.remote
            .post([&to, from, i] {
              EXPECT_EQ(to.next[from]++, i);
              if (--to.left == 0)
                to.main.wake();
            })
            .value();
    EXPECT_EQ(park(), WakeReason::woken);
    EXPECT_EQ(sides[from].left, 0);
  });
}

TEST(RunOn, remote_reaches_the_scheduler_that_runs_here) {
  EXPECT_THROW((void)remote(), std::system_error);
  std::string trace;
  run(kTest, [&] {
    const AnyFiber main = current();
    remote()
        .post([&] {
          trace += "posted ";
          main.wake();
        })
        .value();
    park();
  });
  EXPECT_EQ(trace, "posted ");
}

#if __has_include(<sys/resource.h>)
TEST(RunOn, where_not_all_threads_can_be_had_none_calls_main) {
  if (test::is_observed() || test::kEmulated)
    GTEST_SKIP() << "an observer's own memory is under the limit too; an emulator imposes none";
  auto child = [] {
    rlimit low{};
    getrlimit(RLIMIT_AS, &low);
    low.rlim_cur = std::size_t{1} << 30; // room for some of their stacks
    setrlimit(RLIMIT_AS, &low);
    std::atomic<int> called = 0;
    bool is_told = false;
    try {
      run_on(10000, [&] { ++called; });
    } catch (const std::system_error&) {
      is_told = true;
    }
    run_on(2, [&] { ++called; });
    std::exit(is_told && called == 2 ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}
#endif

} // namespace
} // namespace cede
