// SPDX-License-Identifier: MIT
// Mutexes: one fiber, or several readers, between waits.
#pragma once

#include <cede/detail/lender.h>
#include <cede/detail/wait.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <type_traits>
#include <utility>

namespace cede {

namespace detail {

// Whether a timed lock was had. Who is too late hears it, as does one that is cancelled and must
// not throw; what else went wrong is thrown.
bool was_had(const Result<void>& locked);

// The deadline of a time of any clock.
template <class Clock, class Duration>
Deadline deadline_of(const std::chrono::time_point<Clock, Duration>& time) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>)
    return Deadline(time);
  else
    return after(time - Clock::now());
}

// What makes a Lockable of ours a TimedLockable, from its lock(Deadline). False also for a fiber
// that is cancelled and unwinds.
//   Throws    Cancelled; std::system_error: deadlock, not_a_fiber
template <class Mutex>
class TimedLockable {
public:
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time) {
    return was_had(static_cast<Mutex&>(*this).lock(deadline_of(time)));
  }
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& duration) {
    return was_had(static_cast<Mutex&>(*this).lock(after(duration)));
  }
};

} // namespace detail

// Held by one fiber at a time, and handed over to who has waited longest. While others wait, the
// holder runs at the highest of their priorities, and so does whoever it waits for in turn: a
// fiber of low priority that holds it delays one of high priority by no more than it takes to give
// it back. Works with std::unique_lock, std::scoped_lock and std::lock. Outside fibers it can be
// had only if it is free. Destroying it while it is held or waited for fails a check.
//   Thread    of the scheduler whose fibers use it
class Mutex : private detail::Lender, public detail::TimedLockable<Mutex> {
public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex() {
    if (is_held_ || is_noted_ || !waiters_.is_empty()) [[unlikely]]
      end_out_of_line();
  }

  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error: deadlock if the caller holds it or waits for itself
  //   by
  //             way of others, not_a_fiber
  void lock() {
    FiberRecord* me = detail::thread().dispatch->current;
    if (me == nullptr || is_held_ || me->is_cancelled || me->is_raised || me->is_watched)
        [[unlikely]]
      return lock_in_turn(kForever, WhenUnwinding::wait_on).value();
    hold(*me);
  }

  // The same. A free one is had also after a deadline that has passed.
  //   Fails     timed_out, cancelled, deadlock, not_a_fiber
  //   Throws    Cancelled
  Result<void> lock(Deadline deadline) { return lock_in_turn(deadline, WhenUnwinding::report); }

  bool try_lock() noexcept {
    FiberRecord* me = detail::thread().dispatch->current;
    if (is_held_)
      return false;
    if (me != nullptr) {
      hold(*me);
      if (me->has_order_checked) [[unlikely]]
        note_order();
    }
    is_held_ = true;
    return true;
  }

  // Whoever doesn't hold it fails a check.
  void unlock() {
    FiberRecord* me = detail::thread().dispatch->current;
    if (me == nullptr || holder != me || !waiters_.is_empty()) [[unlikely]]
      return unlock_in_turn();
    --me->held;
    holder = nullptr;
    is_held_ = false;
  }

  bool is_locked() const noexcept { return is_held_; }
  bool is_mine() const noexcept { return is_held_ && holder == detail::thread().dispatch->current; }
  std::size_t waiters() const noexcept { return waiters_.size(); }

private:
  using FiberRecord = detail::FiberRecord;
  struct Place;

  void hold(FiberRecord& me) noexcept {
    ++me.held;
    holder = &me;
    is_held_ = true;
  }
  Result<void> lock_in_turn(Deadline deadline, WhenUnwinding rule);
  void unlock_in_turn() noexcept;
  void note_order() noexcept;
  void end_out_of_line() noexcept;

  static const WaitKind kKind;
  bool is_held_ = false;
  bool is_noted_ = false; // its scheduler keeps in which orders it was locked
  WaitList waiters_;      // of Places
};

