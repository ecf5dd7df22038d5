// SPDX-License-Identifier: MIT
// Peer: Boost.Coroutine2.
#include "support.h"

#include <boost/coroutine2/all.hpp>
#include <boost/coroutine2/pooled_fixedsize_stack.hpp>

namespace {

using Coroutine = boost::coroutines2::coroutine<int>;

void generator(benchmark::State& state) {
  Coroutine::pull_type source([](Coroutine::push_type& yield) {
    for (int i = 0;; ++i)
      yield(i);
  });
  long sum = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i) {
      sum += source.get();
      source();
    }
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(generator)->Name("generator/boost_coroutine2");

// A push_type runs nothing until it is called: created, run, destroyed.
template <class Allocator>
void lifecycle(benchmark::State& state) {
  Allocator allocator;
  long runs = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i) {
      Coroutine::push_type sink(allocator, [&runs](Coroutine::pull_type&) { ++runs; });
      sink(1);
    }
  benchmark::DoNotOptimize(runs);
}
BENCHMARK(lifecycle<boost::coroutines2::fixedsize_stack>)
    ->Name("process_lifecycle/boost_coroutine2");
BENCHMARK(lifecycle<boost::coroutines2::pooled_fixedsize_stack>)
    ->Name("process_lifecycle/boost_coroutine2_pooled");

} // namespace
