// SPDX-License-Identifier: MIT
#include <cede/limit.h>

#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"

#include <cede/detail/wait.h>
#include <utility>

namespace cede {

using core::LimitState;
using core::running_fiber;
using detail::FiberRecord;

namespace core {

// What a limit and its members share.
//
// Invariants: each member is counted once, in `running` or in `queued`, and its extras lead here.
// Somebody is in the queue only while as many run as may. In the queue are the members that are
// held; one that was cancelled there has left it and is `queued` until it has ended, so that who
// waits finds none of the bodies left.
struct LimitState {
  explicit LimitState(std::size_t most) noexcept : max(most) {}

  bool has_members() const noexcept { return running + queued > 0; }
  void check_thread() const noexcept {
    CEDE_CHECK(!has_members() || scheduler->is_on_its_thread(),
               "a limit is used on another thread than its members' scheduler's");
  }

  void append(FiberRecord& fiber) noexcept;
  void remove(FiberRecord& fiber) noexcept;
  // Lets the first in the queue go, if there is room.
  void let_in() noexcept;
  // It is a member no longer. May destroy the state.
  void leave(FiberRecord& fiber) noexcept;

  const std::size_t max;
  std::size_t running = 0;
  std::size_t queued = 0;
  FiberRecord* first = nullptr; // the queue
  FiberRecord* last = nullptr;
  SchedulerState* scheduler = nullptr; // the members', while there are any
  WaitList waiters;                    // for their end
  bool is_abandoned = false;           // the limit is gone
};

void LimitState::append(FiberRecord& fiber) noexcept {
  fiber.extras->previous_queued = std::exchange(last, &fiber);
  (first == nullptr ? first : fiber.extras->previous_queued->extras->next_queued) = &fiber;
}

void LimitState::remove(FiberRecord& fiber) noexcept {
  FiberRecord* previous = std::exchange(fiber.extras->previous_queued, nullptr);
  FiberRecord* next = std::exchange(fiber.extras->next_queued, nullptr);
  (previous == nullptr ? first : previous->extras->next_queued) = next;
  (next == nullptr ? last : next->extras->previous_queued) = previous;
}

void LimitState::let_in() noexcept {
  if (first == nullptr || running == max)
    return;
  FiberRecord& fiber = *first;
  remove(fiber);
  --queued;
  ++running;
  fiber.extras->is_let_in = true;
  scheduler->release(fiber);
}

void LimitState::leave(FiberRecord& fiber) noexcept {
  fiber.extras->limit = nullptr;
  --(fiber.extras->is_let_in ? running : queued);
  let_in();
  if (has_members())
    return;
  waiters.wake_all();
  if (is_abandoned)
    delete this;
}

void leave_limit(FiberRecord& fiber) noexcept {
  if (fiber.extras->limit != nullptr)
    fiber.extras->limit->leave(fiber);
}

void leave_queue(FiberRecord& fiber) noexcept {
  fiber.extras->limit->remove(fiber);
  fiber.scheduler->release(fiber);
}

} // namespace core

namespace {

bool is_member(const FiberRecord& fiber, const LimitState& limit) noexcept {
  return fiber.extras != nullptr && fiber.extras->limit == &limit;
}

} // namespace

LimitState* Limit::make_state(std::size_t max) {
  if (max < 1)
    detail::throw_error(Errc::invalid_argument);
  return new LimitState(max);
}

Limit::~Limit() {
  state_->check_thread();
  state_->waiters.wake_all(WakeReason::closed);
  if (state_->has_members())
    state_->is_abandoned = true;
  else
    delete state_;
}

std::size_t Limit::max() const noexcept {
  return state_->max;
}

std::size_t Limit::running() const noexcept {
  return state_->running;
}

std::size_t Limit::queued() const noexcept {
  return state_->queued;
}

// It joins the queue even if there is room: then it is the only one there, and let in at once.
void Limit::admit(FiberRecord& fiber) {
  Errc error{};
  state_->check_thread();
  if (state_->has_members() && state_->scheduler != fiber.scheduler)
    error = Errc::invalid_argument;
  else if (core::extras_of(fiber) == nullptr)
    error = Errc::no_memory;
  if (error != Errc{}) {
    detail::discard_new_fiber(fiber);
    detail::throw_error(error);
  }
  state_->scheduler = fiber.scheduler;
  fiber.extras->limit = state_;
  fiber.scheduler->hold(fiber);
  state_->append(fiber);
  ++state_->queued;
  state_->let_in();
  if (fiber.scheduler->is_closing)
    fiber.scheduler->request_cancel(fiber);
}

Result<void> Limit::wait(Deadline deadline, WhenUnwinding rule) {
  FiberRecord* me = running_fiber();
  core::check_may_suspend(me);
  if (me != nullptr && core::interruption_of(*me) == core::Interruption::throws)
    core::throw_request(*me);
  if (!state_->has_members())
    return {};
  if (me == nullptr)
    return Errc::not_a_fiber;
  state_->check_thread();
  if (me->scheduler != state_->scheduler)
    return Errc::invalid_argument;
  if (deadline.is_forever() && is_member(*me, *state_))
    return Errc::deadlock;
  WaitLink place;
  Waiter waiter("the members of a limit");
  waiter.watch(state_->waiters, place);
  return detail::result_of_wait(waiter.wait(deadline, rule)); // the limit may be gone after it
}

bool Limit::forget(const AnyFiber& fiber) noexcept {
  FiberRecord* record = detail::FiberAccess::record(fiber);
  state_->check_thread();
  if (record == nullptr || !is_member(*record, *state_))
    return false;
  if (!record->extras->is_let_in)
    record->scheduler->request_cancel(*record);
  state_->leave(*record);
  return true;
}

} // namespace cede
