// SPDX-License-Identifier: MIT
// An execution that is saved or runs: the state behind a Process, and how it begins and ends.
#pragma once

#include <cede/detail/context.h>

#include <cstddef>
#include <cstdint>

namespace cede::detail {

struct Stack;
struct Suspension;

// The word that decides how a process may be left or entered. Changed by whoever switches.
enum class Gate : std::uint32_t {
  empty = 0,          // a slot: holds nothing
  running,            // what it last held runs; nothing is saved in it
  suspended,          // holds an execution, or one that has not started
  observed_running,   // the same two while a sanitizer has to be told of every switch: only the
  observed_suspended, // out-of-line transfer may leave or enter
  unwinding,          // runs and is forced to unwind: every transfer from it throws
  finished,           // its entry has ended; the stack waits to be released
};

// What a switch reads of a process is one cache line.
struct alignas(64) Execution {
  Context context; // valid while suspended
  Gate gate = Gate::empty;
  std::uint32_t unwind_throws = 0; // how often it was thrown at; it has a limit
  Stack* stack = nullptr;          // owned; null for a slot
  // While suspended by the out-of-line transfer: what that left on the suspended stack.
  Suspension* suspension = nullptr;
};

static_assert(sizeof(Execution) == 64);

// Where control goes when a process has ended. Two words, so that it is returned in registers.
struct Departure {
  Context* to;
  void* word;
};

// Stands at the first sp of a new process, in front of the callable.
struct alignas(16) EntryHead {
  // Called by cede_entry with this record and the first word. It returns to nobody: the switch goes
  // on to what it returns.
  Departure (*run)(EntryHead* head, void* word);
  // What to run once an observer has been told of the first arrival.
  Departure (*observed_run)(EntryHead* head, void* word);
  // Destroys the callable of a process that never ran.
  void (*discard)(EntryHead* head) noexcept;
  Execution* execution;
};

// What the throw of a forced unwinding is. Caught by the process's entry and by nobody else.
struct Unwind {};

// Throws Unwind in the process that this thread forces to unwind; Cancelled in the fiber that runs,
// if there is no such process.
[[noreturn]] void throw_unwind();

// Throws Cancelled in the fiber that runs. Defined by the scheduler.
[[noreturn]] void throw_cancelled();

// The transfer that checks everything and tells every observer.
void* transfer_out_of_line(Execution& from, Execution& to, void* word);

// Ends `execution`, whose entry has returned `next`, or null when it was unwound.
Departure leave_out_of_line(Execution& execution, Execution* next, void* word);

// Ends `execution` for good; control goes to `next`, which is suspended.
Departure leave(Execution& execution, Execution& next, void* word);

// Makes `execution`, which isn't empty, fit for a new process, or fails a check.
void reuse(Execution& execution) noexcept;

// Makes a new process one whose switches an observer is told of.
void observe(Execution& execution, EntryHead& head) noexcept;

// Ends whatever `execution` holds and releases its stack, or fails a check.
void destroy(Execution& execution) noexcept;

} // namespace cede::detail
