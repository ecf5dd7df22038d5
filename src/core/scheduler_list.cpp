// SPDX-License-Identifier: MIT
// This file is compiled with debugging information in every build: the debugger's script reads the
// types that it names, whatever the rest is compiled with.
#include "scheduler_list.h"

#include "fiber.h"
#include "scheduler_state.h"
#include "slab.h"

#include <mutex>

namespace cede::core {

constinit SchedulerState* schedulers = nullptr;

void enlist(SchedulerState& scheduler) noexcept {
  const std::lock_guard lock(stacks_mutex());
  scheduler.older = schedulers;
  if (schedulers != nullptr)
    schedulers->newer = &scheduler;
  schedulers = &scheduler;
}

void delist(SchedulerState& scheduler) noexcept {
  const std::lock_guard lock(stacks_mutex());
  (scheduler.newer != nullptr ? scheduler.newer->older : schedulers) = scheduler.older;
  if (scheduler.older != nullptr)
    scheduler.older->newer = scheduler.newer;
}

} // namespace cede::core
