// SPDX-License-Identifier: MIT
// What the fiber that runs can do.
#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"

#include <new>
#include <thread>

namespace cede {

using core::Interruption;
using core::running_fiber;
using core::SchedulerState;
using detail::FiberRecord;
using detail::FiberStage;
using detail::kPark;

namespace {

constexpr char kSleep[] = "sleep";

// The fiber that is to wait, or the reason why there is none.
FiberRecord& fiber_that_waits() {
  FiberRecord* me = running_fiber();
  if (me == nullptr)
    detail::throw_error(Errc::not_a_fiber);
  return *me;
}

} // namespace

AnyFiber current() noexcept {
  return detail::FiberAccess::reference(running_fiber());
}

namespace detail {

void yield_out_of_line() {
  FiberRecord* me = running_fiber();
  if (me == nullptr) {
    CEDE_CHECK(SchedulerState::driven() == nullptr,
               "a wait in what the scheduler itself calls: a post, a hook or a handler");
    std::this_thread::yield();
    return;
  }
  core::check_may_suspend(me);
  if (core::interruption_of(*me) == Interruption::throws)
    core::throw_request(*me);
  me->yields_quietly = core::has_to_report(*me);
  me->scheduler->yield(*me);
  me->yields_quietly = false;
  if (core::has_request(*me))
    me->scheduler->revoke_quick_yields();
}

void finish_with(void* value, void (*destroy)(void*), const void* type) {
  FiberRecord* me = running_fiber();
  CEDE_CHECK(me != nullptr, "finish outside fibers");
  CEDE_CHECK(type == me->kind->result_type,
             "finish with a value of another type than the body's result");
  if (core::extras_of(*me) == nullptr)
    throw std::bad_alloc();
  if (me->extras->finish_value != nullptr)
    me->extras->destroy_finish_value(me->extras->finish_value);
  me->extras->finish_value = value;
  me->extras->destroy_finish_value = destroy;
  me->is_finishing = true;
  me->is_cancelled = true;
  core::throw_request(*me);
}

} // namespace detail

NoSuspend::NoSuspend() noexcept : fiber_(running_fiber()) {
  if (fiber_ == nullptr)
    return;
  ++fiber_->no_suspends;
  CEDE_CHECK(fiber_->no_suspends > 0, "more than 255 scopes of NoSuspend inside each other");
  fiber_->is_watched = true;
  fiber_->scheduler->revoke_quick_yields(); // and since nobody else runs, there are no new ones
}

NoSuspend::~NoSuspend() {
  if (fiber_ != nullptr)
    fiber_->is_watched = --fiber_->no_suspends > 0 || fiber_->has_order_checked;
}

bool yield_to(const AnyFiber& fiber) {
  FiberRecord* me = running_fiber();
  core::check_may_suspend(me);
  FiberRecord* to = detail::FiberAccess::record(fiber);
  const auto can_run = [me](const FiberRecord& it) {
    return it.scheduler == me->scheduler && it.next != nullptr &&
           (it.stage == FiberStage::ready || (it.stage == FiberStage::created && !it.is_cancelled));
  };
  if (me != nullptr && core::interruption_of(*me) != Interruption::none) {
    detail::yield_out_of_line(); // throws, or gives one turn
    return false;
  }
  if (me == nullptr || to == nullptr || to == me || !can_run(*to))
    return false;
  me->yields_quietly = core::has_to_report(*me);
  me->scheduler->yield_to(*me, *to);
  me->yields_quietly = false;
  return true;
}

void schedule() {
  FiberRecord& me = fiber_that_waits();
  if (core::interruption_of(me) == Interruption::reports) {
    detail::yield_out_of_line();
    return;
  }
  Waiter(core::kSchedule).wait();
}

void sleep_until(Deadline deadline) {
  FiberRecord* me = running_fiber();
  if (me == nullptr) {
    CEDE_CHECK(SchedulerState::driven() == nullptr,
               "a sleep in what the scheduler itself calls: a post, a hook or a handler");
    do // Windows' sleeps may end early
      std::this_thread::sleep_until(deadline.time());
    while (std::chrono::steady_clock::now() < deadline.time());
    return;
  }
  if (core::interruption_of(*me) != Interruption::none || deadline.time() <= me->scheduler->time())
    detail::yield_out_of_line();
  else
    Waiter(kSleep).wait(deadline);
}

WakeReason detail::park_out_of_line(Deadline deadline) {
  FiberRecord& me = fiber_that_waits();
  Waiter waiter(kPark);
  if (me.has_permit && core::interruption_of(me) == Interruption::none) {
    core::check_may_suspend(&me);
    me.has_permit = false;
    return WakeReason::woken;
  }
  return waiter.wait(deadline);
}

void finish() {
  detail::finish_with(nullptr, nullptr, &detail::kResultType<void>);
}

} // namespace cede
