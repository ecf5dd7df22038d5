// SPDX-License-Identifier: MIT
// What the waits of everything that fibers wait for have in common.
#pragma once

#include <cede/detail/dispatch.h>
#include <cede/result.h>
#include <cede/time.h>
#include <cede/waiter.h>

namespace cede::detail {

// Whether the fiber that runs was asked for something that a wait has to look at before it acts.
CEDE_ALWAYS_INLINE bool has_request() noexcept {
  const FiberRecord* me = thread().dispatch->current;
  return me != nullptr && (me->is_cancelled || me->is_raised);
}

// Looks at that: throws it, or says that it is to be reported. An error but for that there is none.
//   Fails     cancelled
//   Throws    Cancelled
Result<void> meet_request_on_entry(WhenUnwinding rule);

// Takes the last place in `list` and waits. `place` may know more of the wait than its base does.
// Once it has returned, whoever had the list may be gone, whatever the result.
//   Fails     timed_out, cancelled, closed, not_a_fiber
//   Throws    Cancelled
Result<void> wait_in(WaitList& list, WaitLink& place, const char* what, Deadline deadline,
                     WhenUnwinding rule);

// The same for something that can be had at once: `take` tries, and the wait comes after it.
template <class Take>
Result<void> take_or_wait(Take take, WaitList& list, WaitLink& place, const char* what,
                          Deadline deadline, WhenUnwinding rule) {
  if (has_request())
    if (Result<void> met = meet_request_on_entry(rule); !met)
      return met;
  if (take())
    return {};
  return wait_in(list, place, what, deadline, rule);
}

} // namespace cede::detail
