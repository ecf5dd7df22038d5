// SPDX-License-Identifier: MIT
// Who can run: a ring of fibers for each priority. Layer core.
//
// Invariants: a ring's head is the next to run, and the one before the head is the last. The fiber
// that runs stays on its ring, as the head: to yield among equals is to move on, and nothing else
// is written. Inlined yields do that in the scheduler's `current`, so heads are brought up to date
// by follow() before they are looked at.
#pragma once

#include <cede/detail/fiber_record.h>
#include <cede/fiber.h>
#include <cede/scheduler.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>

namespace cede::core {

class ReadyQueue {
public:
  static constexpr int kPriorities = 8;

  explicit ReadyQueue(ReadyOrder order, std::uint64_t seed = 0) : order_(order), random_(seed) {}

  bool is_empty() const noexcept { return mask_ == 0; }
  ReadyOrder order() const noexcept { return order_; }

  // `running` has been reached by inlined yields.
  void follow(detail::FiberRecord& running) noexcept { heads_[ring_of(running)] = &running; }

  // To the end of its ring.
  void push(detail::FiberRecord& fiber) noexcept {
    const unsigned ring = ring_of(fiber);
    detail::FiberRecord*& head = heads_[ring];
    if (head == nullptr) {
      fiber.next = fiber.prev = head = &fiber;
      mask_ |= 1u << ring;
      return;
    }
    fiber.next = head;
    fiber.prev = head->prev;
    head->prev->next = &fiber;
    head->prev = &fiber;
  }

  // To the head of its ring.
  void push_first(detail::FiberRecord& fiber) noexcept {
    push(fiber);
    heads_[ring_of(fiber)] = &fiber;
  }

  void remove(detail::FiberRecord& fiber) noexcept {
    const unsigned ring = ring_of(fiber);
    detail::FiberRecord*& head = heads_[ring];
    if (fiber.next == &fiber) {
      head = nullptr;
      mask_ &= ~(1u << ring);
    } else {
      fiber.next->prev = fiber.prev;
      fiber.prev->next = fiber.next;
      if (head == &fiber)
        head = fiber.next;
    }
    fiber.next = fiber.prev = nullptr;
  }

  // The head goes behind its equals.
  void pass(detail::FiberRecord& head) noexcept { heads_[ring_of(head)] = head.next; }

  // Who runs next; null if nobody is ready.
  detail::FiberRecord* next() noexcept {
    if (mask_ == 0)
      return nullptr;
    if (order_ == ReadyOrder::at_random)
      draw();
    return heads_[std::bit_width(mask_) - 1];
  }

  // Whether somebody is ready who goes before `fiber`.
  bool has_before(const detail::FiberRecord& fiber) const noexcept {
    return mask_ >> (ring_of(fiber) + 1) != 0;
  }

private:
  unsigned ring_of(const detail::FiberRecord& fiber) const noexcept {
    return order_ == ReadyOrder::by_priority ? static_cast<unsigned>(fiber.priority - kPriorityMin)
                                             : 0;
  }
  // Makes a fiber of the one ring its head, each with the same chance.
  void draw() noexcept;

  detail::FiberRecord* heads_[kPriorities] = {};
  std::uint32_t mask_ = 0; // a bit for each ring that is not empty
  ReadyOrder order_;
  std::minstd_rand random_;
};

} // namespace cede::core
