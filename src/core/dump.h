// SPDX-License-Identifier: MIT
// What a scheduler says of its fibers. Layer core.
#pragma once

#include <cede/scheduler.h>

#include <string>
#include <vector>

namespace cede::core {

struct SchedulerState;

// Those that have not ended, in the order of their ids.
std::vector<FiberInfo> list_fibers(const SchedulerState& scheduler);

// A line each, and each circle of joins.
std::string dump_fibers(const SchedulerState& scheduler);

// On standard error.
void report_deadlock(const SchedulerState& scheduler) noexcept;

} // namespace cede::core
