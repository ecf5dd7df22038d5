// SPDX-License-Identifier: MIT
#include "waker.h"

#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"

#include <cede/remote.h>
#include <new>

namespace cede {

namespace core {

bool has_used_waker(const SchedulerState& scheduler) noexcept {
  for (const detail::WakerState* state = scheduler.wakers; state != nullptr; state = state->older)
    if (state->handles.load() > 0 && is_parked(*state->fiber))
      return true;
  return false;
}

void forget_wakers(detail::FiberRecord& fiber) noexcept {
  if (fiber.extras == nullptr || fiber.extras->waker == nullptr)
    return;
  detail::WakerState* state = std::exchange(fiber.extras->waker, nullptr);
  (state->newer != nullptr ? state->newer->older : fiber.scheduler->wakers) = state->older;
  if (state->older != nullptr)
    state->older->newer = state->newer;
  state->fiber = nullptr;
  state->release();
}

} // namespace core

namespace detail {

namespace {

// An exchange, so that what was written before a wake that was merged is seen by the fiber. A wake
// must not overtake the posts that its thread made before it: if one was merged into a message that
// came before such posts, the fiber may run, and park, without them. So the message goes again,
// behind them.
void run_wake(Message& message, core::SchedulerState&) {
  auto& state = static_cast<WakerState&>(message);
  const WakeStage stage = state.stage.exchange(WakeStage::none);
  if (state.fiber != nullptr) {
    FiberAccess::reference(state.fiber).wake();
    if (stage == WakeStage::sent_and_asked_again && state.inbox->posts_waiting() > 0)
      state.wake();
  }
  state.release();
}

void discard_wake(Message& message) noexcept {
  static_cast<WakerState&>(message).release();
}

} // namespace

WakerState::WakerState(std::shared_ptr<core::Inbox> home, FiberRecord& woken)
    : Message{nullptr, run_wake, discard_wake, false}, inbox(std::move(home)), fiber(&woken) {}

void WakerState::wake() noexcept {
  WakeStage now = stage.load(std::memory_order_relaxed);
  while (!stage.compare_exchange_weak(
      now, now == WakeStage::none ? WakeStage::sent : WakeStage::sent_and_asked_again)) {
  }
  if (now != WakeStage::none)
    return;
  references.fetch_add(1, std::memory_order_relaxed);
  if (inbox->send(*this) != core::Sent::accepted)
    release();
}

void WakerState::release() noexcept {
  if (references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete this;
}

} // namespace detail

Waker::Waker(detail::WakerState* state) noexcept : state_(state) {
  state_->references.fetch_add(1, std::memory_order_relaxed);
  state_->handles.fetch_add(1, std::memory_order_relaxed);
}

Waker::Waker(const Waker& other) noexcept {
  if (other.state_ != nullptr)
    *this = Waker(other.state_);
}

Waker::~Waker() {
  if (state_ == nullptr)
    return;
  // Nobody may be left who could wake the fiber: its scheduler looks.
  if (state_->handles.fetch_sub(1) == 1)
    state_->inbox->poke();
  state_->release();
}

void Waker::wake() const noexcept {
  if (state_ != nullptr)
    state_->wake();
}

Waker waker(const AnyFiber& fiber) {
  detail::FiberRecord* record = detail::FiberAccess::record(fiber);
  if (record == nullptr)
    detail::throw_error(Errc::not_a_fiber);
  if (record->stage == detail::FiberStage::finished)
    return {};
  core::check_thread(*record);
  detail::FiberExtras* extras = core::extras_of(*record);
  if (extras == nullptr)
    detail::throw_error(Errc::no_memory);
  if (extras->waker == nullptr) {
    detail::WakerState*& newest = record->scheduler->wakers;
    extras->waker = new (std::nothrow) detail::WakerState(record->scheduler->inbox, *record);
    if (extras->waker == nullptr)
      detail::throw_error(Errc::no_memory);
    extras->waker->older = newest;
    if (newest != nullptr)
      newest->newer = extras->waker;
    newest = extras->waker;
  }
  return Waker(extras->waker);
}

Waker waker() {
  return waker(current());
}

} // namespace cede
