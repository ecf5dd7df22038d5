// SPDX-License-Identifier: MIT
#include <cede/scheduler.h>

#include "check.h"
#include "unhandled.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace cede::detail {

namespace {

enum class Start : int { later, now, never };

void join_all(std::vector<std::thread>& threads) {
  for (std::thread& thread : threads)
    thread.join();
}

} // namespace

// Bodies may run for ever, so none begins before the last thread is there: a failure on the way
// has only to send home those that wait.
void run_on_threads(unsigned threads, void (*body)(void* argument, unsigned number),
                    void* argument) {
  if (threads == 0)
    throw_error(Errc::invalid_argument);
  std::vector<std::exception_ptr> errors(threads);
  const auto run_one = [&](unsigned number) {
    try {
      body(argument, number);
    }
    CEDE_PASS_FORCED_UNWIND
    catch (...) {
      errors[number] = std::current_exception();
    }
  };

  // No std::atomic: its wait() loses wake-ups where the C++ library emulates it, as MinGW's does.
  std::mutex mutex;
  std::condition_variable decided;
  Start start = Start::later;
  const auto decide = [&](Start decision) {
    const std::lock_guard lock(mutex);
    start = decision;
    decided.notify_all();
  };
  const auto wait_for_decision = [&] {
    std::unique_lock lock(mutex);
    decided.wait(lock, [&] { return start != Start::later; });
    return start;
  };
  std::vector<std::thread> others;
  try {
    others.reserve(threads - 1);
    for (unsigned number = 1; number < threads; ++number)
      others.emplace_back([&, number] {
        if (wait_for_decision() == Start::now)
          run_one(number);
      });
  } catch (...) {
    decide(Start::never);
    join_all(others);
    throw;
  }
  decide(Start::now);
  run_one(0);
  join_all(others);

  std::exception_ptr first;
  for (unsigned number = 0; number < threads; ++number) {
    if (errors[number] == nullptr)
      continue;
    if (first == nullptr) {
      first = errors[number];
      continue;
    }
    core::Line line;
    line << "cede: an exception ended main on thread " << std::size_t{number};
    core::print_unhandled(line, errors[number]);
  }
  if (first != nullptr)
    std::rethrow_exception(first);
}

} // namespace cede::detail
