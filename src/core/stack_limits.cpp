// SPDX-License-Identifier: MIT
// What can be asked of a stack: its limits, and how much of it was used. Layer core.
#include "../os/memory.h"
#include "../os/thread.h"
#include "sanitizers.h"
#include "slab.h"
#include "stack.h"

#include <cede/process.h>

#include <algorithm>

namespace cede {
namespace {

// Asking the system is slow. Not inlined, and opaque: the caller may be a process that goes on on
// another thread, and a compiler that sees through this keeps the address over a switch.
CEDE_NOINLINE os::Bounds own_stack() noexcept {
  asm volatile("" : : : "memory");
  static thread_local const os::Bounds own = os::thread_stack();
  return own;
}

} // namespace

std::size_t StackLimits::remaining() const {
  const auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return here > low && here <= high ? static_cast<std::size_t>(here - low) : 0;
}

StackLimits stack_limits() {
  auto* here = static_cast<std::byte*>(__builtin_frame_address(0));
  const core::Found found = core::find_stack(here, true);
  if (found.name != nullptr)
    return {found.low, found.high};
  const os::Bounds own = own_stack();
  if (here >= own.low && here < own.high)
    return {own.low, own.high};
  return {};
}

std::size_t stack_high_water(const Process& process) {
  detail::Stack* stack = execution_of(process).stack;
  if (stack == nullptr)
    return 0;
  if (stack->special & detail::kPainted) {
    const std::byte* lowest = core::skip_bytes(stack->low, stack->top, core::kPaint);
    return static_cast<std::size_t>(stack->top - lowest);
  }
  const std::size_t page = os::page_bytes();
  const auto low = reinterpret_cast<std::uintptr_t>(stack->low) / page * page;
  std::byte* lowest = os::first_resident(reinterpret_cast<std::byte*>(low), stack->high());
  return static_cast<std::size_t>(stack->high() - std::max(lowest, stack->low));
}

} // namespace cede
