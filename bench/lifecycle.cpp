// SPDX-License-Identifier: MIT
// To create, run and destroy a process whose stack comes from the cache.
#include "support.h"

#include <cede/process.h>

namespace {

using cede::Next;
using cede::Process;

void process_lifecycle(benchmark::State& state) {
  Process main;
  long runs = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i) {
      Process process;
      cede::newprocess(process, [&](void*) {
        ++runs;
        return Next{main};
      }).value();
      cede::transfer(main, process);
    }
  if (runs != static_cast<long>(state.iterations()))
    state.SkipWithError("a process did not run");
}
BENCHMARK(process_lifecycle);

} // namespace
