// SPDX-License-Identifier: MIT
// transfer() as users call it. Compiled a second time with the floating-point control left out.
#include "support.h"

#include <cede/process.h>

#include <cfenv>
#include <memory>

namespace {

using cede::Next;
using cede::Process;
using cede::newprocess;
using cede::transfer;

[[noreturn]] void go_round(Process& self, Process& next) {
  for (;;)
    transfer(self, next);
}

void two_processes(benchmark::State& state) {
  Process main, other;
  newprocess(other, [&](void*) -> Next { go_round(other, main); }).value();
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch / 2; ++i)
      transfer(main, other);
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
    for (long i = 0; i < kRounds; ++i)
      transfer(ring[0], ring[1]);
}

#if CEDE_PRESERVE_FPENV
BENCHMARK(two_processes)->Name("transfer/2");
BENCHMARK(round_robin<100>)->Name("transfer/100");
BENCHMARK(round_robin<10'000>)->Name("transfer/10000");

void sticky_flag(benchmark::State& state) {
  Process main, other;
  newprocess(other, [&](void*) -> Next {
    bench::set_sticky_flag();
    go_round(other, main);
  }).value();
  std::feclearexcept(FE_ALL_EXCEPT);
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch / 2; ++i)
      transfer(main, other);
}
BENCHMARK(sticky_flag)->Name("transfer_sticky_flag/2");
#else
BENCHMARK(two_processes)->Name("transfer_without_fpenv/2");
BENCHMARK(round_robin<100>)->Name("transfer_without_fpenv/100");
BENCHMARK(round_robin<10'000>)->Name("transfer_without_fpenv/10000");
#endif

} // namespace
