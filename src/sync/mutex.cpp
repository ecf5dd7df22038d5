// SPDX-License-Identifier: MIT
#include <cede/mutex.h>

#include "../core/check.h"
#include "../core/lending.h"
#include "../core/lock_order.h"
#include "../core/scheduler_state.h"

namespace cede {

using core::running_fiber;
using detail::FiberRecord;
using detail::Lender;

bool detail::was_had(const Result<void>& locked) {
  if (!locked && locked.error() != Errc::timed_out && locked.error() != Errc::cancelled)
    locked.value();
  return locked.has_value();
}

namespace {

// Why `me` can't wait for it.
Result<void> look_before_waiting(const FiberRecord* me, const Lender& lender, Deadline deadline) {
  if (me == nullptr)
    return Errc::not_a_fiber;
  const FiberRecord* holder = lender.holder;
  CEDE_CHECK(holder == nullptr || holder->scheduler == me->scheduler,
             "a mutex is used by fibers of two schedulers");
  const bool is_circle = holder != nullptr && core::closes_circle(*me, *holder);
  if (holder == me || (is_circle && deadline.is_forever()))
    return Errc::deadlock;
  return {};
}

} // namespace

// ---------------------------------------------------------------------------------------------

struct Mutex::Place : WaitLink {
  Mutex& mutex;
  FiberRecord& fiber;
  Place(Mutex& of, FiberRecord& who) noexcept : mutex(of), fiber(who) { kind = &kKind; }
};

constinit const WaitKind Mutex::kKind{
    .left =
        [](WaitLink& link) noexcept {
          auto& place = static_cast<Place&>(link);
          core::withdraw(place.mutex, place.fiber);
        },
    .awaited =
        [](const WaitLink& link) noexcept { return static_cast<const Place&>(link).mutex.holder; },
    .lender = [](const WaitLink& link) noexcept -> Lender* {
      return &static_cast<const Place&>(link).mutex;
    }};

Result<void> Mutex::lock_in_turn(Deadline deadline, WhenUnwinding rule) {
  if (detail::has_to_look())
    if (Result<void> met = detail::meet_request_on_entry(rule); !met)
      return met;
  FiberRecord* me = running_fiber();
  core::LockOrder* order = core::lock_order_of(me);
  if (order != nullptr)
    order->note_locking(*me, *this);
  if (try_lock())
    return {};
  if (Result<void> can_wait = look_before_waiting(me, *this, deadline); !can_wait)
    return can_wait;
  Place place(*this, *me);
  core::lend(*this, *me);
  Result<void> locked = detail::wait_in(waiters_, place, "a mutex", deadline, rule);
  if (locked && order != nullptr)
    note_order();
  return locked;
}

// The running fiber has it.
void Mutex::note_order() noexcept {
  FiberRecord* me = running_fiber();
  is_noted_ = true;
  core::lock_order_of(me)->note_locked(*me, *this, core::LockOrder::Kind::exclusive);
}

void Mutex::unlock_in_turn() noexcept {
  CEDE_CHECK(is_held_, "a mutex is unlocked that nobody holds");
  CEDE_CHECK(holder == detail::thread().dispatch->current,
             "a mutex is unlocked by a fiber that doesn't hold it");
  if (waiters_.is_empty()) { // held by a plain thread
    is_held_ = false;
    return;
  }
  FiberRecord& next = static_cast<Place*>(waiters_.first())->fiber;
  core::withdraw(*this, next);
  waiters_.wake_one();
  core::change_holder(*this, &next);
}

void Mutex::end_out_of_line() noexcept {
  CEDE_CHECK(!is_held_ && waiters_.is_empty(), "a mutex is destroyed that is held or waited for");
  core::forget_lock(*this);
}

// ---------------------------------------------------------------------------------------------

struct SharedMutex::Place : WaitLink {
  SharedMutex& mutex;
  FiberRecord& fiber;
  bool to_write;
  Place(SharedMutex& of, FiberRecord& who, bool writes) noexcept
      : mutex(of), fiber(who), to_write(writes) {
    kind = &kKind;
  }
};

constinit const WaitKind SharedMutex::kKind{
    .left =
        [](WaitLink& link) noexcept {
          auto& place = static_cast<Place&>(link);
          core::withdraw(place.mutex, place.fiber);
          place.mutex.admit();
        },
    .awaited =
        [](const WaitLink& link) noexcept { return static_cast<const Place&>(link).mutex.holder; },
    .lender = [](const WaitLink& link) noexcept -> Lender* {
      return &static_cast<const Place&>(link).mutex;
    }};

SharedMutex::~SharedMutex() {
  CEDE_CHECK(!is_written_ && readers_ == 0 && waiters_.is_empty(),
             "a shared mutex is destroyed that is held or waited for");
  core::forget_lock(*this);
}

bool SharedMutex::try_acquire(bool to_write) noexcept {
  if (is_written_ || !waiters_.is_empty() || (to_write && readers_ > 0))
    return false;
  if (to_write) {
    is_written_ = true;
    core::change_holder(*this, running_fiber());
  } else {
    ++readers_;
  }
  note_order(to_write);
  return true;
}

Result<void> SharedMutex::acquire(bool to_write, Deadline deadline, WhenUnwinding rule) {
  if (detail::has_to_look())
    if (Result<void> met = detail::meet_request_on_entry(rule); !met)
      return met;
  FiberRecord* me = running_fiber();
  core::LockOrder* order = core::lock_order_of(me);
  if (order != nullptr)
    order->note_locking(*me, *this);
  if (try_acquire(to_write))
    return {};
  if (Result<void> can_wait = look_before_waiting(me, *this, deadline); !can_wait)
    return can_wait;
  Place place(*this, *me, to_write);
  core::lend(*this, *me);
  Result<void> locked = detail::wait_in(waiters_, place, "a shared mutex", deadline, rule);
  if (locked)
    note_order(to_write);
  return locked;
}

// The running fiber has it.
void SharedMutex::note_order(bool to_write) noexcept {
  using Kind = core::LockOrder::Kind;
  FiberRecord* me = running_fiber();
  if (core::LockOrder* order = core::lock_order_of(me))
    order->note_locked(*me, *this, to_write ? Kind::exclusive : Kind::shared);
}

void SharedMutex::admit() noexcept {
  while (WaitLink* first = waiters_.first()) {
    const auto& place = *static_cast<Place*>(first);
    FiberRecord& fiber = place.fiber;
    const bool to_write = place.to_write;
    if (is_written_ || (to_write && readers_ > 0))
      return;
    core::withdraw(*this, fiber);
    waiters_.wake_one();
    if (to_write) {
      is_written_ = true;
      core::change_holder(*this, &fiber);
    } else {
      ++readers_;
    }
  }
}

void SharedMutex::unlock() {
  CEDE_CHECK(is_written_, "a shared mutex is unlocked that nobody writes");
  CEDE_CHECK(holder == running_fiber(),
             "a shared mutex is unlocked by a fiber that doesn't hold it");
  is_written_ = false;
  core::change_holder(*this, nullptr);
  admit();
}

void SharedMutex::unlock_shared() {
  CEDE_CHECK(readers_ > 0, "a shared mutex is unlocked that nobody reads");
  FiberRecord* me = running_fiber();
  if (core::LockOrder* order = core::lock_order_of(me))
    order->note_unlocked_shared(*me, *this);
  --readers_;
  admit();
}

} // namespace cede
