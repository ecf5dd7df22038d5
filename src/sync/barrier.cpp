// SPDX-License-Identifier: MIT
#include <cede/barrier.h>

namespace cede {

Barrier::Arrival Barrier::arrive(std::ptrdiff_t n) {
  if (n < 0 || n > left_)
    detail::throw_error(Errc::invalid_argument);
  const Arrival arrival(phase_);
  left_ -= n;
  if (left_ == 0) {
    if (completion_)
      completion_();
    left_ = expected_;
    ++phase_;
    waiters_.wake_all();
  }
  return arrival;
}

} // namespace cede
