// SPDX-License-Identifier: MIT
#include "lending.h"

#include "fiber.h"
#include "scheduler_state.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace cede::core {

using detail::FiberRecord;
using detail::Lender;

namespace {

std::uint32_t& count_of(Lender& lender, int priority) noexcept {
  return lender.waiting[priority - kPriorityMin];
}

bool has_waiting(const Lender& lender) noexcept {
  return std::any_of(std::begin(lender.waiting), std::end(lender.waiting),
                     [](std::uint32_t count) { return count > 0; });
}

std::int8_t highest_waiting(const Lender& lender) noexcept {
  auto priority = std::int8_t{kPriorityMax};
  while (priority > kPriorityMin && lender.waiting[priority - kPriorityMin] == 0)
    --priority;
  return priority;
}

// To what it lends while it waits; null if it doesn't.
Lender* lender_of(const FiberRecord& fiber) noexcept {
  if (fiber.waiter == nullptr || fiber.waiter->has_fired())
    return nullptr;
  const WaitLink* place = fiber.waiter->place();
  const bool lends = place != nullptr && place->kind != nullptr && place->kind->lender != nullptr;
  return lends ? place->kind->lender(*place) : nullptr;
}

// Gives `fiber` what it should have, and on along the chain of those for whom it waits.
void update(FiberRecord* fiber) noexcept {
  while (fiber != nullptr && fiber->kind != nullptr) { // a post may hold something too
    std::int8_t priority = fiber->own_priority;
    for (const Lender* lender = fiber->lenders; lender != nullptr; lender = lender->next)
      priority = std::max(priority, highest_waiting(*lender));
    const std::int8_t before = fiber->priority;
    if (priority == before)
      return;
    fiber->scheduler->set_priority(*fiber, priority);
    Lender* next = lender_of(*fiber);
    if (next == nullptr)
      return;
    --count_of(*next, before);
    ++count_of(*next, priority);
    fiber = next->holder;
  }
}

void link(Lender& lender) noexcept {
  FiberRecord& holder = *lender.holder;
  lender.prev = nullptr;
  lender.next = holder.lenders;
  if (lender.next != nullptr)
    lender.next->prev = &lender;
  holder.lenders = &lender;
}

void unlink(Lender& lender) noexcept {
  (lender.prev != nullptr ? lender.prev->next : lender.holder->lenders) = lender.next;
  if (lender.next != nullptr)
    lender.next->prev = lender.prev;
}

} // namespace

void lend(Lender& lender, FiberRecord& fiber) noexcept {
  if (lender.holder != nullptr && !has_waiting(lender))
    link(lender);
  ++count_of(lender, fiber.priority);
  update(lender.holder);
}

void withdraw(Lender& lender, FiberRecord& fiber) noexcept {
  --count_of(lender, fiber.priority);
  if (lender.holder != nullptr && !has_waiting(lender))
    unlink(lender);
  update(lender.holder);
}

void change_holder(Lender& lender, FiberRecord* holder) noexcept {
  const bool lends = has_waiting(lender);
  if (lends && lender.holder != nullptr)
    unlink(lender);
  FiberRecord* before = std::exchange(lender.holder, holder);
  if (before != nullptr)
    --before->held;
  if (holder != nullptr)
    ++holder->held;
  if (lends && holder != nullptr)
    link(lender);
  update(before);
  update(holder);
}

void set_own_priority(FiberRecord& fiber, int priority) noexcept {
  fiber.own_priority = static_cast<std::int8_t>(priority);
  if (priority == fiber.priority)
    fiber.scheduler->set_priority(fiber, priority); // behind its equals, as with any other
  else
    update(&fiber);
}

} // namespace cede::core
