// SPDX-License-Identifier: MIT
// One value of a Generator: two switches and what the range costs on top.
#include "support.h"

#include <cede/generator.h>

namespace {

void generator(benchmark::State& state) {
  cede::Generator<int> source([](auto& yield) {
    for (int i = 0;; ++i)
      yield(i);
  });
  auto at = source.begin();
  long sum = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i) {
      sum += *at;
      ++at;
    }
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(generator);

} // namespace
