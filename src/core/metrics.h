// SPDX-License-Identifier: MIT
// What a scheduler counts and measures of itself. Layer core.
#pragma once

#include <cede/scheduler.h>

namespace cede::core {

// A slice of `fiber` that took that long.
void note_slice(SchedulerMetrics& metrics, const detail::FiberRecord& fiber,
                std::chrono::nanoseconds length) noexcept;

// A wait was woken that long after its deadline.
void note_lateness(SchedulerMetrics& metrics, std::chrono::nanoseconds lateness) noexcept;

} // namespace cede::core
