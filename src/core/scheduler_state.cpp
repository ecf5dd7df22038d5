// SPDX-License-Identifier: MIT
#include "scheduler_state.h"

#include "check.h"
#include "fiber.h"
#include "heartbeat.h"
#include "inbox.h"
#include "lock_order.h"
#include "metrics.h"
#include "pump.h"
#include "scheduler_list.h"

#include "../os/thread.h"

#include <utility>

namespace cede::core {

using detail::Departure;
using detail::EntryHead;
using detail::FiberRecord;
using detail::FiberStage;
using detail::Gate;
using detail::Outcome;
using detail::Stack;

namespace {

constexpr std::int32_t kDispatchesBetweenServices = 64;

std::int32_t dispatches_between_services(const SchedulerOptions& options) noexcept {
  return options.has_test_clock ? 1 : kDispatchesBetweenServices;
}

} // namespace

SchedulerState::SchedulerState(const SchedulerOptions& given)
    : Dispatch{&pump, 0}, owner(&detail::thread()), thread_number(os::thread_number()),
      options(given), inbox(std::make_shared<Inbox>(given.post_limit)),
      ready(given.order, given.seed), records(new RecordPool),
      served(std::chrono::steady_clock::now()), test_time(served),
      until_service(dispatches_between_services(given)), is_each_dispatch_seen(given.times_slices) {
  pump.slot.gate = Gate::running;
  pump.stage = FiberStage::waiting;
  pump.scheduler = this;
  if (given.checks_lock_order)
    lock_order = std::make_unique<LockOrder>();
  enlist(*this);
}

SchedulerState::~SchedulerState() {
  CEDE_CHECK(heartbeat == nullptr, "a scheduler is destroyed before its watchdog");
  delist(*this);
  helpers.reset();
  inbox->close();
  // Handles that outlive the scheduler find out by this.
  records->for_each([](FiberRecord& fiber) { fiber.scheduler = nullptr; });
  records->abandon();
}

TimePoint SchedulerState::time() const noexcept {
  return options.has_test_clock ? test_time : TimePoint(std::chrono::steady_clock::now());
}

void SchedulerState::admit(FiberRecord& fiber) noexcept {
  ++alive;
  make_ready(fiber);
  if (fiber.stage == FiberStage::waiting)
    fiber.stage = FiberStage::ready;
}

void SchedulerState::hold(FiberRecord& fiber) noexcept {
  ++alive;
  fiber.is_held = true;
}

void SchedulerState::release(FiberRecord& fiber) noexcept {
  fiber.is_held = false;
  make_ready(fiber);
}

// What is held doesn't get here before its release.
void SchedulerState::make_ready(FiberRecord& fiber) noexcept {
  if (fiber.is_suspended)
    return;
  if (quick_yields > 0 && fiber.priority == current->priority) {
    detail::link_before(*current, fiber);
    return;
  }
  catch_up();
  ready.push(fiber);
}

void SchedulerState::set_priority(FiberRecord& fiber, int priority) noexcept {
  catch_up();
  const bool is_on_ring = fiber.prev != nullptr; // the starved have a next one too
  if (is_on_ring)
    ready.remove(fiber);
  fiber.priority = static_cast<std::int8_t>(priority);
  if (is_on_ring && &fiber == current)
    ready.push_first(fiber);
  else if (is_on_ring)
    ready.push(fiber);
  revoke_quick_yields();
}

// A fiber that is suspended in a yield resumes at its second entry, which throws. One that has not
// started is ended when its turn comes; a limit that holds it lets it go for that. Whoever runs or
// waits looks itself.
void SchedulerState::request_cancel(FiberRecord& fiber) noexcept {
  if (fiber.is_cancelled || fiber.stage == FiberStage::finished)
    return;
  fiber.is_cancelled = true;
  interrupt(fiber);
  if (fiber.is_held)
    leave_queue(fiber);
}

void SchedulerState::interrupt(FiberRecord& fiber) noexcept {
  resume(fiber);
  if (&fiber == current) {
    revoke_quick_yields();
  } else if (fiber.waiter != nullptr) {
    if (fiber.waiter->is_interruptible_)
      fiber.waiter->fire(WakeReason::cancelled);
  } else if (fiber.stage == FiberStage::ready && fiber.shields == 0 && fiber.by_result == 0 &&
             !fiber.yields_quietly) {
    auto*& resume = fiber.slot.context.resume;
    resume = static_cast<std::byte*>(resume) - CEDE_UNWIND_DISTANCE;
    fiber.yields_quietly = true; // it throws once
  }
}

void SchedulerState::suspend(FiberRecord& fiber) {
  fiber.is_suspended = true;
  if (&fiber == current) {
    block(fiber);
  } else if (fiber.prev != nullptr) {
    catch_up();
    ready.remove(fiber);
  }
}

void SchedulerState::resume(FiberRecord& fiber) noexcept {
  if (!fiber.is_suspended)
    return;
  fiber.is_suspended = false;
  const bool is_created = fiber.stage == FiberStage::created && !fiber.is_held;
  if (is_created || fiber.stage == FiberStage::ready)
    make_ready(fiber);
}

void SchedulerState::call_pump() noexcept {
  catch_up();
  until_service = 0;
}

void SchedulerState::end_round_with_pump(int priority) noexcept {
  if (is_pump_called)
    ready.remove(pump);
  is_pump_called = true;
  pump.priority = static_cast<std::int8_t>(priority);
  ready.push(pump);
}

void SchedulerState::reset_service() noexcept {
  until_service = dispatches_between_services(options);
}

void SchedulerState::watch_by(Heartbeat* heart) noexcept {
  heartbeat = heart;
  is_each_dispatch_seen = options.times_slices || heart != nullptr;
  revoke_quick_yields();
}

bool SchedulerState::has_work() const noexcept {
  return !ready.is_empty() || !inbox->is_empty() || graves != nullptr || failed != nullptr ||
         (!deadlines.is_empty() && deadlines.first_due(time()) != nullptr);
}

void SchedulerState::yield(FiberRecord& me) {
  FiberRecord* next = nullptr;
  end_slice(me);
  catch_up();
  ready.pass(me);
  if (is_stepping) {
    next = &pump;
  } else {
    count_dispatch(me);
    next = next_fiber();
  }
  if (next == &me)
    set_current(me);
  else
    go(me, *next);
}

void SchedulerState::yield_to(FiberRecord& me, FiberRecord& to) {
  end_slice(me);
  catch_up();
  ready.pass(me);
  count_dispatch(me);
  ready.remove(to);
  ready.push_first(to);
  if (to.stage != FiberStage::created)
    go(me, to);
  else if (start(to, nullptr))
    go(me, to);
  else if (FiberRecord* next = next_fiber(); next != &me)
    go(me, *next);
  else
    set_current(me);
}

void SchedulerState::block(FiberRecord& me) {
  end_slice(me);
  catch_up();
  ready.remove(me);
  FiberRecord* next = nullptr;
  if (!is_stepping) {
    count_dispatch(me);
    next = next_fiber();
    if (next == nullptr)
      next = poll_in_place(*this);
  }
  if (next == &me) // by an operation of its own, or the end of one that could not be started
    set_current(me);
  else
    go(me, next != nullptr ? *next : pump);
}

// Nobody may free the stack that he stands on. What is given to this thread's idle list is not
// freed: nobody else sees the list, and nothing on this thread looks at it before the departure.
// Everything else goes to the manager.
Departure SchedulerState::end(FiberRecord& me) noexcept {
  end_slice(me);
  catch_up();
  ready.remove(me);
  if (!is_stepping)
    count_dispatch(me);
  Stack& stack = *std::exchange(me.slot.stack, nullptr);
  me.slot.gate = Gate::finished;
  current = &pump; // the record may be in use again below
  --stacks;
  publish_end(me);
  if (starved != nullptr) {
    FiberRecord* first = starved;
    starved = first->next;
    first->next = nullptr;
    first->stage = FiberStage::created;
    if (!first->is_suspended)
      ready.push_first(*first);
  }

  const bool is_pump_next = is_stepping || &me == awaited;
  FiberRecord* next = is_pump_next ? &pump : ready.next();
  if (next != nullptr && can_inherit(*next, stack)) {
    start(*next, &stack);
  } else {
    const detail::ThreadBlock& block = detail::thread();
    if (stack.special == 0 && block.idle_count < block.idle_limit)
      detail::give_idle_stack(stack);
    else
      bury(stack);
    if (!is_pump_next)
      next = next_fiber();
    if (next == nullptr)
      next = &pump;
  }
  set_current(*next);
  detail::Execution ended;
  return detail::leave(ended, next->slot, nullptr);
}

void SchedulerState::run_fibers(FiberRecord& first) {
  go(pump, first);
  catch_up(); // an inlined yield may have led here
}

// While it is chosen nobody runs: what is destroyed on the way must not wait.
FiberRecord* SchedulerState::next_fiber() noexcept {
  current = &pump;
  while (FiberRecord* fiber = ready.next()) {
    if (fiber->stage != FiberStage::created)
      return fiber;
    if (fiber->is_cancelled)
      end_unrun(*fiber, Outcome::cancelled);
    else if (start(*fiber, nullptr))
      return fiber;
    else if (stacks == 0)
      end_unrun(*fiber, Outcome::no_memory);
    else {
      ready.remove(*fiber);
      FiberRecord** last = &starved;
      while (*last != nullptr)
        last = &(*last)->next;
      *last = fiber;
      fiber->next = nullptr;
      fiber->stage = FiberStage::starved;
    }
  }
  return nullptr;
}

bool SchedulerState::end_starved() noexcept {
  FiberRecord* first = starved;
  if (first == nullptr)
    return false;
  starved = std::exchange(first->next, nullptr);
  ready.push(*first);
  end_unrun(*first, first->is_cancelled ? Outcome::cancelled : Outcome::no_memory);
  return true;
}

void SchedulerState::go(FiberRecord& from, FiberRecord& to) {
  struct Hooks {
    FiberRecord* fiber;
    ~Hooks() {
      if (fiber == nullptr)
        return;
      fiber->scheduler->revoke_quick_yields(); // whoever yielded to it had some left
      enter_hooks(*fiber);
    }
  } hooks{from.is_hooked ? &from : nullptr};
  if (from.is_hooked)
    leave_hooks(from);
  set_current(to);
  detail::transfer_out_of_line(from.slot, to.slot, nullptr);
}

void SchedulerState::see_dispatch(const FiberRecord& to) noexcept {
  if (options.times_slices)
    dispatched = time();
  if (heartbeat != nullptr)
    heartbeat->beat(&to != &pump ? &to : nullptr);
}

void SchedulerState::note_end_of_slice(const FiberRecord& me) noexcept {
  note_slice(counted, me, time() - dispatched);
}

// When its turn to be served has come, the round ends in the pump: behind whoever is last on the
// ring now. Once it is called, yields are quick again until then; unless a higher priority keeps it
// from its turn.
void SchedulerState::count_dispatch(const FiberRecord& me) noexcept {
  if (--until_service >= 0)
    return;
  reset_service();
  if (!is_pump_called || pump.priority < me.priority)
    end_round_with_pump(me.priority);
}

bool SchedulerState::can_inherit(const FiberRecord& next, const Stack& stack) noexcept {
  return next.stage == FiberStage::created && !next.is_cancelled && stack.special == 0 &&
         (next.extras == nullptr || detail::are_default(stack_options_of(next)));
}

// Its stack's top holds the head of its entry from now on. `inherited` is a stack on which somebody
// still stands, who departs for this fiber next.
bool SchedulerState::start(FiberRecord& fiber, Stack* inherited) noexcept {
  Stack* stack = inherited;
  if (stack == nullptr) {
    const StackOptions asked = stack_options_of(fiber);
    stack = detail::are_default(asked) ? detail::take_idle_stack() : nullptr;
    if (stack == nullptr) {
      Result<Stack*> reserved = detail::reserve_stack(asked);
      if (!reserved)
        return false;
      stack = *reserved;
    }
  }
  auto at = reinterpret_cast<std::uintptr_t>(stack->top) - sizeof(EntryHead);
  at &= ~(std::uintptr_t{alignof(EntryHead)} - 1);
  auto* head =
      ::new (reinterpret_cast<void*>(at)) EntryHead{run_fiber, run_fiber, nullptr, &fiber.slot};
  fiber.slot.context = {head, nullptr, stack->entry, nullptr, stack->fpenv};
  fiber.slot.stack = stack;
  fiber.slot.gate = Gate::suspended;
  if (stack->special & detail::kObserved)
    detail::observe(fiber.slot, *head);
  fiber.stage = FiberStage::ready;
  ++stacks;
  return true;
}

void SchedulerState::end_unrun(FiberRecord& fiber, Outcome outcome) noexcept {
  ready.remove(fiber);
  fiber.kind->discard(fiber);
  fiber.outcome = outcome;
  publish_end(fiber);
}

// Whoever waits for the end wakes, and the fiber's own reference goes.
void SchedulerState::publish_end(FiberRecord& fiber) noexcept {
  fiber.stage = FiberStage::finished;
  --alive;
  if (fiber.extras != nullptr) {
    call_exits(fiber);
    forget_wakers(fiber);
    leave_group(fiber); // which may take its exception
    leave_limit(fiber);
  }
  fiber.joiners.wake_all();
  if (has_lost_error(fiber)) {
    fiber.next = std::exchange(failed, &fiber); // keeps the reference
    call_pump();
  } else {
    release_record(fiber);
  }
}

void SchedulerState::bury(Stack& stack) noexcept {
  stack.next = std::exchange(graves, &stack);
  call_pump();
}

} // namespace cede::core
