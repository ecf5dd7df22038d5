// SPDX-License-Identifier: MIT
#include "manager.h"

#include "scheduler_state.h"
#include "unhandled.h"

#include <utility>

namespace cede::core {

using detail::FiberRecord;

namespace {

// The lists are filled at their heads.
template <class Node>
Node* reversed(Node* list) noexcept {
  Node* result = nullptr;
  while (list != nullptr) {
    Node* next = std::exchange(list->next, result);
    result = std::exchange(list, next);
  }
  return result;
}

} // namespace

void bury_the_dead(SchedulerState& scheduler) {
  detail::Stack* stack = reversed(std::exchange(scheduler.graves, nullptr));
  while (stack != nullptr) {
    detail::Stack* next = stack->next;
    detail::give_idle_stack(*stack);
    stack = next;
  }
  FiberRecord* fiber = reversed(std::exchange(scheduler.failed, nullptr));
  while (fiber != nullptr) {
    FiberRecord* next = std::exchange(fiber->next, nullptr);
    report_unhandled(scheduler, detail::FiberAccess::reference(fiber), detail::error_of(*fiber));
    release_record(*fiber);
    fiber = next;
  }
}

} // namespace cede::core
