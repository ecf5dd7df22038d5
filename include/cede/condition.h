// SPDX-License-Identifier: MIT
// A condition variable: waiting, with a lock given back meanwhile, until somebody says that it may
// have come true.
#pragma once

#include <cede/cancel.h>
#include <cede/detail/wait.h>
#include <cede/stop.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <stop_token>
#include <tuple>
#include <utility>

namespace cede {

// std::condition_variable_any's members, for anything that can be locked and unlocked. A wait ends
// for no other reason than a notification, the deadline or a cancellation, and the lock is taken
// again whatever the reason; before something is thrown too. Destroying it while somebody waits
// fails a check.
//   Thread    of the scheduler whose fibers use it
class ConditionVariable {
public:
  ConditionVariable() = default;
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;
  ~ConditionVariable();

  // Wakes the one who has waited longest, or nobody.
  void notify_one() noexcept { waiters_.wake_one(); }
  void notify_all() noexcept { waiters_.wake_all(); }

  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error(not_a_fiber)
  template <class Lock>
  void wait(Lock& lock) {
    wait_unlocked(lock, kForever).value();
  }
  template <class Lock, class Predicate>
  void wait(Lock& lock, Predicate predicate) {
    while (!predicate())
      wait(lock);
  }

  // Whether it was notified before that time.
  template <class Lock>
  std::cv_status wait_until(Lock& lock, Deadline deadline) {
    const Result<void> notified = wait_unlocked(lock, deadline);
    if (!notified && notified.error() != Errc::timed_out)
      notified.value();
    return notified ? std::cv_status::no_timeout : std::cv_status::timeout;
  }
  template <class Lock, class Predicate>
  bool wait_until(Lock& lock, Deadline deadline, Predicate predicate) {
    while (!predicate())
      if (wait_until(lock, deadline) == std::cv_status::timeout)
        return predicate();
    return true;
  }
  template <class Lock, class Rep, class Period>
  std::cv_status wait_for(Lock& lock, std::chrono::duration<Rep, Period> duration) {
    return wait_until(lock, after(duration));
  }
  template <class Lock, class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, std::chrono::duration<Rep, Period> duration, Predicate predicate) {
    return wait_until(lock, after(duration), std::move(predicate));
  }

  // The same, until a stop is requested: whether `predicate` was true at last.
  //   Throws    also std::system_error(no_memory)
  template <class Lock, class Predicate>
  bool wait(Lock& lock, const std::stop_token& token, Predicate predicate) {
    return wait_until(lock, token, kForever, std::move(predicate));
  }
  template <class Lock, class Predicate>
  bool wait_until(Lock& lock, const std::stop_token& token, Deadline deadline,
                  Predicate predicate) {
    StopEvent stop(token);
    while (!stop.is_set() && !predicate()) {
      const Result<void> notified = wait_unlocked(lock, deadline, &stop);
      if (!notified && notified.error() != Errc::timed_out)
        notified.value();
      if (!notified)
        break;
    }
    return predicate();
  }
  template <class Lock, class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, const std::stop_token& token,
                std::chrono::duration<Rep, Period> duration, Predicate predicate) {
    return wait_until(lock, token, after(duration), std::move(predicate));
  }

  std::size_t waiters() const noexcept { return waiters_.size(); }

private:
  // Nothing runs between the unlock and the wait, so no notification is missed. It ends also when
  // `stop` is set.
  template <class Lock>
  Result<void> wait_unlocked(Lock& lock, Deadline deadline, StopEvent* stop = nullptr) {
    if (detail::has_to_look())
      std::ignore = detail::meet_request_on_entry(WhenUnwinding::wait_on);
    struct Relock {
      Lock& lock;
      ~Relock() {
        const Shield shield;
        lock.lock();
      }
    } relock{lock};
    lock.unlock();
    return wait_for_notification(deadline, stop);
  }
  Result<void> wait_for_notification(Deadline deadline, StopEvent* stop);

  WaitList waiters_;
};

} // namespace cede
