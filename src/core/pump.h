// SPDX-License-Identifier: MIT
// The pump: whoever drives a scheduler, on the stack of its thread. Layer core.
#pragma once

#include <cede/scheduler.h>

namespace cede::core {

struct SchedulerState;

// For as long as one is in scope, this thread drives the scheduler. Fails a check on another thread
// than the scheduler's, and where one is driven already.
class Driving {
public:
  explicit Driving(SchedulerState& scheduler) noexcept;
  Driving(const Driving&) = delete;
  Driving& operator=(const Driving&) = delete;
  ~Driving();
};

// Drives until nobody is left, `deadline` has come, nobody can ever run again, or `awaited` has
// ended.
Progress drive(SchedulerState& scheduler, Deadline deadline,
               const detail::FiberRecord* awaited = nullptr);

// One post and one fiber at most, without blocking.
Progress drive_one(SchedulerState& scheduler);

// Waits until something can run.
Progress await_work(SchedulerState& scheduler, Deadline deadline);

// No other fiber is ready: the one that has just blocked waits itself for operations to finish, on
// its own stack, and gives who is to run. If that is its own, nothing is switched. Null if there is
// more to do, which is the pump's.
detail::FiberRecord* poll_in_place(SchedulerState& scheduler) noexcept;

// No fiber can ever run again: asks the idle hook, and without its help reports and ends the
// program.
void end_of_all(SchedulerState& scheduler);

} // namespace cede::core
