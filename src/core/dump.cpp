// SPDX-License-Identifier: MIT
#include "dump.h"

#include "../os/fault.h"
#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"

#include <algorithm>

namespace cede::core {

using detail::FiberRecord;
using detail::FiberStage;

namespace {

const char* word_for(FiberState state) noexcept {
  switch (state) {
  case FiberState::created:
    return "created";
  case FiberState::ready:
    return "ready";
  case FiberState::running:
    return "running";
  case FiberState::waiting:
    return "waiting";
  default:
    return "finished";
  }
}

FiberInfo describe(const SchedulerState& scheduler, FiberRecord& fiber) {
  FiberInfo info;
  info.id = fiber.id;
  info.name = name_of(fiber);
  info.state = detail::FiberAccess::reference(&fiber).state();
  info.priority = detail::FiberAccess::reference(&fiber).priority();
  if (fiber.stage == FiberStage::waiting) {
    info.waits_for = fiber.waiter->what();
    const FiberRecord* counterpart = counterpart_of(fiber);
    info.waits_for_id = counterpart != nullptr ? counterpart->id : 0;
    info.deadline = scheduler.deadlines.of(*fiber.waiter);
  } else if (fiber.is_held) {
    info.waits_for = "a limit";
  }
  if (fiber.spawned.file != nullptr)
    info.spawned_at = std::string(fiber.spawned.file) + ":" + std::to_string(fiber.spawned.line);
  return info;
}

std::string named(std::uint64_t id, const std::string& name) {
  const std::string number = "fiber " + std::to_string(id);
  return name.empty() ? number : number + " (" + name + ")";
}

std::string named(const FiberRecord& fiber) {
  return named(fiber.id, std::string(name_of(fiber)));
}

// The circle that `first` is part of, told by its oldest member; empty if there is none.
std::string circle_from(const SchedulerState& scheduler, const FiberRecord& first) {
  std::string text = named(first);
  const FiberRecord* fiber = awaited_by(first);
  for (std::size_t hops = 0; fiber != nullptr && hops < scheduler.alive; ++hops) {
    text += " waits for " + named(*fiber);
    if (fiber == &first)
      return text;
    if (fiber->id < first.id)
      break; // it is told from there, or leads to one that is
    fiber = awaited_by(*fiber);
  }
  return {};
}

} // namespace

std::vector<FiberInfo> list_fibers(const SchedulerState& scheduler) {
  std::vector<FiberInfo> fibers;
  scheduler.records->for_each([&](FiberRecord& fiber) {
    if (fiber.stage != FiberStage::finished)
      fibers.push_back(describe(scheduler, fiber));
  });
  std::sort(fibers.begin(), fibers.end(),
            [](const FiberInfo& one, const FiberInfo& other) { return one.id < other.id; });
  return fibers;
}

std::string dump_fibers(const SchedulerState& scheduler) {
  const auto now = scheduler.time().time_since_epoch().count();
  std::string text;
  for (const FiberInfo& fiber : list_fibers(scheduler)) {
    text += named(fiber.id, fiber.name) + ": " + word_for(fiber.state) + ", priority " +
            std::to_string(fiber.priority);
    if (fiber.waits_for != nullptr)
      text += std::string(", waits: ") + fiber.waits_for;
    if (fiber.waits_for_id != 0)
      text += " of fiber " + std::to_string(fiber.waits_for_id);
    if (!fiber.deadline.is_forever())
      text += ", " + std::to_string((fiber.deadline.nanoseconds() - now) / 1000) + " us left";
    if (!fiber.spawned_at.empty())
      text += ", spawned at " + fiber.spawned_at;
    text += "\n";
  }
  scheduler.records->for_each([&](FiberRecord& fiber) {
    if (fiber.stage != FiberStage::finished)
      if (const std::string circle = circle_from(scheduler, fiber); !circle.empty())
        text += "circle: " + circle + "\n";
  });
  return text;
}

void report_deadlock(const SchedulerState& scheduler) noexcept {
  std::string text = "cede: deadlock: no fiber can ever run again\n";
  text += dump_fibers(scheduler);
  os::write_error(text.data(), text.size());
}

} // namespace cede::core
