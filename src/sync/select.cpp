// SPDX-License-Identifier: MIT
#include <cede/select.h>

#include "../core/fiber.h"
#include "../core/scheduler_state.h"

namespace cede::detail {

Result<void> look_at_end(const AnyFiber& fiber) noexcept {
  const FiberRecord* target = FiberAccess::record(fiber);
  if (target == nullptr)
    return Errc::deadlock;
  core::check_thread(*target);
  if (target->stage == FiberStage::finished)
    return core::how_it_ended(*target);
  const FiberRecord* me = core::running_fiber();
  if (target == me)
    return Errc::deadlock;
  if (me != nullptr && target->scheduler != me->scheduler)
    return Errc::invalid_argument;
  return Errc::timed_out;
}

WaitList& list_of_joiners(const AnyFiber& fiber) noexcept {
  return FiberAccess::record(fiber)->joiners;
}

void require_fiber() {
  if (core::running_fiber() == nullptr)
    throw_error(Errc::not_a_fiber);
}

} // namespace cede::detail
