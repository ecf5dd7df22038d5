// SPDX-License-Identifier: MIT
#include "ready_queue.h"

#include <bit>
#include <cede/fiber.h>

namespace cede::core {

using detail::FiberRecord;

unsigned ReadyQueue::ring_of(const FiberRecord& fiber) const noexcept {
  return order_ == ReadyOrder::by_priority ? static_cast<unsigned>(fiber.priority - kPriorityMin)
                                           : 0;
}

void ReadyQueue::push(FiberRecord& fiber) noexcept {
  FiberRecord*& head = heads_[ring_of(fiber)];
  ++count_;
  if (head == nullptr) {
    fiber.next = fiber.prev = head = &fiber;
    mask_ |= 1u << ring_of(fiber);
    return;
  }
  fiber.next = head;
  fiber.prev = head->prev;
  head->prev->next = &fiber;
  head->prev = &fiber;
}

void ReadyQueue::push_first(FiberRecord& fiber) noexcept {
  push(fiber);
  heads_[ring_of(fiber)] = &fiber;
}

void ReadyQueue::remove(FiberRecord& fiber) noexcept {
  FiberRecord*& head = heads_[ring_of(fiber)];
  --count_;
  if (fiber.next == &fiber) {
    head = nullptr;
    mask_ &= ~(1u << ring_of(fiber));
  } else {
    fiber.next->prev = fiber.prev;
    fiber.prev->next = fiber.next;
    if (head == &fiber)
      head = fiber.next;
  }
  fiber.next = fiber.prev = nullptr;
}

FiberRecord* ReadyQueue::next() noexcept {
  if (mask_ == 0)
    return nullptr;
  FiberRecord*& head = heads_[std::bit_width(mask_) - 1];
  if (order_ == ReadyOrder::at_random)
    for (std::size_t steps = random_() % count_; steps > 0; --steps)
      head = head->next;
  return head;
}

} // namespace cede::core
