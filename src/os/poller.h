// SPDX-License-Identifier: MIT
// Where a scheduler's thread waits: for operations that the system carries out, for a point in time
// and for a call from another thread. Layer os.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

namespace cede::os {

using PollTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// What a back end is asked to do. Owned by whoever submitted it; it must stay until it is finished.
struct Operation {
  Operation* next = nullptr; // on the list of finished ones
  int error = 0;             // 0, or the system's number
  std::size_t bytes = 0;     // done, also if there is an error
};

// One a scheduler. Only its thread calls it, save wake().
class Poller {
public:
  virtual ~Poller() = default;

  // Begins an operation; false if this back end can't do it. It is finished by wait(), once.
  virtual bool submit(Operation& operation) noexcept = 0;
  // Asks to end an operation early. It is still finished by wait(), with the result it had then.
  virtual void cancel(Operation& operation) noexcept = 0;

  // Waits until an operation is finished, `until` has come or wake() was called, also if that was
  // before; then gives the finished ones. Never returns early for a time, but it may for no reason.
  virtual Operation* wait(PollTime until) noexcept = 0;

  // Ends the wait, or the next one. Any thread.
  virtual void wake() noexcept = 0;
};

// One that knows no operations and only waits. Null without memory or system resources.
std::unique_ptr<Poller> make_waiting_poller() noexcept;

} // namespace cede::os
