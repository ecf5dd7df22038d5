// SPDX-License-Identifier: MIT
// What the benchmarks share. A benchmark counts switches, not loop turns: it runs them in batches
// of KeepRunningBatch, so that the time that Google Benchmark prints is that of one.
#pragma once

#include <cede/detail/compiler.h>

#include <benchmark/benchmark.h>

namespace bench {

// Switches in a batch: enough that the loop around it costs nothing.
inline constexpr long kBatch = 10'000;

inline constexpr int kDepth = 20;

// Calls `leaf` at the bottom of kFrames frames, none of which the compiler can merge with another,
// turn into a jump or leave out. Frames of different paths are different functions.
template <int kPath, int kFrames, class Leaf>
CEDE_NOINLINE long descend(Leaf& leaf) {
  long below = 0;
  if constexpr (kFrames == 1)
    leaf();
  else
    below = descend<kPath, kFrames - 1>(leaf);
  benchmark::DoNotOptimize(below);
  return below + kPath * kDepth + kFrames;
}

// The one place from which everybody on `kPath` descends.
template <int kPath, class Leaf>
CEDE_NOINLINE void descend_often(Leaf& leaf, long times) {
  for (; times > 0; --times)
    benchmark::DoNotOptimize(descend<kPath, kDepth>(leaf));
}

// A number that the compiler can't see, so that it makes no second copy of the function it is
// passed to: the copies would be different paths.
inline long opaque(long number) {
  benchmark::DoNotOptimize(number);
  return number;
}

inline long forever() {
  return opaque(1L << 62);
}

// Leaves MXCSR's inexact flag set, as nearly all floating-point arithmetic does.
inline void set_sticky_flag() {
  volatile double third = 1.0;
  third = third / 3.0;
}

} // namespace bench
