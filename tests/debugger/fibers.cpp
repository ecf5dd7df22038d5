// SPDX-License-Identifier: MIT
// What fibers.py looks at: fibers that wait in different ways, on two threads.
#include "../../src/os/memory.h"

#include <cede/cede.h>

#include <chrono>
#include <cstdlib>
#include <thread>

using namespace std::chrono_literals;

namespace {

cede::WaitList printer;

[[gnu::noinline]] void wait_in_the_middle(int depth) {
  volatile int left = depth; // so that the calls are no loop
  if (left > 0) {
    wait_in_the_middle(left - 1);
  } else {
    cede::Waiter waiter("for the printer");
    cede::WaitLink place;
    waiter.watch(printer, place);
    waiter.wait();
  }
  left = 0;
}

[[gnu::noinline]] void yield_for_ever(bool& stop) {
  while (!stop)
    cede::yield();
}

[[gnu::noinline]] void generate(cede::Generator<int>::Yield& yield) {
  cede::park();
  yield(1);
}

// The statement behind a call keeps this frame on the stack.
[[gnu::noinline]] void sleep_long() {
  cede::sleep_for(1h);
  asm volatile("");
}

[[gnu::noinline]] void join_other(cede::Fiber<void>& other) {
  other.join();
  asm volatile("");
}

} // namespace

// The debugger's stop, in the fiber that runs.
extern "C" [[gnu::noinline]] void all_wait() {
  asm volatile("");
}

int main() {
  // gdb gives up a mapping at the first page that it can't read when it writes a core file.
  cede::os::set_guard_method(cede::os::GuardMethod::protection);
  std::thread other([] { cede::run([] { sleep_long(); }); });
  other.detach();
  std::this_thread::sleep_for(200ms); // it sleeps by then
  cede::run([] {
    bool stop = false;
    auto nested = cede::spawn({.name = "nested", .priority = 2}, [] { wait_in_the_middle(3); });
    auto yielding = cede::spawn({.name = "yielding"}, [&] { yield_for_ever(stop); });
    auto joining = cede::spawn([&] { join_other(nested); });
    auto sleeping = cede::spawn({.name = "sleeping"}, [] { sleep_long(); });
    auto generating = cede::spawn({.name = "generating"}, [] {
      cede::Generator<int> numbers([](auto& yield) { generate(yield); });
      for (int number : numbers)
        static_cast<void>(number);
    });
    for (int i = 0; i < 3; ++i)
      cede::yield();
    cede::Limit limit(1);
    limit.spawn({.name = "new"}, [] {});
    limit.spawn({.name = "queued"}, [] {});
    all_wait();
    std::_Exit(0);
  });
}
