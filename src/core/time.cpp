// SPDX-License-Identifier: MIT
#include <cede/time.h>

#include "scheduler_state.h"

namespace cede {

TimePoint now() noexcept {
  const core::SchedulerState* scheduler = core::SchedulerState::driven();
  return scheduler != nullptr ? scheduler->time() : std::chrono::steady_clock::now();
}

} // namespace cede
