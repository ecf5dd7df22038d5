// SPDX-License-Identifier: MIT
// Every scheduler of the program, for those who look at it from outside: share/gdb/cede.py. Layer
// core.
//
// Invariants: a scheduler is on the list from the end of its construction to the begin of its
// destruction. The list is changed under stacks_mutex(), which forks respect, and read by nobody
// else in the program.
#pragma once

namespace cede::core {

struct SchedulerState;

// The one that was made last; the others follow by their `older`.
extern SchedulerState* schedulers;

void enlist(SchedulerState& scheduler) noexcept;
void delist(SchedulerState& scheduler) noexcept;

} // namespace cede::core
