// SPDX-License-Identifier: MIT
// transfer() between processes whose stacks are 20 frames deep: what a switch does to the
// prediction of the returns above it.
#include "support.h"

#include <cede/process.h>

#include <ctime>

namespace {

using cede::Next;
using cede::Process;
struct Leaf {
  Process& from;
  Process& to;
  void operator()() { cede::transfer(from, to); }
};

// Of this program's processor time, as Google Benchmark's cpu_time.
double ns_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) * (1e9 / CLOCKS_PER_SEC);
}

// The same calls with no switch, measured here and now.
double ns_of_calls() {
  auto nothing = [] { benchmark::ClobberMemory(); };
  constexpr long kTimes = 10 * bench::kBatch;
  const auto begin = std::clock();
  bench::descend_often<0>(nothing, bench::opaque(kTimes));
  return ns_since(begin) / kTimes;
}

// `kPath` is that of the other process; this one goes down path 0.
template <int kPath>
void depth(benchmark::State& state) {
  Process main, other;
  cede::newprocess(other, [&](void*) {
    Leaf leaf{other, main};
    bench::descend_often<kPath>(leaf, bench::forever());
    return Next{main};
  }).value();
  Leaf leaf{main, other};
  const double calls_before = ns_of_calls();
  const auto begin = std::clock();
  while (state.KeepRunningBatch(bench::kBatch))
    bench::descend_often<0>(leaf, bench::opaque(bench::kBatch / 2));
  const double all = ns_since(begin) / static_cast<double>(state.iterations());
  state.counters["over_the_calls_ns"] = all - (calls_before + ns_of_calls()) / 2;
}
BENCHMARK(depth<0>)->Name("transfer_depth20/2");
BENCHMARK(depth<1>)->Name("transfer_depth20_other_path/2");

} // namespace
