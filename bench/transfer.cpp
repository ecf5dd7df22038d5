// SPDX-License-Identifier: MIT
// transfer() as users call it. Compiled a second time with the floating-point control left out.
#include "support.h"

#include <cede/process.h>

#include <cfenv>
#include <memory>

namespace {

using cede::newprocess;
using cede::Next;
using cede::Process;
using cede::transfer;

[[noreturn]] CEDE_NOINLINE void go_round(Process& self, Process& next) {
  for (;;)
    transfer(self, next);
}

CEDE_NOINLINE void transfer_often(Process& self, Process& next, long times) {
  for (; times > 0; --times)
    transfer(self, next);
}

// Each transfers to the next, the last to the first.
template <long kProcesses>
void round_robin(benchmark::State& state) {
  const std::unique_ptr<Process[]> ring(new Process[kProcesses]);
  for (long i = 1; i < kProcesses; ++i)
    newprocess(ring[i], [self = &ring[i], next = &ring[(i + 1) % kProcesses]](void*) -> Next {
      go_round(*self, *next);
    }).value();
  transfer(ring[0], ring[1]); // the first touch of every stack is not measured
  constexpr long kRounds = bench::kBatch / kProcesses;
  while (state.KeepRunningBatch(kRounds * kProcesses))
    transfer_often(ring[0], ring[1], bench::opaque(kRounds));
}

// The same, where each also has something of its own on its stack to read and write: this brings
// the stack's cache line and address translation into it.
template <long kProcesses>
void round_robin_with_local(benchmark::State& state) {
  const std::unique_ptr<Process[]> ring(new Process[kProcesses]);
  for (long i = 1; i < kProcesses; ++i)
    newprocess(ring[i], [self = &ring[i], next = &ring[(i + 1) % kProcesses]](void*) -> Next {
      for (long turns = 0;; ++turns) {
        benchmark::DoNotOptimize(&turns);
        benchmark::ClobberMemory();
        transfer(*self, *next);
      }
    }).value();
  transfer(ring[0], ring[1]);
  constexpr long kRounds = bench::kBatch / kProcesses;
  while (state.KeepRunningBatch(kRounds * kProcesses))
    transfer_often(ring[0], ring[1], bench::opaque(kRounds));
}

#if CEDE_PRESERVE_FPENV
BENCHMARK(round_robin<2>)->Name("transfer/2");
BENCHMARK(round_robin<100>)->Name("transfer/100");
BENCHMARK(round_robin<10'000>)->Name("transfer/10000");
BENCHMARK(round_robin_with_local<2>)->Name("transfer_with_local/2");
BENCHMARK(round_robin_with_local<100>)->Name("transfer_with_local/100");
BENCHMARK(round_robin_with_local<10'000>)->Name("transfer_with_local/10000");

void sticky_flag(benchmark::State& state) {
  Process main, other;
  newprocess(other, [&](void*) -> Next {
    bench::set_sticky_flag();
    go_round(other, main);
  }).value();
  std::feclearexcept(FE_ALL_EXCEPT);
  while (state.KeepRunningBatch(bench::kBatch))
    transfer_often(main, other, bench::opaque(bench::kBatch / 2));
}
BENCHMARK(sticky_flag)->Name("transfer_sticky_flag/2");
#else
BENCHMARK(round_robin<2>)->Name("transfer_without_fpenv/2");
BENCHMARK(round_robin<100>)->Name("transfer_without_fpenv/100");
BENCHMARK(round_robin<10'000>)->Name("transfer_without_fpenv/10000");
#endif

} // namespace
