// SPDX-License-Identifier: MIT
// What AddressSanitizer, ThreadSanitizer, LeakSanitizer and valgrind have to be told of stacks and
// switches. They are found at run time, so one library serves programs with and without them. This
// file and its .cpp are the only place that knows them. Layer core.
#pragma once

#include <cede/detail/execution.h>
#include <cede/detail/stack.h>

#include <cstddef>

namespace cede::core {

// How a sanitizer knows the two sides of a switch.
struct Identity {
  const std::byte* low = nullptr;
  std::size_t bytes = 0;
  void* tsan_fiber = nullptr;
};

// Whether a sanitizer is in this program, so that every switch has to go out of line.
bool are_switches_observed() noexcept;

// The thread's own stack runs, and its processes will; and the thread ends, perhaps in a process,
// where its cancellation has left it.
void tell_of_new_thread() noexcept;
void tell_of_ended_thread() noexcept;

// Whether somebody wants to know of every process, so that no stack may be taken inline.
bool are_processes_observed() noexcept;

// A stack was taken for a new process, or released by an ended one.
void tell_of_new_process(detail::Stack& stack) noexcept;
void tell_of_ended_process(detail::Stack& stack) noexcept;

// What runs now; its stack limits may be unknown still.
Identity current_identity() noexcept;

// Straight before the switch, in a function that is not instrumented. `fake_stack` receives what
// tell_of_arrival() needs when the execution goes on; null if it never does.
void tell_of_switch(void** fake_stack, const Identity& to) noexcept;

// Straight after it. Where control came from is stored in `from`, if that is not null.
void tell_of_arrival(void* fake_stack, Identity* from) noexcept;

// The first byte of [low, high) that isn't `value`; `high` if all are. It may read what observers
// hold for unreadable: redzones, and what lies below the stack pointer of a suspended process.
const std::byte* skip_bytes(const std::byte* low, const std::byte* high, std::byte value) noexcept;

// Whether valgrind runs the program.
bool runs_on_valgrind() noexcept;

} // namespace cede::core
