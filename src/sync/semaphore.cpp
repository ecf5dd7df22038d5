// SPDX-License-Identifier: MIT
#include <cede/semaphore.h>

#include <limits>

namespace cede {

constinit const WaitKind Semaphore::kKind{.left = look_again};

Result<void> Semaphore::acquire_in_turn(long units, Deadline deadline, WhenUnwinding rule) {
  if (units < 1)
    return Errc::invalid_argument;
  Place place(*this, units);
  return detail::take_or_wait([&] { return try_acquire(units); }, waiters_, place, "a semaphore",
                              deadline, rule);
}

void Semaphore::release(long units) {
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

void Semaphore::hand_over() noexcept {
  while (WaitLink* first = waiters_.first()) {
    const long units = static_cast<Place*>(first)->units;
    if (units > count_)
      return;
    count_ -= units;
    waiters_.wake_one();
  }
}

// The one who left may have been first, and in the way of those who ask for less.
void Semaphore::look_again(WaitLink& place) noexcept {
  static_cast<Place&>(place).semaphore.hand_over();
}

} // namespace cede
