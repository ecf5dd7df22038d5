// SPDX-License-Identifier: MIT
#include <cede/group.h>

#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"

#include <utility>

namespace cede {

using core::running_fiber;
using detail::FiberRecord;
using detail::Outcome;

namespace {

// Where one waits for the last member's end. Whoever is woken doesn't touch the group any more: its
// destructor may have been woken before. So what join gives is brought here.
struct JoinPlace : WaitLink {
  bool is_join = true; // else the destructor, which takes no failure
  AnyFiber failed;
};

bool is_member(const FiberRecord& fiber, const Group& group) noexcept {
  return fiber.extras != nullptr && fiber.extras->group == &group;
}

// A failure that is given to join has been seen.
AnyFiber take_failure(FiberRecord* failed) noexcept {
  if (failed != nullptr)
    failed->is_result_taken = true;
  return detail::FiberAccess::reference(failed);
}

} // namespace

Group::~Group() {
  cancel();
  const Shield shield;
  while (first_ != nullptr) {
    const FiberRecord* me = running_fiber();
    CEDE_CHECK(me != nullptr && me->scheduler == first_->scheduler,
               "a group is destroyed where nobody can wait for the members that are left");
    CEDE_CHECK(!is_member(*me, *this), "a group is destroyed by one of its members");
    JoinPlace place;
    place.is_join = false;
    Waiter waiter("the end of a group");
    waiter.watch(joiners_, place);
    waiter.wait(kForever, WhenUnwinding::wait_on);
  }
  if (failed_ != nullptr) {
    core::check_thread(*failed_);
    failed_->is_claimed = false;
    core::hand_over_lost_error(*failed_);
    core::release_record(*failed_);
  }
}

void Group::cancel() noexcept {
  is_ending_ = true;
  if (first_ != nullptr)
    core::check_thread(*first_);
  for (FiberRecord* member = first_; member != nullptr; member = member->extras->next_member)
    member->scheduler->request_cancel(*member);
}

// It was made this moment and has not run.
void Group::link(FiberRecord& fiber) {
  Errc error{};
  if (first_ != nullptr && (core::check_thread(*first_), first_->scheduler != fiber.scheduler))
    error = Errc::invalid_argument;
  else if (core::extras_of(fiber) == nullptr)
    error = Errc::no_memory;
  if (error != Errc{}) {
    fiber.scheduler->request_cancel(fiber);
    detail::throw_error(error);
  }
  fiber.extras->group = this;
  fiber.extras->previous_member = std::exchange(last_, &fiber);
  (first_ == nullptr ? first_ : fiber.extras->previous_member->extras->next_member) = &fiber;
  ++size_;
  if (is_ending_)
    fiber.scheduler->request_cancel(fiber);
}

// It has ended.
void Group::unlink(FiberRecord& fiber) noexcept {
  detail::FiberExtras& extras = *fiber.extras;
  FiberRecord* previous = std::exchange(extras.previous_member, nullptr);
  FiberRecord* next = std::exchange(extras.next_member, nullptr);
  (previous == nullptr ? first_ : previous->extras->next_member) = next;
  (next == nullptr ? last_ : next->extras->previous_member) = previous;
  extras.group = nullptr;
  --size_;
  if (failed_ == nullptr &&
      (fiber.outcome == Outcome::failed || fiber.outcome == Outcome::no_memory)) {
    ++fiber.references;
    fiber.is_claimed = true;
    failed_ = &fiber;
    cancel();
  }
  if (first_ == nullptr)
    wake_joiners();
}

void Group::wake_joiners() noexcept {
  while (WaitLink* link = joiners_.first()) {
    auto& place = static_cast<JoinPlace&>(*link);
    if (place.is_join)
      place.failed = take_failure(failed_);
    joiners_.wake_one();
  }
}

Result<void> Group::wait(Deadline deadline, WhenUnwinding rule) {
  FiberRecord* me = running_fiber();
  core::check_may_suspend(me);
  if (me != nullptr && core::interruption_of(*me) == core::Interruption::throws)
    core::throw_request(*me);
  JoinPlace place;
  if (first_ == nullptr) {
    place.failed = take_failure(failed_);
  } else {
    if (me == nullptr)
      return Errc::not_a_fiber;
    core::check_thread(*first_);
    if (me->scheduler != first_->scheduler)
      return Errc::invalid_argument;
    if (deadline.is_forever() && is_member(*me, *this))
      return Errc::deadlock;
    Waiter waiter("the members of a group");
    waiter.watch(joiners_, place);
    const WakeReason reason = waiter.wait(deadline, rule);
    if (reason == WakeReason::timed_out)
      return Errc::timed_out;
    if (reason == WakeReason::cancelled)
      return Errc::cancelled;
  }
  if (!place.failed)
    return {};
  FiberRecord& failed = *detail::FiberAccess::record(place.failed);
  if (failed.outcome == Outcome::no_memory)
    return Errc::no_memory;
  std::rethrow_exception(detail::error_of(failed));
}

void core::leave_group(FiberRecord& fiber) noexcept {
  if (fiber.extras != nullptr && fiber.extras->group != nullptr)
    fiber.extras->group->unlink(fiber);
}

} // namespace cede
