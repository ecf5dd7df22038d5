// SPDX-License-Identifier: MIT
// A signal: one fiber tells another that something has happened.
#pragma once

#include <cede/detail/wait.h>

#include <cstddef>
#include <utility>

namespace cede {

// A flag and those who wait for it. A send that nobody waits for is kept, once: the next wait takes
// it. Destroying it wakes those who wait with `closed`.
//   Thread    of the scheduler whose fibers wait
class Signal {
public:
  // Wakes the first who waits, or sets the flag.
  void send() noexcept {
    if (!detail::quick_wake_one(waiters_))
      is_set_ = true;
  }

  // Wakes all who wait now; lost if nobody does.
  void broadcast() noexcept { waiters_.wake_all(); }

  // Takes the flag if it is set, and goes on; else waits for a send or a broadcast.
  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error: closed, not_a_fiber
  CEDE_ALWAYS_INLINE void wait() { wait(kForever, WhenUnwinding::wait_on).value(); }

  // The same, also after a deadline that has passed.
  //   Fails     timed_out, cancelled, closed, not_a_fiber
  //   Throws    Cancelled
  Result<void> wait(Deadline deadline) { return wait(deadline, WhenUnwinding::report); }

  // Takes the flag if it is set.
  bool try_wait() noexcept { return std::exchange(is_set_, false); }

  bool is_set() const noexcept { return is_set_; }
  std::size_t waiters() const noexcept { return waiters_.size(); }

private:
  friend struct detail::SelectAccess;

  CEDE_ALWAYS_INLINE Result<void> wait(Deadline deadline, WhenUnwinding rule) {
    WaitLink place;
    return detail::take_or_wait([this] { return try_wait(); }, waiters_, place, "a signal",
                                deadline, rule);
  }

  bool is_set_ = false;
  WaitList waiters_;
};

} // namespace cede