// The same, and its holder may take it again; it gives it back as often.
class RecursiveMutex : public detail::TimedLockable<RecursiveMutex> {
public:
  //   Blocks, throws as Mutex's
  void lock() {
    if (!mutex_.is_mine())
      mutex_.lock();
    ++depth_;
  }
  //   Fails, throws as Mutex's
  Result<void> lock(Deadline deadline) {
    if (!mutex_.is_mine())
      if (Result<void> locked = mutex_.lock(deadline); !locked)
        return locked;
    ++depth_;
    return {};
  }
  bool try_lock() noexcept {
    const bool is_mine = mutex_.is_mine() || mutex_.try_lock();
    depth_ += is_mine ? 1 : 0;
    return is_mine;
  }
  void unlock() {
    if (depth_ <= 1 || !mutex_.is_mine()) {
      mutex_.unlock(); // or fails
      depth_ = 0;
    } else {
      --depth_;
    }
  }
  bool is_locked() const noexcept { return mutex_.is_locked(); }
  std::size_t waiters() const noexcept { return mutex_.waiters(); }

private:
  Mutex mutex_;
  std::size_t depth_ = 0;
};

// Held by one writer or by any number of readers, first come, first served: a writer that waits
// holds back the readers that come after it. Works with std::shared_lock too. A writer that holds
// it is lent priorities as a Mutex's holder is; readers are not, since it doesn't know them.
// Destroying it while it is held or waited for fails a check.
//   Thread    of the scheduler whose fibers use it
class SharedMutex : private detail::Lender, public detail::TimedLockable<SharedMutex> {
public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;
  ~SharedMutex();

  //   Blocks, fails, throws as Mutex's
  void lock() { acquire(true, kForever, WhenUnwinding::wait_on).value(); }
  Result<void> lock(Deadline deadline) { return acquire(true, deadline, WhenUnwinding::report); }
  bool try_lock() noexcept { return try_acquire(true); }
  void unlock();

  void lock_shared() { acquire(false, kForever, WhenUnwinding::wait_on).value(); }
  Result<void> lock_shared(Deadline deadline) {
    return acquire(false, deadline, WhenUnwinding::report);
  }
  bool try_lock_shared() noexcept { return try_acquire(false); }
  template <class Clock, class Duration>
  bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::was_had(lock_shared(detail::deadline_of(time)));
  }
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& duration) {
    return detail::was_had(lock_shared(after(duration)));
  }
  void unlock_shared();

  std::size_t readers() const noexcept { return readers_; }
  bool is_locked() const noexcept { return is_written_; }
  std::size_t waiters() const noexcept { return waiters_.size(); }

private:
  struct Place;

  bool try_acquire(bool to_write) noexcept;
  void note_order(bool to_write) noexcept;
  Result<void> acquire(bool to_write, Deadline deadline, WhenUnwinding rule);
  // Lets in those whose turn has come.
  void admit() noexcept;

  static const WaitKind kKind;
  bool is_written_ = false;
  std::size_t readers_ = 0;
  WaitList waiters_; // of Places
};

// Calls a function once, whoever comes first; the others wait until it has returned. If it throws,
// the next one calls it. Destroying it while it is being called or waited for fails a check.
//   Thread    of the scheduler whose fibers use it
class Once {
public:
  //   Blocks    the calling fiber, while another one calls
  //   Throws    what `f` threw; Cancelled; std::system_error(deadlock) from within `f`
  template <class F>
  void call(F&& f) {
    if (is_done_) [[likely]]
      return;
    mutex_.lock();
    call_locked(std::forward<F>(f));
  }

  // The same.
  //   Fails     timed_out, cancelled: it may be called yet; deadlock, not_a_fiber
  //   Throws    what `f` threw; Cancelled
  template <class F>
  Result<void> call(F&& f, Deadline deadline) {
    if (is_done_)
      return {};
    if (Result<void> locked = mutex_.lock(deadline); !locked)
      return locked;
    call_locked(std::forward<F>(f));
    return {};
  }

  bool is_done() const noexcept { return is_done_; }

private:
  template <class F>
  void call_locked(F&& f) {
    const std::lock_guard lock(mutex_, std::adopt_lock);
    if (is_done_)
      return;
    std::forward<F>(f)();
    is_done_ = true;
  }

  Mutex mutex_;
  bool is_done_ = false;
};

} // namespace cede
