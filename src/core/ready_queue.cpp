// SPDX-License-Identifier: MIT
#include "ready_queue.h"

namespace cede::core {

void ReadyQueue::draw() noexcept {
  detail::FiberRecord*& head = heads_[0];
  std::size_t count = 1;
  for (const detail::FiberRecord* fiber = head->next; fiber != head; fiber = fiber->next)
    ++count;
  for (std::size_t steps = random_() % count; steps > 0; --steps)
    head = head->next;
}

} // namespace cede::core
