// SPDX-License-Identifier: MIT
// Semaphores: units that are handed out in turn.
#pragma once

#include <cede/detail/wait.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace cede {

// A number of units. Who asks for more than there are waits, and those behind wait too, also if
// what they ask for is there: nobody starves. Units are handed over: what was released for who
// waits is nobody else's. It has no owner: who releases need not be who acquired. Destroying it
// wakes those who wait with `closed`.
//   Thread    of the scheduler whose fibers wait
class Semaphore {
public:
  // May begin at or below zero: then so many more have to be released first.
  explicit Semaphore(long count) noexcept : count_(count) {}

  // Takes `units`, in turn.
  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error: invalid_argument for less than one unit, closed,
  //             not_a_fiber
  CEDE_ALWAYS_INLINE void acquire(long units = 1) {
    if (detail::has_to_look() || units < 1) [[unlikely]]
      return acquire_in_turn(units, kForever, WhenUnwinding::wait_on).value();
    if (!try_acquire(units)) {
      Place place(*this, units);
      detail::quick_wait_in(waiters_, place, "a semaphore", kForever, WhenUnwinding::wait_on)
          .value();
    }
  }

  // The same. What is there is had also after a deadline that has passed.
  //   Fails     timed_out, cancelled, invalid_argument, closed, not_a_fiber
  //   Throws    Cancelled
  Result<void> acquire(long units, Deadline deadline) {
    return acquire_in_turn(units, deadline, WhenUnwinding::report);
  }
  Result<void> acquire(Deadline deadline) { return acquire(1, deadline); }

  // Takes them if they are there and nobody is before the caller.
  bool try_acquire(long units = 1) noexcept {
    const bool can = can_take(units);
    count_ -= can ? units : 0;
    return can;
  }

  // Gives back, or adds, so many; they go to who waits first.
  //   Throws    std::system_error(invalid_argument): less than one unit, or more than can be
  //   counted
  void release(long units = 1) {
    if (units == 1 && count_ == 0 && !waiters_.is_empty()) {
      if (units_asked_first() == 1 && detail::QuickWait::wake_first(waiters_))
        return;
    } else if (units > 0 && waiters_.is_empty() &&
               count_ <= std::numeric_limits<long>::max() - units) [[likely]] {
      count_ += units;
      return;
    }
    release_in_turn(units);
  }

  // Adds, or takes away without waiting: the count may become negative.
  //   Throws    std::system_error(invalid_argument) if that can't be counted
  void adjust(long units);

  // What is left for others; negative if that has to be released first.
  long count() const noexcept { return count_; }
  std::size_t waiters() const noexcept { return waiters_.size(); }

  // Units that go back at the end of a scope.
  class [[nodiscard]] Guard {
  public:
    Guard(Guard&& other) noexcept
        : semaphore_(std::exchange(other.semaphore_, nullptr)), units_(other.units_) {}
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (semaphore_ != nullptr)
        semaphore_->release(units_);
    }

  private:
    friend class Semaphore;
    Guard(Semaphore& semaphore, long units) noexcept : semaphore_(&semaphore), units_(units) {}
    Semaphore* semaphore_;
    long units_;
  };

  //   Blocks, throws as acquire()
  Guard guard(long units = 1) {
    acquire(units);
    return Guard(*this, units);
  }

private:
  friend struct detail::SelectAccess;

  struct Place : WaitLink {
    Semaphore& semaphore;
    long units;
    Place(Semaphore& of, long asked) noexcept : semaphore(of), units(asked) { kind = &kKind; }
  };
  static const WaitKind kKind;

  bool can_take(long units) const noexcept {
    return units > 0 && count_ >= units && waiters_.is_empty();
  }
  Result<void> acquire_in_turn(long units, Deadline deadline, WhenUnwinding rule);
  void release_in_turn(long units);
  long units_asked_first() const noexcept {
    return static_cast<const Place*>(waiters_.first())->units;
  }
  // Hands over to those whose turn has come.
  void hand_over() noexcept;
  static void look_again(WaitLink& place) noexcept;

  long count_;
  bool is_handing_over_ = false;
  WaitList waiters_; // of Places
};

// A semaphore for each key, made when it is first used. All begin with the same number of units,
// and a key that is back at it takes no memory.
//   Thread    of the scheduler whose fibers wait
template <class Key, class Compare = std::less<Key>>
class SemaphoreSet {
public:
  //   Throws    std::system_error(invalid_argument) for less than one unit
  explicit SemaphoreSet(long initial = 1) : initial_(initial) {
    if (initial < 1)
      detail::throw_error(Errc::invalid_argument);
  }

  // As Semaphore's; more units than a key begins with are an invalid argument, since they might
  // never be there.
  //   Blocks    the calling fiber
  //   Throws    also std::bad_alloc
  void acquire(const Key& key, long units = 1) {
    require(units);
    if (detail::has_to_look()) [[unlikely]]
      std::ignore = detail::meet_request_on_entry(WhenUnwinding::wait_on);
    if (!take(key, units))
      semaphores_.find(key)->second.acquire(units);
  }
  Result<void> acquire(const Key& key, long units, Deadline deadline) {
    if (units < 1 || units > initial_)
      return Errc::invalid_argument;
    if (detail::has_to_look()) [[unlikely]]
      if (Result<void> met = detail::meet_request_on_entry(WhenUnwinding::report); !met)
        return met;
    if (take(key, units))
      return {};
    return semaphores_.find(key)->second.acquire(units, deadline);
  }
  Result<void> acquire(const Key& key, Deadline deadline) { return acquire(key, 1, deadline); }
  bool try_acquire(const Key& key, long units = 1) {
    require(units);
    return take(key, units);
  }

  //   Throws    as Semaphore's; std::bad_alloc if the key is not in use
  void release(const Key& key, long units = 1) {
    const auto found = semaphores_.try_emplace(key, initial_).first;
    struct End {
      SemaphoreSet& set;
      At found;
      ~End() { set.forget_if_back(found); }
    } end{*this, found}; // also if it throws
    found->second.release(units);
  }

  long count(const Key& key) const {
    const auto found = semaphores_.find(key);
    return found != semaphores_.end() ? found->second.count() : initial_;
  }
  std::size_t waiters(const Key& key) const {
    const auto found = semaphores_.find(key);
    return found != semaphores_.end() ? found->second.waiters() : 0;
  }
  // Keys that are not as they began.
  std::size_t size() const noexcept { return semaphores_.size(); }

private:
  using At = typename std::map<Key, Semaphore, Compare>::iterator;

  void require(long units) const {
    if (units < 1 || units > initial_)
      detail::throw_error(Errc::invalid_argument);
  }
  // What a new key begins with is enough, so none is made in vain.
  bool take(const Key& key, long units) {
    const auto found = semaphores_.try_emplace(key, initial_).first;
    const bool was_there = found->second.try_acquire(units);
    forget_if_back(found); // more may have been released than it began with
    return was_there;
  }
  void forget_if_back(At at) noexcept {
    if (at->second.count() == initial_ && at->second.waiters() == 0)
      semaphores_.erase(at);
  }

  const long initial_;
  // Somebody waits only while units are out, so that a release comes after the last wait's end.
  std::map<Key, Semaphore, Compare> semaphores_;
};

} // namespace cede
