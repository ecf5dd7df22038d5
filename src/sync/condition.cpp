// SPDX-License-Identifier: MIT
#include <cede/condition.h>

#include "../core/check.h"
#include "../core/scheduler_state.h"

#include <cede/select.h>

namespace cede {

ConditionVariable::~ConditionVariable() {
  CEDE_CHECK(waiters_.is_empty(), "a condition variable is destroyed that is waited for");
}

Result<void> ConditionVariable::wait_for_notification(Deadline deadline, StopEvent* stop) {
  if (core::running_fiber() == nullptr)
    return Errc::not_a_fiber;
  Waiter waiter("a condition");
  WaitLink place;
  WaitLink place_at_stop;
  waiter.watch(waiters_, place);
  if (stop != nullptr)
    waiter.watch(detail::SelectAccess::waiters(static_cast<Event&>(*stop)), place_at_stop);
  return detail::result_of_wait(waiter.wait(deadline, WhenUnwinding::wait_on));
}

} // namespace cede
