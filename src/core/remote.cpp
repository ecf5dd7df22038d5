// SPDX-License-Identifier: MIT
#include <cede/remote.h>

#include "fiber.h"
#include "inbox.h"
#include "scheduler_state.h"
#include "waker.h"

#include <atomic>

namespace cede {

using core::SchedulerState;

Remote::Remote(std::shared_ptr<core::Inbox> inbox) noexcept
    : inbox_(std::move(inbox)), counts_(true) {
  inbox_->hold();
}

Remote::Remote(const Remote& other) noexcept : inbox_(other.inbox_), counts_(other.counts_) {
  if (counts_)
    inbox_->hold();
}

Remote::Remote(Remote&& other) noexcept
    : inbox_(std::move(other.inbox_)), counts_(std::exchange(other.counts_, false)) {}

Remote& Remote::operator=(Remote other) noexcept {
  std::swap(inbox_, other.inbox_);
  std::swap(counts_, other.counts_);
  return *this;
}

Remote::~Remote() {
  unref();
}

void Remote::unref() noexcept {
  if (std::exchange(counts_, false))
    inbox_->drop();
}

Remote remote() {
  const SchedulerState* here = SchedulerState::driven();
  if (here == nullptr)
    detail::throw_error(Errc::not_a_fiber);
  return Remote(here->inbox);
}

namespace detail {

Result<void> send_message(core::Inbox* inbox, Message& message) noexcept {
  if (inbox == nullptr)
    return Errc::closed;
  switch (inbox->send(message)) {
  case core::Sent::full:
    return Errc::again;
  case core::Sent::closed:
    return Errc::closed;
  default:
    return {};
  }
}

void CallState::run_reply(Message& message, SchedulerState&) {
  auto& call = static_cast<CallState&>(message);
  const std::shared_ptr<CallState> kept = std::move(call.sent);
  if (call.waiter != nullptr)
    call.waiter->fire();
}

void CallState::discard_reply(Message& message) noexcept {
  const std::shared_ptr<CallState> kept = std::move(static_cast<CallState&>(message).sent);
}

Result<void> prepare_call(core::Inbox* inbox, CallState& call) noexcept {
  const SchedulerState* here = SchedulerState::driven();
  if (core::running_fiber() != nullptr)
    call.home = here->inbox;
  else if (here != nullptr && here->inbox.get() == inbox)
    return Errc::deadlock;
  return {};
}

void end_call(const std::shared_ptr<CallState>& call) noexcept {
  {
    const std::lock_guard lock(call->mutex);
    call->has_ended = true;
  }
  call->ended_for_thread.notify_one();
  if (call->home == nullptr)
    return;
  call->sent = call;
  if (call->home->send(*call) != core::Sent::accepted)
    call->sent.reset();
}

Result<void> wait_for_call(core::Inbox*, const std::shared_ptr<CallState>& call,
                           Deadline deadline) {
  if (call->home == nullptr) {
    std::unique_lock lock(call->mutex);
    const auto has_ended = [&] { return call->has_ended; };
    if (deadline.is_forever())
      call->ended_for_thread.wait(lock, has_ended);
    else if (!call->ended_for_thread.wait_until(lock, deadline.time(), has_ended))
      return Errc::timed_out;
  } else {
    struct Watch {
      CallState& call;
      ~Watch() { call.waiter = nullptr; }
    };
    Waiter waiter("a call to a scheduler");
    Watch watch{*call};
    call->waiter = &waiter;
    // Somebody else ends this wait, whatever else goes on here.
    core::Inbox& home = *call->home;
    home.hold();
    struct Held {
      core::Inbox& inbox;
      ~Held() { inbox.drop(); }
    } held{home};
    switch (waiter.wait(deadline)) {
    case WakeReason::timed_out:
      return Errc::timed_out;
    case WakeReason::cancelled:
      return Errc::cancelled;
    default:
      break;
    }
  }
  return call->is_closed ? Result<void>(Errc::closed) : Result<void>();
}

} // namespace detail
} // namespace cede
