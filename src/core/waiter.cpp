// SPDX-License-Identifier: MIT
#include <cede/waiter.h>

#include "check.h"
#include "scheduler_state.h"

#include <utility>

namespace cede {

using detail::FiberRecord;
using detail::FiberStage;

namespace {
bool tells(const WaitLink& link) noexcept {
  return link.kind != nullptr && link.kind->left != nullptr;
}
} // namespace

std::size_t WaitList::size() const noexcept {
  std::size_t count = 0;
  if (const WaitLink* link = first_)
    do
      ++count;
    while ((link = link->next) != first_);
  return count;
}

bool WaitList::wake_one(WakeReason reason) noexcept {
  if (first_ == nullptr)
    return false;
  first_->waiter->fire(reason, first_);
  return true;
}

void WaitList::wake_all(WakeReason reason) noexcept {
  while (wake_one(reason)) {
  }
}

Waiter::Waiter(const char* what) noexcept : fiber_(core::running_fiber()), what_(what) {
  CEDE_CHECK(fiber_ != nullptr, "a wait outside fibers");
}

void Waiter::watch(WaitList& list, WaitLink& link) noexcept {
  if (stage_ == Stage::fired)
    return;
  link.waiter = this;
  link.sibling = links_;
  links_ = &link;
  list.append(link);
}

WakeReason Waiter::wait(Deadline deadline, WhenUnwinding rule) {
  FiberRecord& me = *fiber_;
  CEDE_CHECK(core::running_fiber() == &me, "a waiter waits in another fiber than its own");
  core::check_may_suspend(&me);
  if (stage_ == Stage::fired)
    return reason_;
  const bool reports = core::has_to_report(me);
  is_interruptible_ = me.shields == 0 && !(reports && rule == WhenUnwinding::wait_on);
  if (core::has_request(me) && is_interruptible_) {
    leave(nullptr);
    if (!reports)
      core::throw_request(me);
    detail::yield_out_of_line(); // one turn; it doesn't throw, for the same reason
    return WakeReason::cancelled;
  }
  block(deadline);
  if (core::has_request(me) && !reports)
    detail::meet_request(me, reason_);
  return reason_;
}

void detail::meet_request(FiberRecord& me, WakeReason reason) {
  me.scheduler->revoke_quick_yields();
  if (reason == WakeReason::cancelled)
    core::throw_request(me);
}

void Waiter::block(Deadline deadline) {
  FiberRecord& me = *fiber_;
  core::SchedulerState& scheduler = *me.scheduler;
  if (!deadline.is_forever())
    scheduler.deadlines.insert(*this, deadline);
  stage_ = Stage::waiting;
  me.stage = FiberStage::waiting;
  me.waiter = this;
  scheduler.block(me);
  me.waiter = nullptr;
  if (core::has_request(me))
    scheduler.revoke_quick_yields(); // it looks at its request at the next one
}

bool Waiter::fire(WakeReason reason, WaitLink* place) noexcept {
  if (stage_ == Stage::fired)
    return false;
  core::check_thread(*fiber_);
  const bool is_waiting = std::exchange(stage_, Stage::fired) == Stage::waiting;
  reason_ = reason;
  leave(place);
  links_ = place;
  if (is_waiting) {
    fiber_->stage = FiberStage::ready;
    fiber_->scheduler->make_ready(*fiber_);
  }
  return true;
}

// It is in no list any more before anybody is told, since they may look for the next in turn.
// Whoever has the list by which it was fired knows.
void Waiter::leave(const WaitLink* fired) noexcept {
  const WaitList* knows = fired != nullptr ? fired->list : nullptr;
  bool is_told = false;
  for (WaitLink* link = links_; link != nullptr; link = link->sibling)
    if (link->waiter != nullptr) {
      link->list->remove(*link);
      is_told = is_told || (tells(*link) && link->list != knows);
    }
  WaitLink* links = std::exchange(links_, nullptr);
  if (deadline_at_ != core::Deadlines::kNowhere)
    fiber_->scheduler->deadlines.remove(*this);
  if (!is_told)
    return;
  for (WaitLink* link = links; link != nullptr; link = link->sibling)
    if (tells(*link) && link->list != knows)
      link->kind->left(*link);
}

} // namespace cede
