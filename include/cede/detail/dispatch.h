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
  // How many yields may be taken inline, each the next on the ring. None while something else has
  // to be looked at: a higher priority, a cancellation, a step.
  std::int32_t quick_yields;
};

void yield_out_of_line();

// A wait of `me` has ended for `reason`, and something was asked of it: throws that, if it is why.
void meet_request(FiberRecord& me, WakeReason reason);

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

// The commonest waits and what ends them, among fibers of one priority and with nothing else to
// look at. Each is false if it has to be done out of line, and has then done nothing.
struct QuickWait {
  // A wait without a deadline: in `list`, where `place` is appended; in none, for the permit of
  // park(). It has ended with `reason` when this returns.
  CEDE_ALWAYS_INLINE static bool wait([[maybe_unused]] WaitList* list,
                                      [[maybe_unused]] WaitLink* place,
                                      [[maybe_unused]] const char* what,
                                      [[maybe_unused]] WakeReason& reason) {
#if CEDE_INLINE_SWITCH
    ThreadBlock& block = thread();
    Dispatch& dispatch = *block.dispatch;
    if (dispatch.quick_yields <= 0) [[unlikely]]
      return false;
    FiberRecord& me = *dispatch.current;
    FiberRecord& next = *me.next;
    save_fpenv(me.slot.context);
    // The next one is itself if it is alone: then it runs, and the switch isn't plain.
    if (!can_wait(me) || (list == nullptr && me.has_permit) ||
        !is_plain_switch(block, me.slot, next.slot)) [[unlikely]]
      return false;
    Waiter waiter(me, what);
    if (list != nullptr)
      waiter.watch_first(*list, *place);
    me.stage = FiberStage::waiting;
    me.waiter = &waiter;
    me.prev->next = &next;
    next.prev = me.prev;
    me.next = me.prev = nullptr;
    --dispatch.quick_yields;
    dispatch.current = &next;
    me.slot.gate = Gate::suspended;
    next.slot.gate = Gate::running;
    switch_inline(me.slot.context, next.slot.context, nullptr);
    me.waiter = nullptr;
    reason = waiter.reason_;
    if (me.is_cancelled || me.is_raised) [[unlikely]]
      meet_request(me, reason);
    return true;
#else
    return false;
#endif
  }

  CEDE_ALWAYS_INLINE static bool park(WakeReason& reason) {
    return wait(nullptr, nullptr, kPark, reason);
  }

  // Ends a park().
  CEDE_ALWAYS_INLINE static bool wake([[maybe_unused]] FiberRecord& fiber) noexcept {
#if CEDE_INLINE_SWITCH
    Waiter* waiter = fiber.waiter;
    return waiter != nullptr && waiter->what_ == kPark && fire(*waiter);
#else
    return false;
#endif
  }

  // Ends the first wait in a list in which somebody waits.
  CEDE_ALWAYS_INLINE static bool wake_first([[maybe_unused]] WaitList& list) noexcept {
#if CEDE_INLINE_SWITCH
    WaitLink& first = *list.first();
    Waiter& waiter = *first.waiter;
    if (first.sibling != nullptr || waiter.links_ != &first || !fire(waiter))
      return false;
    list.remove(first);
    return true;
#else
    return false;
#endif
  }

private:
  static constexpr bool can_wait(const FiberRecord& me) noexcept {
    return !me.is_cancelled && !me.is_raised && me.shields == 0 && me.by_result == 0;
  }

#if CEDE_INLINE_SWITCH
  // Ends a wait that is in no list but one.
  CEDE_ALWAYS_INLINE static bool fire(Waiter& waiter) noexcept {
    FiberRecord& fiber = *waiter.fiber_;
    Dispatch& dispatch = *thread().dispatch;
    if (waiter.stage_ != Waiter::Stage::waiting || waiter.has_deadline() || fiber.is_suspended ||
        dispatch.quick_yields <= 0 || dispatch.current->scheduler != fiber.scheduler ||
        dispatch.current->priority != fiber.priority)
      return false;
    waiter.stage_ = Waiter::Stage::fired;
    fiber.stage = FiberStage::ready;
    link_before(*dispatch.current, fiber);
    return true;
  }
#endif
};

} // namespace cede::detail
