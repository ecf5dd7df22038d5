// SPDX-License-Identifier: MIT
// The base line of every ratio: an indirect call and its return; and the calls of the depth
// benchmarks with no switch at their bottom.
#include "support.h"

namespace {

CEDE_NOINLINE void do_nothing() {
  benchmark::ClobberMemory();
}

void call_and_return(benchmark::State& state) {
  void (*function)() = do_nothing;
  benchmark::DoNotOptimize(function); // from here on the compiler can't know where it leads
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i)
      function();
}
BENCHMARK(call_and_return);

void calls_depth20(benchmark::State& state) {
  auto leaf = [] { benchmark::ClobberMemory(); };
  while (state.KeepRunningBatch(bench::kBatch))
    bench::descend_often<0>(leaf, bench::opaque(bench::kBatch));
}
BENCHMARK(calls_depth20);

} // namespace
