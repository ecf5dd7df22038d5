// SPDX-License-Identifier: MIT
// Peer: C++20 coroutines. They have no stack, so nothing here is deep.
#include "support.h"

#include <coroutine>
#include <exception>
#include <utility>
#include <vector>

namespace {

// Begins suspended and stays so at its end.
class Task {
public:
  struct promise_type {
    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int yielded) noexcept {
      return value = yielded, std::suspend_always();
    }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
    int value = 0;
  };
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_)
      handle_.destroy();
  }
  Handle handle() const { return handle_; }

private:
  explicit Task(Handle handle) : handle_(handle) {}
  Handle handle_;
};

// Awaiting it is a symmetric transfer to `to`.
struct Transfer {
  std::coroutine_handle<> to;
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept { return to; }
  void await_resume() const noexcept {}
};

using Handles = std::vector<std::coroutine_handle<>>;

Task go_round(const Handles& ring, std::size_t next) {
  for (;;)
    co_await Transfer{ring[next]};
}

// Gives control back to whoever resumed it after each `rounds`.
Task drive(const Handles& ring, long rounds) {
  for (;;) {
    for (long i = 0; i < rounds; ++i)
      co_await Transfer{ring[1]};
    co_await std::suspend_always();
  }
}

template <long kProcesses>
void round_robin(benchmark::State& state) {
  constexpr long kRounds = bench::kBatch / kProcesses;
  Handles ring;
  std::vector<Task> tasks;
  tasks.push_back(drive(ring, kRounds));
  for (std::size_t i = 1; i < kProcesses; ++i)
    tasks.push_back(go_round(ring, (i + 1) % kProcesses));
  for (const Task& task : tasks)
    ring.push_back(task.handle());
  while (state.KeepRunningBatch(kRounds * kProcesses))
    ring[0].resume();
}
BENCHMARK(round_robin<2>)->Name("transfer/2/cpp20");
BENCHMARK(round_robin<100>)->Name("transfer/100/cpp20");
BENCHMARK(round_robin<10'000>)->Name("transfer/10000/cpp20");

Task count() {
  for (int i = 0;; ++i)
    co_yield i;
}

void generator(benchmark::State& state) {
  const Task source = count();
  long sum = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i) {
      source.handle().resume();
      sum += source.handle().promise().value;
    }
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(generator)->Name("generator/cpp20");

// Not inlined, so that the frame is really allocated.
CEDE_NOINLINE Task count_run(long& runs) {
  ++runs;
  co_return;
}

void lifecycle(benchmark::State& state) {
  long runs = 0;
  while (state.KeepRunningBatch(bench::kBatch))
    for (long i = 0; i < bench::kBatch; ++i) {
      const Task task = count_run(runs);
      task.handle().resume();
    }
  benchmark::DoNotOptimize(runs);
}
BENCHMARK(lifecycle)->Name("process_lifecycle/cpp20");

} // namespace
