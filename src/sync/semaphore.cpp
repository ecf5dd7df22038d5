// SPDX-License-Identifier: MIT
#include <cede/semaphore.h>

#include <limits>
#include <utility>

namespace cede {

constinit const WaitKind Semaphore::kKind{.left = look_again};

Result<void> Semaphore::acquire_in_turn(long units, Deadline deadline, WhenUnwinding rule) {
  if (units < 1)
    return Errc::invalid_argument;
  Place place(*this, units);
  return detail::take_or_wait([&] { return try_acquire(units); }, waiters_, place, "a semaphore",
                              deadline, rule);
}

void Semaphore::release_in_turn(long units) {
  if (units < 1)
    detail::throw_error(Errc::invalid_argument);
  adjust(units);
}

void Semaphore::adjust(long units) {
  using Limits = std::numeric_limits<long>;
  if (units > 0 ? count_ > Limits::max() - units : count_ < Limits::min() - units)
    detail::throw_error(Errc::invalid_argument);
  count_ += units;
  hand_over();
}

// Who wakes by this may leave other lists, whose owners hand over in turn, and so come back here:
// the first call does it all, however many they are.
void Semaphore::hand_over() noexcept {
  if (std::exchange(is_handing_over_, true))
    return;
  while (!waiters_.is_empty() && units_asked_first() <= count_) {
    count_ -= units_asked_first();
    waiters_.wake_one();
  }
  is_handing_over_ = false;
}

// The one who left may have been first, and in the way of those who ask for less.
void Semaphore::look_again(WaitLink& place) noexcept {
  static_cast<Place&>(place).semaphore.hand_over();
}

} // namespace cede
