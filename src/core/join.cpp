// SPDX-License-Identifier: MIT
// Waiting for a fiber's end.
#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"

#include <exception>

namespace cede {

using core::Interruption;
using core::running_fiber;
using detail::FiberRecord;
using detail::FiberStage;
using detail::Outcome;

namespace {

struct PlaceAtJoin : WaitLink {
  FiberRecord& target;
  explicit PlaceAtJoin(FiberRecord& joined) noexcept;
};

constexpr WaitKind kJoinKind{.awaited = [](const WaitLink& link) noexcept {
  return &static_cast<const PlaceAtJoin&>(link).target;
}};

PlaceAtJoin::PlaceAtJoin(FiberRecord& joined) noexcept : target(joined) {
  kind = &kJoinKind;
}

} // namespace

namespace core {

FiberRecord* counterpart_of(const FiberRecord& fiber) noexcept {
  if (fiber.waiter == nullptr || fiber.waiter->has_fired())
    return nullptr;
  const WaitLink* place = fiber.waiter->place();
  const bool is_known =
      place != nullptr && place->kind != nullptr && place->kind->awaited != nullptr;
  return is_known ? place->kind->awaited(*place) : nullptr;
}

FiberRecord* awaited_by(const FiberRecord& fiber) noexcept {
  const bool can_end_otherwise = fiber.waiter != nullptr && fiber.waiter->has_deadline();
  return can_end_otherwise ? nullptr : counterpart_of(fiber);
}

bool closes_circle(const FiberRecord& me, const FiberRecord& target) noexcept {
  const FiberRecord* fiber = &target;
  while (fiber != nullptr && fiber != &me)
    fiber = awaited_by(*fiber);
  return fiber == &me;
}

Result<void> how_it_ended(const FiberRecord& fiber) noexcept {
  switch (fiber.outcome) {
  case Outcome::cancelled:
    return Errc::cancelled;
  case Outcome::no_memory:
    return Errc::no_memory;
  case Outcome::failed:
    return Errc::failed;
  default:
    return {};
  }
}

} // namespace core

namespace detail {

namespace {

Result<void> wait_for_end(FiberRecord& target, Deadline deadline, WhenUnwinding rule) {
  FiberRecord* me = running_fiber();
  if (me == nullptr)
    return Errc::not_a_fiber;
  if (target.scheduler != me->scheduler)
    return Errc::invalid_argument;
  if (deadline.is_forever() && core::closes_circle(*me, target))
    return Errc::deadlock;
  PlaceAtJoin place(target);
  Waiter waiter("join");
  waiter.watch(target.joiners, place);
  switch (waiter.wait(deadline, rule)) {
  case WakeReason::timed_out:
    return Errc::timed_out;
  case WakeReason::cancelled:
    return Errc::cancelled;
  default:
    return {};
  }
}

// A cancellation is looked at before anything else; an expired deadline still tries once.
Result<void> join_fiber(FiberRecord* target, Deadline deadline, WhenUnwinding rule) {
  FiberRecord* me = running_fiber();
  core::check_may_suspend(me);
  if (me != nullptr && core::interruption_of(*me) == Interruption::throws)
    core::throw_request(*me);
  if (target == nullptr)
    return Errc::deadlock;
  core::check_thread(*target);
  AnyFiber kept = FiberAccess::reference(target);
  if (target->stage != FiberStage::finished)
    if (Result<void> waited = wait_for_end(*target, deadline, rule); !waited)
      return waited;
  return core::how_it_ended(*target);
}

} // namespace

Result<void> join_for_result(FiberRecord* fiber, Deadline deadline, WhenUnwinding rule) {
  Result<void> ended = join_fiber(fiber, deadline, rule);
  if (!ended && ended.error() == Errc::failed) {
    fiber->is_result_taken = true; // somebody has seen it
    std::rethrow_exception(error_of(*fiber));
  }
  return ended;
}

} // namespace detail

Result<void> AnyFiber::join(Deadline deadline) const {
  return detail::join_fiber(record_, deadline, WhenUnwinding::report);
}

} // namespace cede
