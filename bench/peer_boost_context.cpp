// SPDX-License-Identifier: MIT
// Peer: boost::context::fiber.
#include "support.h"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>

#include <cfenv>
#include <memory>
#include <utility>
#include <vector>

namespace {

using boost::context::fiber;

// Who arrives is given the one he came from, and keeps that for him.
template <long kProcesses>
void round_robin(benchmark::State& state) {
  std::vector<fiber> ring(kProcesses);
  auto resume_next = [&ring](long i) {
    ring[(i + kProcesses - 1) % kProcesses] = std::move(ring[(i + 1) % kProcesses]).resume();
  };
  bool is_starting = true;
  for (long i = 1; i < kProcesses; ++i)
    ring[i] = fiber([&, i](fiber&& arrived) {
                if (is_starting)
                  arrived = std::move(arrived).resume();
                ring[(i + kProcesses - 1) % kProcesses] = std::move(arrived);
                for (;;)
                  resume_next(i);
                return fiber();
              }).resume();
  while (state.KeepRunningBatch(bench::kBatch / kProcesses * kProcesses))
    for (long i = 0; i < bench::kBatch / kProcesses; ++i)
      resume_next(0);
}
BENCHMARK(round_robin<2>)->Name("transfer/2/boost_context");
BENCHMARK(round_robin<100>)->Name("transfer/100/boost_context");
BENCHMARK(round_robin<10'000>)->Name("transfer/10000/boost_context");

struct Leaf {
  fiber other;
  void operator()() { other = std::move(other).resume(); }
};

void sticky_flag(benchmark::State& state) {
  std::feclearexcept(FE_ALL_EXCEPT);
  Leaf leaf{fiber([](fiber&& arrived) {
    bench::set_sticky_flag();
    for (Leaf back{std::move(arrived)};;)
      back();
    return fiber();
  })};
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch / 2; ++i)
      leaf();
}
BENCHMARK(sticky_flag)->Name("transfer_sticky_flag/2/boost_context");

template <int kPath>
void depth(benchmark::State& state) {
  Leaf leaf{fiber([](fiber&& arrived) {
    Leaf back{std::move(arrived)};
    bench::descend_often<kPath>(back, bench::forever());
    return std::move(back.other);
  })};
  while (state.KeepRunningBatch(bench::kBatch))
    bench::descend_often<0>(leaf, bench::opaque(bench::kBatch / 2));
}
BENCHMARK(depth<0>)->Name("transfer_depth20/2/boost_context");
BENCHMARK(depth<1>)->Name("transfer_depth20_other_path/2/boost_context");

template <class Allocator>
void lifecycle(benchmark::State& state) {
  Allocator allocator;
  long runs = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i) {
      fiber created(std::allocator_arg, allocator, [&runs](fiber&& back) {
        ++runs;
        return std::move(back);
      });
      std::move(created).resume();
    }
  benchmark::DoNotOptimize(runs);
}
BENCHMARK(lifecycle<boost::context::fixedsize_stack>)->Name("process_lifecycle/boost_context");
BENCHMARK(lifecycle<boost::context::pooled_fixedsize_stack>)
    ->Name("process_lifecycle/boost_context_pooled");

} // namespace
