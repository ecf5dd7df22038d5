// SPDX-License-Identifier: MIT
// The out-of-line form. It returns by `ret`, which is predicted where both sides call it from the
// same place, and never where they don't.
#include "support.h"

#include <cede/process.h>

namespace {

using cede::Next;
using cede::Process;

CEDE_NOINLINE void transfer_often(Process& from, Process& to, long times) {
  for (; times > 0; --times)
    cede::detail::transfer_out_of_line(execution_of(from), execution_of(to), nullptr);
}

void one_site(benchmark::State& state) {
  Process main, other;
  cede::newprocess(other, [&](void*) {
    transfer_often(other, main, bench::forever());
    return Next{main};
  }).value();
  while (state.KeepRunningBatch(bench::kBatch))
    transfer_often(main, other, bench::opaque(bench::kBatch / 2));
}
BENCHMARK(one_site)->Name("transfer_out_of_line/2");

void two_sites(benchmark::State& state) {
  Process main, other;
  cede::newprocess(other, [&](void*) -> Next {
    for (;;)
      cede::detail::transfer_out_of_line(execution_of(other), execution_of(main), nullptr);
  }).value();
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch / 2; ++i)
      cede::detail::transfer_out_of_line(execution_of(main), execution_of(other), nullptr);
}
BENCHMARK(two_sites)->Name("transfer_out_of_line_two_sites/2");

} // namespace
