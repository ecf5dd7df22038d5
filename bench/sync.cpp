// SPDX-License-Identifier: MIT
// What fibers use to wait for one another.
#include "support.h"

#include <cede/channel.h>
#include <cede/fiber.h>
#include <cede/mutex.h>
#include <cede/scheduler.h>
#include <cede/select.h>
#include <cede/semaphore.h>

#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace {

using cede::Channel;
using cede::Result;
using cede::spawn;

// A message there and one back; the time is that of one.
void channel_unbuffered(benchmark::State& state) {
  cede::run([&] {
    Channel<long> there, back;
    spawn([&] {
      for (const long value : there)
        std::ignore = back.send(value + 1);
    });
    long value = 0;
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch / 2; ++i) {
        std::ignore = there.send(value);
        value = *back.receive();
      }
    if (value != static_cast<long>(state.iterations()) / 2)
      state.SkipWithError("a message was lost");
    there.close();
    cede::yield();
  });
}
BENCHMARK(channel_unbuffered);

// One sends, the other receives.
void stream(benchmark::State& state, std::size_t capacity) {
  cede::run([&] {
    Channel<long> channel(capacity);
    spawn([&] {
      for (long value = 0; channel.send(value); ++value) {
      }
    });
    long next = 0;
    bool is_in_order = true;
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch; ++i)
        is_in_order = is_in_order && *channel.receive() == next++;
    if (!is_in_order)
      state.SkipWithError("a message was lost");
    channel.close();
    cede::yield();
  });
}

void channel_unbuffered_one_way(benchmark::State& state) {
  stream(state, 0);
}
BENCHMARK(channel_unbuffered_one_way);

void channel_buffered(benchmark::State& state) {
  stream(state, 128);
}
BENCHMARK(channel_buffered)->Name("channel_buffered/128");

// Nobody else wants it.
template <class Mutex>
void lock_and_unlock(benchmark::State& state) {
  cede::run([&] {
    Mutex mutex;
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch; ++i) {
        const std::lock_guard lock(mutex);
        benchmark::ClobberMemory();
      }
  });
}
BENCHMARK(lock_and_unlock<cede::Mutex>)->Name("mutex");
BENCHMARK(lock_and_unlock<std::mutex>)->Name("mutex/std");

// Two that take turns.
void semaphore_hand_off(benchmark::State& state) {
  cede::run([&] {
    cede::Semaphore mine(0), yours(0);
    bool is_over = false;
    spawn([&] {
      while (yours.acquire(), !is_over)
        mine.release();
    });
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch / 2; ++i) {
        yours.release();
        mine.acquire();
      }
    is_over = true;
    yours.release();
    cede::yield();
  });
}
BENCHMARK(semaphore_hand_off);

template <class F>
std::size_t select_of(std::vector<std::unique_ptr<Channel<long>>>& channels, F f) {
  return cede::select(cede::on_receive(*channels[0], f), cede::on_receive(*channels[1], f),
                      cede::on_receive(*channels[2], f), cede::on_receive(*channels[3], f),
                      cede::on_receive(*channels[4], f), cede::on_receive(*channels[5], f),
                      cede::on_receive(*channels[6], f), cede::on_receive(*channels[7], f));
}

std::vector<std::unique_ptr<Channel<long>>> eight_channels(std::size_t capacity) {
  std::vector<std::unique_ptr<Channel<long>>> channels;
  for (int i = 0; i < 8; ++i)
    channels.push_back(std::make_unique<Channel<long>>(capacity));
  return channels;
}

// One of eight is ready; the send that makes it so is measured too.
void select_ready(benchmark::State& state) {
  cede::run([&] {
    auto channels = eight_channels(1);
    long sum = 0;
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch; ++i) {
        std::ignore = channels[static_cast<std::size_t>(i) % 8]->try_send(1L);
        select_of(channels, [&](Result<long> received) { sum += *received; });
      }
    if (sum != static_cast<long>(state.iterations()))
      state.SkipWithError("a message was lost");
  });
}
BENCHMARK(select_ready)->Name("select/8");

// None is ready; another fiber sends to one. A message is one select and one send.
void select_blocking(benchmark::State& state) {
  cede::run([&] {
    auto channels = eight_channels(0);
    spawn([&] {
      for (std::size_t i = 0; channels[i % 8]->send(1L); ++i) {
      }
    });
    long sum = 0;
    while (state.KeepRunningBatch(bench::kBatch))
      for (long i = 0; i < bench::kBatch; ++i)
        select_of(channels, [&](Result<long> received) { sum += *received; });
    if (sum != static_cast<long>(state.iterations()))
      state.SkipWithError("a message was lost");
    for (auto& channel : channels)
      channel->close();
    cede::yield();
  });
}
BENCHMARK(select_blocking)->Name("select_blocking/8");

// A value through so many stages, each a fiber between two rendezvous; the time is that of a hop.
void pipeline(benchmark::State& state) {
  constexpr long kStages = 100'000;
  cede::run([&] {
    std::vector<std::unique_ptr<Channel<long>>> channels;
    for (long i = 0; i <= kStages; ++i)
      channels.push_back(std::make_unique<Channel<long>>());
    for (std::size_t i = 0; i < kStages; ++i)
      spawn([&in = *channels[i], &out = *channels[i + 1]] {
        for (const long value : in)
          std::ignore = out.send(value + 1);
        out.close();
      });
    cede::yield();
    long value = 0;
    while (state.KeepRunningBatch(kStages)) {
      std::ignore = channels.front()->send(0L);
      value = *channels.back()->receive();
    }
    if (value != kStages)
      state.SkipWithError("a stage was left out");
    channels.front()->close();
    while (channels.back()->receive()) {
    }
  });
}
BENCHMARK(pipeline)->Name("pipeline/100000");

} // namespace
