// SPDX-License-Identifier: MIT
#include <cede/stop.h>

#include "../core/inbox.h"
#include "../core/scheduler_state.h"

#include <atomic>
#include <memory>
#include <new>
#include <utility>

namespace cede {

namespace detail {

// What an event shares with the request that is on its way to it. A stop is requested once, so its
// message is sent once, and being made beforehand it can't be refused for want of anything.
struct StopState : Message {
  // any thread
  std::atomic<int> references{1};
  const std::shared_ptr<core::Inbox> inbox;
  // the scheduler's thread only
  Event* event; // null once it is gone

  StopState(std::shared_ptr<core::Inbox> home, Event& stopped) noexcept;
  void release() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }
};

namespace {

void run_stop(Message& message, core::SchedulerState&) {
  auto& state = static_cast<StopState&>(message);
  if (state.event != nullptr)
    state.event->set();
  state.release();
}

void discard_stop(Message& message) noexcept {
  static_cast<StopState&>(message).release();
}

} // namespace

StopState::StopState(std::shared_ptr<core::Inbox> home, Event& stopped) noexcept
    : Message{nullptr, run_stop, discard_stop, false}, inbox(std::move(home)), event(&stopped) {
  inbox->hold();
}

void StopCallback::operator()() const noexcept {
  const core::SchedulerState* here = core::SchedulerState::driven();
  if (here != nullptr && here->inbox == state->inbox) {
    state->event->set();
    return;
  }
  state->references.fetch_add(1, std::memory_order_relaxed);
  if (state->inbox->send(*state) != core::Sent::accepted)
    state->release();
}

} // namespace detail

StopEvent::StopEvent(const std::stop_token& token) : Event(kManual, token.stop_requested()) {
  const core::SchedulerState* here = core::SchedulerState::driven();
  if (here == nullptr)
    detail::throw_error(Errc::not_a_fiber);
  if (is_set() || !token.stop_possible())
    return;
  state_ = new (std::nothrow) detail::StopState(here->inbox, *this);
  if (state_ == nullptr)
    detail::throw_error(Errc::no_memory);
  callback_.emplace(token, detail::StopCallback{state_});
}

StopEvent::~StopEvent() {
  if (state_ == nullptr)
    return;
  callback_.reset(); // waits for one that is running on another thread
  state_->event = nullptr;
  state_->inbox->drop();
  state_->release();
}

} // namespace cede
