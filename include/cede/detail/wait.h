// SPDX-License-Identifier: MIT
// What the waits of everything that fibers wait for have in common.
#pragma once

#include <cede/detail/dispatch.h>
#include <cede/result.h>
#include <cede/time.h>
#include <cede/waiter.h>

namespace cede::detail {

// select's way to the waits of what can be a branch.
struct SelectAccess;

// Whether a wait of the fiber that runs has something to look at before it acts: it was asked for
// something, or may not wait at all.
CEDE_ALWAYS_INLINE bool has_to_look() noexcept {
  const FiberRecord* me = thread().dispatch->current;
  return me != nullptr && (me->is_cancelled || me->is_raised || me->is_watched);
}

// Looks at that: fails the check, throws what was asked for, or says that it is to be reported. An
// error but for that there is none.
//   Fails     cancelled
//   Throws    Cancelled
Result<void> meet_request_on_entry(WhenUnwinding rule);

// Takes the last place in `list` and waits. `place` may know more of the wait than its base does.
// Once it has returned, whoever had the list may be gone, whatever the result.
//   Fails     timed_out, cancelled, closed, not_a_fiber
//   Throws    Cancelled
Result<void> wait_in(WaitList& list, WaitLink& place, const char* what, Deadline deadline,
                     WhenUnwinding rule);

// What an ended wait says.
Result<void> result_of_wait(WakeReason reason) noexcept;

// The same as wait_in, inline if nothing is in the way.
CEDE_ALWAYS_INLINE Result<void> quick_wait_in(WaitList& list, WaitLink& place, const char* what,
                                              Deadline deadline, WhenUnwinding rule) {
  WakeReason reason{};
  if (!deadline.is_forever() || !QuickWait::wait(&list, &place, what, reason)) [[unlikely]]
    return wait_in(list, place, what, deadline, rule);
  if (reason != WakeReason::woken) [[unlikely]]
    return result_of_wait(reason);
  return {};
}

// The same for something that can be had at once: `take` tries, and the wait comes after it.
template <class Take>
CEDE_ALWAYS_INLINE Result<void> take_or_wait(Take take, WaitList& list, WaitLink& place,
                                             const char* what, Deadline deadline,
                                             WhenUnwinding rule) {
  if (has_to_look()) [[unlikely]]
    if (Result<void> met = meet_request_on_entry(rule); !met)
      return met;
  if (take())
    return {};
  return quick_wait_in(list, place, what, deadline, rule);
}

// Ends the wait that is first in `list`. False if there is none.
CEDE_ALWAYS_INLINE bool quick_wake_one(WaitList& list) noexcept {
  return !list.is_empty() && (QuickWait::wake_first(list) || list.wake_one());
}

} // namespace cede::detail
