// SPDX-License-Identifier: MIT
// Peer: Boost.Context's assembly without the class around it.
#include "support.h"

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include <cfenv>
#include <memory>
#include <vector>

namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

// A stack on which `run` stands ready. What runs there never ends and needs no destructor.
class Coroutine {
public:
  explicit Coroutine(void (*run)(transfer_t)) : stack_(allocator_.allocate()) {
    context_ = make_fcontext(stack_.sp, stack_.size, run);
  }
  Coroutine(const Coroutine&) = delete;
  Coroutine& operator=(const Coroutine&) = delete;
  ~Coroutine() { allocator_.deallocate(stack_); }

  // Lets it run to its first jump back; returns where it goes on.
  fcontext_t start(void* argument) { return jump_fcontext(context_, argument).fctx; }

private:
  boost::context::fixedsize_stack allocator_;
  boost::context::stack_context stack_;
  fcontext_t context_;
};

// Who arrives is told whom he came from, and keeps that for him.
struct Place {
  fcontext_t* previous;
  fcontext_t* next;

  void jump() const { *previous = jump_fcontext(*next, nullptr).fctx; }
};

void go_round(transfer_t arrived) {
  const auto place = *static_cast<Place*>(arrived.data);
  *place.previous = jump_fcontext(arrived.fctx, nullptr).fctx;
  for (;;)
    place.jump();
}

template <long kProcesses>
void round_robin(benchmark::State& state) {
  std::vector<fcontext_t> ring(kProcesses);
  std::vector<std::unique_ptr<Coroutine>> coroutines;
  auto place_of = [&](long i) {
    return Place{&ring[(i + kProcesses - 1) % kProcesses], &ring[(i + 1) % kProcesses]};
  };
  for (long i = 1; i < kProcesses; ++i) {
    coroutines.push_back(std::make_unique<Coroutine>(go_round));
    Place place = place_of(i);
    ring[i] = coroutines.back()->start(&place);
  }
  const Place place = place_of(0);
  constexpr long kRounds = bench::kBatch / kProcesses;
  while (state.KeepRunningBatch(kRounds * kProcesses))
    for (long i = 0; i < kRounds; ++i)
      place.jump();
}
BENCHMARK(round_robin<2>)->Name("transfer/2/boost_fcontext");
BENCHMARK(round_robin<100>)->Name("transfer/100/boost_fcontext");
BENCHMARK(round_robin<10'000>)->Name("transfer/10000/boost_fcontext");

void sticky_flag(benchmark::State& state) {
  Coroutine other([](transfer_t arrived) {
    bench::set_sticky_flag();
    for (;;)
      arrived = jump_fcontext(arrived.fctx, nullptr);
  });
  std::feclearexcept(FE_ALL_EXCEPT);
  fcontext_t next = other.start(nullptr);
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch / 2; ++i)
      next = jump_fcontext(next, nullptr).fctx;
}
BENCHMARK(sticky_flag)->Name("transfer_sticky_flag/2/boost_fcontext");

struct Leaf {
  fcontext_t other;
  void operator()() { other = jump_fcontext(other, nullptr).fctx; }
};

template <int kPath>
void depth(benchmark::State& state) {
  Coroutine other([](transfer_t arrived) {
    Leaf leaf{arrived.fctx};
    bench::descend_often<kPath>(leaf, bench::forever());
  });
  Leaf leaf{other.start(nullptr)};
  while (state.KeepRunningBatch(bench::kBatch))
    bench::descend_often<0>(leaf, bench::opaque(bench::kBatch / 2));
}
BENCHMARK(depth<0>)->Name("transfer_depth20/2/boost_fcontext");
BENCHMARK(depth<1>)->Name("transfer_depth20_other_path/2/boost_fcontext");

} // namespace
