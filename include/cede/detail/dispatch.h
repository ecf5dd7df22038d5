// SPDX-License-Identifier: MIT
// What the inlined yield sees of a scheduler.
#pragma once

#include <cede/detail/fiber_record.h>
#include <cede/detail/thread.h>
#include <cede/process.h>

#include <cstdint>

namespace cede::detail {

// The head of a scheduler's state; a thread without one has one that runs nothing.
struct Dispatch {
  FiberRecord* current; // what runs: a fiber, or the pump; null on a plain thread
  // How many yields may be taken inline, each the next on the ring. None while something else has to
  // be looked at: a higher priority, a cancellation, a step.
  std::int32_t quick_yields;
};

void yield_out_of_line();

CEDE_ALWAYS_INLINE void yield_inline() {
#if CEDE_INLINE_SWITCH
  ThreadBlock& block = thread();
  Dispatch& dispatch = *block.dispatch;
  if (dispatch.quick_yields > 0) [[likely]] {
    FiberRecord& from = *dispatch.current;
    FiberRecord& to = *from.next;
    save_fpenv(from.slot.context);
    if (is_plain_switch(block, from.slot, to.slot)) [[likely]] {
      --dispatch.quick_yields;
      dispatch.current = &to;
      from.slot.gate = Gate::suspended;
      to.slot.gate = Gate::running;
      switch_inline(from.slot.context, to.slot.context, nullptr);
      return;
    }
  }
#endif
  yield_out_of_line();
}

} // namespace cede::detail
