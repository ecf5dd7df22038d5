// SPDX-License-Identifier: MIT
// Peer: the C library's swapcontext, which makes a system call each time.
#include "support.h"

#include <ucontext.h>

#include <memory>
#include <vector>

namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

struct Coroutine {
  std::unique_ptr<char[]> stack;
  ucontext_t context;
};

struct Leaf {
  ucontext_t* from;
  ucontext_t* to;
  void operator()() { swapcontext(from, to); }
};

Leaf started; // makecontext passes ints only

void go_round() {
  Leaf leaf = started;
  for (;;)
    leaf();
}

template <int kPath>
void go_deep() {
  Leaf leaf = started;
  bench::descend_often<kPath>(leaf, bench::forever());
}

void start(Coroutine& coroutine, void (*run)(), ucontext_t* to) {
  coroutine.stack = std::make_unique<char[]>(kStackBytes);
  getcontext(&coroutine.context);
  coroutine.context.uc_stack.ss_sp = coroutine.stack.get();
  coroutine.context.uc_stack.ss_size = kStackBytes;
  coroutine.context.uc_link = nullptr;
  makecontext(&coroutine.context, run, 0);
  started = {&coroutine.context, to};
}

// The first lap starts each in turn.
template <long kProcesses>
void round_robin(benchmark::State& state) {
  std::vector<Coroutine> ring(kProcesses);
  ucontext_t main;
  for (long i = kProcesses - 1; i > 0; --i) {
    ucontext_t* next = i + 1 < kProcesses ? &ring[i + 1].context : &main;
    start(ring[i], go_round, next);
    swapcontext(&main, &ring[i].context); // goes once through those that stand behind it
  }
  while (state.KeepRunningBatch(bench::kBatch / kProcesses * kProcesses))
    for (long i = 0; i < bench::kBatch / kProcesses; ++i)
      swapcontext(&main, &ring[1].context);
}
BENCHMARK(round_robin<2>)->Name("transfer/2/ucontext");
BENCHMARK(round_robin<100>)->Name("transfer/100/ucontext");

template <int kPath>
void depth(benchmark::State& state) {
  Coroutine other;
  ucontext_t main;
  start(other, go_deep<kPath>, &main);
  Leaf leaf{&main, &other.context};
  while (state.KeepRunningBatch(bench::kBatch))
    bench::descend_often<0>(leaf, bench::opaque(bench::kBatch / 2));
}
BENCHMARK(depth<0>)->Name("transfer_depth20/2/ucontext");
BENCHMARK(depth<1>)->Name("transfer_depth20_other_path/2/ucontext");

} // namespace
