// SPDX-License-Identifier: MIT
// Fibers as users use them. Compiled a second time with the floating-point control left out.
#include "support.h"

#include <cede/fiber.h>
#include <cede/remote.h>
#include <cede/scheduler.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

using namespace std::chrono_literals;
using cede::Scheduler;
using cede::spawn;

[[noreturn]] CEDE_NOINLINE void yield_for_ever() {
  for (;;)
    cede::yield();
}

CEDE_NOINLINE void yield_often(long times) {
  for (; times > 0; --times)
    cede::yield();
}

// So many fibers that do nothing but yield; one of them measures.
template <long kFibers>
void yield_in_turn(benchmark::State& state) {
  cede::run([&] {
    for (long i = 1; i < kFibers; ++i)
      spawn(yield_for_ever);
    cede::yield(); // the first touch of every stack is not measured
    constexpr long kRounds = bench::kBatch / kFibers;
    while (state.KeepRunningBatch(kRounds * kFibers))
      yield_often(bench::opaque(kRounds));
  });
}

#if CEDE_PRESERVE_FPENV
BENCHMARK(yield_in_turn<2>)->Name("yield/2");
BENCHMARK(yield_in_turn<100>)->Name("yield/100");
BENCHMARK(yield_in_turn<10'000>)->Name("yield/10000");

void spawn_join(benchmark::State& state) {
  cede::run([&] {
    long sum = 0;
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch; ++i)
        sum += spawn([i] { return i; }).join();
    benchmark::DoNotOptimize(sum);
  });
}
BENCHMARK(spawn_join);

void spawn_batch(benchmark::State& state) {
  constexpr long kFibers = 10'000;
  cede::run([&] {
    long runs = 0;
    while (state.KeepRunningBatch(kFibers)) {
      for (long i = 0; i < kFibers; ++i)
        spawn([&runs] { ++runs; });
      cede::yield();
    }
    if (runs != static_cast<long>(state.iterations()))
      state.SkipWithError("a fiber did not run");
  });
}
BENCHMARK(spawn_batch)->Name("spawn_batch/10000");

// Each hand-off is one wake and one park.
void park_wake(benchmark::State& state) {
  cede::run([&] {
    const cede::AnyFiber main = cede::current();
    const cede::AnyFiber other = spawn([main] {
      for (;;) {
        main.wake();
        cede::park();
      }
    });
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch / 2; ++i) {
        other.wake();
        cede::park();
      }
  });
}
BENCHMARK(park_wake);

// A wait that sets a deadline and ends before it, while so many others are pending.
void sleep_cancel(benchmark::State& state) {
  static constexpr long kPending = 100'000;
  cede::run([&] {
    for (long i = 0; i < kPending; ++i)
      spawn([i] { cede::sleep_for(1h + std::chrono::microseconds(i * 7919 % kPending)); });
    cede::yield();
    const cede::AnyFiber main = cede::current();
    const cede::AnyFiber other = spawn([main] {
      for (;;) {
        main.wake();
        cede::park();
      }
    });
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch; ++i) {
        other.wake();
        cede::park(cede::after(30s));
      }
  });
}
BENCHMARK(sleep_cancel)->Name("sleep_cancel/100000");

// So many sleepers due at random within one second: the processor time of an expiry, the run of the
// fiber to its end included, and how late they are. They wait at a gate until all have been made.
void sleepers(benchmark::State& state) {
  constexpr long kSleepers = 1'000'000;
  for (auto _ : state) {
    std::vector<std::int64_t> late;
    late.reserve(kSleepers);
    std::minstd_rand random(1);
    cede::TimePoint begin;
    long asleep = 0;
    cede::WaitList gate;
    Scheduler scheduler;
    for (long i = 0; i < kSleepers; ++i)
      scheduler.spawn([&, offset = std::chrono::nanoseconds(random() % 1'000'000'000)] {
        {
          cede::WaitLink place;
          cede::Waiter waiter("at the gate");
          waiter.watch(gate, place);
          waiter.wait();
        }
        const cede::TimePoint due = begin + offset;
        ++asleep;
        cede::sleep_until(due);
        late.push_back((cede::now() - due).count());
      });
    std::ignore = scheduler.run_until(cede::kForever); // all wait, for what only this can open
    begin = cede::now() + 8s;
    gate.wake_all();
    std::ignore = scheduler.run_until(begin - 1ms);
    if (asleep < kSleepers || cede::now() > begin) {
      state.SkipWithError("the machine was too slow to put them to sleep in time");
      break;
    }
    const std::clock_t before = std::clock();
    scheduler.run();
    state.SetIterationTime(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC / kSleepers);
    std::sort(late.begin(), late.end());
    state.counters["late_p50_us"] = static_cast<double>(late[kSleepers / 2]) / 1e3;
    state.counters["late_p99_us"] = static_cast<double>(late[kSleepers / 100 * 99]) / 1e3;
  }
}
BENCHMARK(sleepers)->Name("sleepers/1000000")->UseManualTime()->Iterations(1);

// A post to a scheduler on another thread, and the post back. Both sleep in between, or both have
// other fibers that run.
template <bool kAreBusy>
void post_round_trip(benchmark::State& state) {
  cede::Remote remote;
  std::atomic<bool> is_up{false}, is_over{false};
  const auto keep_busy = [&] {
    while (!is_over.load(std::memory_order_relaxed))
      cede::yield();
  };
  std::thread far([&] {
    Scheduler scheduler;
    remote = scheduler.remote();
    scheduler.spawn([&] {
      is_up = true;
      if (kAreBusy)
        keep_busy();
      else
        cede::park();
    });
    std::ignore = scheduler.run_until(cede::kForever);
  });
  while (!is_up)
    std::this_thread::yield();
  cede::run([&] {
    if (kAreBusy)
      spawn(keep_busy);
    for (auto _ : state)
      remote.call([] {}).value();
    is_over = true;
  });
  remote = {};
  far.join();
}
BENCHMARK(post_round_trip<false>)->Name("post_round_trip")->UseRealTime();
BENCHMARK(post_round_trip<true>)->Name("post_round_trip_busy")->UseRealTime();

#ifdef __linux__
// What the system itself takes for the first of them: two threads that wake each other by a futex.
void futex_round_trip(benchmark::State& state) {
  struct Bell {
    std::atomic<std::uint32_t> rung{0};
    void ring() {
      rung = 1;
      syscall(SYS_futex, &rung, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
    void wait() {
      while (rung.exchange(0) == 0)
        syscall(SYS_futex, &rung, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
  } there, back;
  std::atomic<bool> is_over{false};
  std::thread far([&] {
    for (;;) {
      there.wait();
      if (is_over)
        return;
      back.ring();
    }
  });
  for (auto _ : state) {
    there.ring();
    back.wait();
  }
  is_over = true;
  there.ring();
  far.join();
}
BENCHMARK(futex_round_trip)->Name("post_round_trip/futex")->UseRealTime();
#endif
#else
BENCHMARK(yield_in_turn<2>)->Name("yield_without_fpenv/2");
BENCHMARK(yield_in_turn<100>)->Name("yield_without_fpenv/100");
BENCHMARK(yield_in_turn<10'000>)->Name("yield_without_fpenv/10000");
#endif

} // namespace
