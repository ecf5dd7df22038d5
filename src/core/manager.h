// SPDX-License-Identifier: MIT
// The manager: what has ended is destroyed by it, on the pump's stack, so that nobody frees the
// stack he stands on. Layer core.
#pragma once

namespace cede::core {

struct SchedulerState;

// Releases the stacks of ended fibers, first ended first, and hands errors that nobody can join to
// the scheduler's handler.
void bury_the_dead(SchedulerState& scheduler);

} // namespace cede::core
