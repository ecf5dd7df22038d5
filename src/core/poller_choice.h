// SPDX-License-Identifier: MIT
// Which of the system's pollers a scheduler waits with. Layer core.
#pragma once

#include <cede/result.h>

namespace cede::core {

struct SchedulerState;

// Gives the scheduler, which has none that knows operations, the poller that its options or the
// environment's CEDE_POLLER ask for.
//   Fails     what the system says
Result<void> choose_poller(SchedulerState& scheduler) noexcept;

} // namespace cede::core
