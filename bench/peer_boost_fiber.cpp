// SPDX-License-Identifier: MIT
// Peer: Boost.Fiber.
#include "support.h"

#include <boost/fiber/all.hpp>

#include <mutex>

namespace {

namespace fibers = boost::fibers;

void yield_in_turn(benchmark::State& state) {
  bool is_over = false;
  fibers::fiber other([&] {
    while (!is_over)
      boost::this_fiber::yield();
  });
  constexpr long kRounds = bench::kBatch / 2;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < kRounds; ++i)
      boost::this_fiber::yield();
  is_over = true;
  other.join();
}
BENCHMARK(yield_in_turn)->Name("yield/2/boost_fiber");

void spawn_join(benchmark::State& state) {
  long runs = 0;
  for (auto _ : state)
    fibers::fiber([&runs] { ++runs; }).join();
  benchmark::DoNotOptimize(runs);
}
BENCHMARK(spawn_join)->Name("spawn_join/boost_fiber");

void channel_unbuffered(benchmark::State& state) {
  fibers::unbuffered_channel<long> there, back;
  fibers::fiber other([&] {
    for (const long value : there)
      back.push(value + 1);
  });
  long value = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch / 2; ++i) {
      there.push(value);
      value = back.value_pop();
    }
  there.close();
  other.join();
}
BENCHMARK(channel_unbuffered)->Name("channel_unbuffered/boost_fiber");

template <class Channel>
void stream(benchmark::State& state, Channel& channel) {
  fibers::fiber other([&] {
    for (long value = 0; channel.push(value) == fibers::channel_op_status::success; ++value) {
    }
  });
  long sum = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i)
      sum += channel.value_pop();
  benchmark::DoNotOptimize(sum);
  channel.close();
  other.join();
}

void channel_unbuffered_one_way(benchmark::State& state) {
  fibers::unbuffered_channel<long> channel;
  stream(state, channel);
}
BENCHMARK(channel_unbuffered_one_way)->Name("channel_unbuffered_one_way/boost_fiber");

void channel_buffered(benchmark::State& state) {
  fibers::buffered_channel<long> channel(128);
  stream(state, channel);
}
BENCHMARK(channel_buffered)->Name("channel_buffered/128/boost_fiber");

void lock_and_unlock(benchmark::State& state) {
  fibers::mutex mutex;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i) {
      const std::lock_guard lock(mutex);
      benchmark::ClobberMemory();
    }
}
BENCHMARK(lock_and_unlock)->Name("mutex/boost_fiber");

} // namespace
