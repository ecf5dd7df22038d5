// SPDX-License-Identifier: MIT
// Waiting until so many have arrived, or are done.
#pragma once

#include <cede/detail/wait.h>

#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

namespace cede {

// Counts down, and lets everybody go at zero, for ever. std::latch's members. Destroying it wakes
// those who wait with `closed`.
//   Thread    of the scheduler whose fibers wait
class Latch {
public:
  //   Throws    std::system_error(invalid_argument) for a negative count
  explicit Latch(std::ptrdiff_t expected) : left_(expected) {
    if (expected < 0)
      detail::throw_error(Errc::invalid_argument);
  }

  //   Throws    std::system_error(invalid_argument) for less than nothing or more than is left
  void count_down(std::ptrdiff_t n = 1) {
    if (n < 0 || n > left_)
      detail::throw_error(Errc::invalid_argument);
    left_ -= n;
    if (left_ == 0)
      waiters_.wake_all();
  }
  bool try_wait() const noexcept { return left_ == 0; }

  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error: closed, not_a_fiber
  void wait() { wait(kForever, WhenUnwinding::wait_on).value(); }
  //   Fails     timed_out, cancelled, closed, not_a_fiber
  //   Throws    Cancelled
  Result<void> wait(Deadline deadline) { return wait(deadline, WhenUnwinding::report); }

  // Counts down in any case, then waits.
  void arrive_and_wait(std::ptrdiff_t n = 1) {
    count_down(n);
    wait();
  }

  std::size_t waiters() const noexcept { return waiters_.size(); }

private:
  Result<void> wait(Deadline deadline, WhenUnwinding rule) {
    WaitLink place;
    return detail::take_or_wait([this] { return try_wait(); }, waiters_, place, "a latch", deadline,
                                rule);
  }

  std::ptrdiff_t left_;
  WaitList waiters_;
};

// Counts what is under way, and lets those who wait go whenever nothing is. Destroying it wakes
// those who wait with `closed`.
//   Thread    of the scheduler whose fibers wait
class WaitGroup {
public:
  WaitGroup() = default;

  // So many more; also while somebody waits.
  //   Throws    std::system_error(invalid_argument) if less than nothing would be left
  void add(std::ptrdiff_t n = 1) {
    if (n < 0 && -n > left_)
      detail::throw_error(Errc::invalid_argument);
    left_ += n;
    if (left_ == 0)
      waiters_.wake_all();
  }
  //   Throws    std::system_error(invalid_argument) if nothing is under way
  void done() { add(-1); }

  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error: closed, not_a_fiber
  void wait() { wait(kForever, WhenUnwinding::wait_on).value(); }
  //   Fails     timed_out, cancelled, closed, not_a_fiber
  //   Throws    Cancelled
  Result<void> wait(Deadline deadline) { return wait(deadline, WhenUnwinding::report); }
  bool try_wait() const noexcept { return left_ == 0; }

  std::ptrdiff_t count() const noexcept { return left_; }
  std::size_t waiters() const noexcept { return waiters_.size(); }

private:
  Result<void> wait(Deadline deadline, WhenUnwinding rule) {
    WaitLink place;
    return detail::take_or_wait([this] { return try_wait(); }, waiters_, place, "a wait group",
                                deadline, rule);
  }

  std::ptrdiff_t left_ = 0;
  WaitList waiters_;
};

// Lets a number of fibers go on together, phase by phase. std::barrier's members. Who is cancelled
// while it waits has arrived all the same: the others are not held up. Destroying it wakes those
// who wait with `closed`.
//   Thread    of the scheduler whose fibers wait
class Barrier {
public:
  class Arrival {
    friend class Barrier;
    explicit Arrival(std::size_t phase) noexcept : phase_(phase) {}
    std::size_t phase_;
  };

  // `completion` is called by the last to arrive, before the others go; it must not wait nor throw.
  //   Throws    std::system_error(invalid_argument) for less than one
  explicit Barrier(std::ptrdiff_t expected, std::function<void()> completion = nullptr)
      : expected_(expected), left_(expected), completion_(std::move(completion)) {
    if (expected < 1)
      detail::throw_error(Errc::invalid_argument);
  }

  //   Throws    std::system_error(invalid_argument) for less than nothing or more than are missing
  Arrival arrive(std::ptrdiff_t n = 1);

  // Waits for the end of the phase in which somebody arrived.
  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error: closed, not_a_fiber
  void wait(Arrival arrival) { wait(arrival, kForever, WhenUnwinding::wait_on).value(); }
  //   Fails     timed_out, cancelled, closed, not_a_fiber
  //   Throws    Cancelled
  Result<void> wait(Arrival arrival, Deadline deadline) {
    return wait(arrival, deadline, WhenUnwinding::report);
  }
  void arrive_and_wait() { wait(arrive()); }

  // Arrives, and is no longer waited for in the phases to come.
  //   Throws    std::system_error(invalid_argument) if nobody is missing
  void arrive_and_drop() {
    if (left_ < 1)
      detail::throw_error(Errc::invalid_argument);
    --expected_;
    std::ignore = arrive();
  }

  std::size_t waiters() const noexcept { return waiters_.size(); }

private:
  Result<void> wait(Arrival arrival, Deadline deadline, WhenUnwinding rule) {
    WaitLink place;
    return detail::take_or_wait([&] { return arrival.phase_ != phase_; }, waiters_, place,
                                "a barrier", deadline, rule);
  }

  std::ptrdiff_t expected_;
  std::ptrdiff_t left_;
  std::size_t phase_ = 0;
  std::function<void()> completion_;
  WaitList waiters_;
};

} // namespace cede
