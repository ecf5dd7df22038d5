// SPDX-License-Identifier: MIT
// The out-of-line half of the switch: what checks, what observers and the C++ runtime need, forced
// unwinding and the end. Never instrumented, since it runs while a sanitizer is between two stacks.
#include <cede/process.h>

#include "../os/memory.h"
#include "check.h"
#include "sanitizers.h"
#include "target.h"
#include "thread.h"

#include <utility>

namespace cede::detail {

// On the stack of an execution that the out-of-line transfer has suspended.
struct Suspension {
  ExceptionGlobals exceptions;
  core::Identity identity;
  void* fake_stack = nullptr;
};

namespace {

constexpr std::uint32_t kMostUnwindThrows = 1000;

void check_leaving(const Execution& from) noexcept {
  CEDE_CHECK(from.gate != Gate::suspended && from.gate != Gate::observed_suspended,
             "transfer from a process that holds an execution: it would be lost");
  CEDE_CHECK(from.gate != Gate::finished, "transfer from a process that has finished");
}

void check_entering(const Execution& to) noexcept {
  CEDE_CHECK(to.gate != Gate::empty, "transfer to an empty process");
  CEDE_CHECK(to.gate != Gate::finished, "transfer to a process that has finished");
  CEDE_CHECK(to.gate == Gate::suspended || to.gate == Gate::observed_suspended,
             "transfer to a process that runs, or to oneself");
}

core::Identity identity_of(const Execution& to) noexcept {
  if (to.suspension != nullptr)
    return to.suspension->identity;
  Stack& stack = *to.stack;
  return {stack.low, static_cast<std::size_t>(stack.high() - stack.low), stack.tsan_fiber};
}

// The first things that a resumed execution does.
void arrive(Execution& self, Suspension& left_behind) noexcept {
  self.suspension = nullptr;
  if (core::are_switches_observed()) {
    Suspension* left = thread().left;
    core::tell_of_arrival(left_behind.fake_stack, left != nullptr ? &left->identity : nullptr);
  }
  *thread().exceptions = left_behind.exceptions;
}

// Every execution is entered with the exception globals empty, as the fast path leaves them; what
// was in them waits on the stack that they belong to.
void* switch_fully(Execution& from, Execution& to, void* word) noexcept(false) {
  core::enter_thread();
  ThreadBlock& block = thread();
  Suspension here;
  here.exceptions = std::exchange(*block.exceptions, {});
  from.suspension = &here;
  if (core::are_switches_observed()) {
    here.identity = core::current_identity();
    from.gate = Gate::observed_suspended;
    block.left = &here;
    core::tell_of_switch(&here.fake_stack, identity_of(to));
  } else {
    from.gate = Gate::suspended;
  }
  word = cede_switch(&from.context, &to.context, word);
  arrive(from, here);
  return word;
}

Gate running_gate() noexcept {
  return core::are_switches_observed() ? Gate::observed_running : Gate::running;
}

bool is_created(const Execution& execution) noexcept {
  return execution.stack != nullptr && execution.context.resume == execution.stack->entry;
}

// Resumes `execution` at its second entry, and returns when its entry has ended.
void unwind(Execution& execution) noexcept {
  Execution here;
  execution.stack->unwinder = &here;
  execution.context.resume =
      static_cast<std::byte*>(execution.context.resume) - CEDE_UNWIND_DISTANCE;
  execution.gate = Gate::unwinding;
  thread().unwinding = &execution;
  switch_fully(here, execution, nullptr);
  CEDE_CHECK(execution.gate == Gate::finished, "a process that was being destroyed is left");
}

Departure run_observed(EntryHead* head, void* word) {
  Suspension* left = thread().left;
  core::tell_of_arrival(nullptr, left != nullptr ? &left->identity : nullptr);
  return head->observed_run(head, word);
}

} // namespace

void* transfer_out_of_line(Execution& from, Execution& to, void* word) {
  if (is_plain_switch(thread(), from, to)) [[likely]] {
    from.gate = Gate::suspended;
    to.gate = Gate::running;
    return cede_switch(&from.context, &to.context, word);
  }
  if (from.gate == Gate::unwinding) {
    CEDE_CHECK(++from.unwind_throws < kMostUnwindThrows,
               "a process that is being destroyed swallows the exception and transfers on");
    throw Unwind{};
  }
  check_leaving(from);
  check_entering(to);
  to.gate = running_gate();
  return switch_fully(from, to, word);
}

[[noreturn]] void throw_unwind() {
  Execution* destroyed = std::exchange(thread().unwinding, nullptr);
  Execution& execution = destroyed != nullptr ? *destroyed : thread().dispatch->current->slot;
  if (execution.suspension != nullptr)
    arrive(execution, *execution.suspension);
  if (destroyed != nullptr)
    throw Unwind{};
  throw_cancelled();
}

Departure leave_out_of_line(Execution& execution, Execution* next, void* word) {
  if (execution.gate == Gate::unwinding) {
    next = execution.stack->unwinder;
  } else {
    CEDE_CHECK(next != nullptr, "a process that nobody destroys was unwound");
    check_entering(*next);
  }
  return leave(execution, *next, word);
}

Departure leave(Execution& execution, Execution& next, void* word) {
  execution.gate = Gate::finished;
  next.gate = running_gate();
  if (core::are_switches_observed()) {
    thread().left = nullptr;
    core::tell_of_switch(nullptr, identity_of(next));
    cede_leave(&next.context, word);
  }
  return {&next.context, word};
}

void reuse(Execution& execution) noexcept {
  CEDE_CHECK(execution.gate == Gate::finished,
             "newprocess on a process that runs or holds an execution");
  give_idle_stack(*execution.stack);
  execution.stack = nullptr;
  execution.gate = Gate::empty;
  execution.unwind_throws = 0;
}

void observe(Execution& execution, EntryHead& head) noexcept {
  head.run = run_observed;
  execution.gate = Gate::observed_suspended;
}

void destroy(Execution& execution) noexcept {
  if (execution.gate == Gate::suspended || execution.gate == Gate::observed_suspended) {
    CEDE_CHECK(execution.stack != nullptr,
               "a slot was destroyed while it held an execution: nobody could resume it");
    if (is_created(execution)) {
      auto* head = static_cast<EntryHead*>(execution.context.sp);
      head->discard(head);
    } else {
      auto* sp = static_cast<std::byte*>(execution.context.sp);
      CEDE_CHECK(sp >= execution.stack->low && sp < execution.stack->high(),
                 "a process was destroyed that holds an execution on another's stack");
      unwind(execution);
    }
  } else if (execution.stack != nullptr) {
    CEDE_CHECK(execution.gate == Gate::finished,
               "a process was destroyed while its stack is in use");
  }
  if (execution.stack != nullptr)
    give_idle_stack(*execution.stack);
  execution.stack = nullptr;
  execution.gate = Gate::empty;
}

} // namespace cede::detail

extern "C" [[noreturn]] void cede_throw_unwind() {
  cede::detail::throw_unwind();
}

namespace cede {

Process::State Process::state() const noexcept {
  using detail::Gate;
  switch (execution_.gate) {
  case Gate::empty:
    return State::empty;
  case Gate::suspended:
  case Gate::observed_suspended:
    return detail::is_created(execution_) ? State::created : State::suspended;
  case Gate::finished:
    return State::finished;
  default:
    return State::running;
  }
}

} // namespace cede
