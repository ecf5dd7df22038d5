// SPDX-License-Identifier: MIT
#include <cede/detail/wait.h>

#include "../core/scheduler_state.h"

namespace cede::detail {

Result<void> meet_request_on_entry(WhenUnwinding rule) {
  FiberRecord* me = core::running_fiber();
  if (me == nullptr)
    return {};
  core::check_may_suspend(me);
  switch (core::interruption_of(*me)) {
  case core::Interruption::throws:
    core::throw_request(*me);
  case core::Interruption::reports:
    if (rule == WhenUnwinding::wait_on)
      return {};
    yield_out_of_line(); // one turn for the others
    return Errc::cancelled;
  default:
    return {};
  }
}

Result<void> result_of_wait(WakeReason reason) noexcept {
  switch (reason) {
  case WakeReason::timed_out:
    return Errc::timed_out;
  case WakeReason::cancelled:
    return Errc::cancelled;
  case WakeReason::closed:
    return Errc::closed;
  default:
    return {};
  }
}

Result<void> wait_in(WaitList& list, WaitLink& place, const char* what, Deadline deadline,
                     WhenUnwinding rule) {
  if (core::running_fiber() == nullptr)
    return Errc::not_a_fiber;
  Waiter waiter(what);
  waiter.watch(list, place);
  return result_of_wait(waiter.wait(deadline, rule));
}

} // namespace cede::detail
