// SPDX-License-Identifier: MIT
// An event: something that has happened, or hasn't.
#pragma once

#include <cede/detail/wait.h>

#include <cstddef>
#include <cstdint>

namespace cede {

// Set or not. Destroying it wakes those who wait with `closed`.
//   Thread    of the scheduler whose fibers wait
class Event {
public:
  enum Kind : std::uint8_t {
    kAuto,   // a set lets one go: the first who waits, or the next who comes
    kManual, // a set lets all go, until it is reset
  };

  explicit Event(Kind kind, bool set = false) noexcept : kind_(kind), is_set_(set) {}

  void set() noexcept {
    if (kind_ == kManual) {
      is_set_ = true;
      waiters_.wake_all();
    } else if (!detail::quick_wake_one(waiters_)) {
      is_set_ = true;
    }
  }

  // Whoever was let go already stays so.
  void reset() noexcept { is_set_ = false; }

  // Waits until it is set; of an automatic one takes that.
  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error: closed, not_a_fiber
  CEDE_ALWAYS_INLINE void wait() { wait(kForever, WhenUnwinding::wait_on).value(); }

  //   Fails     timed_out, cancelled, closed, not_a_fiber
  //   Throws    Cancelled
  Result<void> wait(Deadline deadline) { return wait(deadline, WhenUnwinding::report); }

  // Whether it is set; of an automatic one takes that.
  bool try_wait() noexcept {
    const bool was_set = is_set_;
    is_set_ = is_set_ && kind_ == kManual;
    return was_set;
  }

  bool is_set() const noexcept { return is_set_; }
  std::size_t waiters() const noexcept { return waiters_.size(); }

private:
  friend struct detail::SelectAccess;

  CEDE_ALWAYS_INLINE Result<void> wait(Deadline deadline, WhenUnwinding rule) {
    WaitLink place;
    return detail::take_or_wait([this] { return try_wait(); }, waiters_, place, "an event",
                                deadline, rule);
  }

  const Kind kind_;
  bool is_set_;
  WaitList waiters_;
};

} // namespace cede
