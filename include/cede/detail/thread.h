// SPDX-License-Identifier: MIT
// What the inlined parts of cede keep for each OS thread, and how they reach it.
#pragma once

#include <cede/detail/config.h>

#include <cstdint>

namespace cede::detail {

struct Dispatch;
struct Execution;
struct FiberValues;
struct Stack;
struct Suspension;

// The C++ runtime's exception globals of a thread: how __cxa_get_globals' memory begins, in
// libstdc++ and libc++abi alike (Itanium C++ ABI, Exception Handling, 2.2.2).
struct ExceptionGlobals {
  void* caught = nullptr;
  unsigned uncaught = 0;
};

struct ThreadBlock {
  // This thread's globals; until a thread is known they are others, which are never empty, so that
  // its first switch goes out of line.
  ExceptionGlobals* exceptions;
  // Stacks of the default size that this thread released last, newest first.
  Stack* idle;
  std::uint32_t idle_count;
  std::uint32_t idle_limit;
  // What this thread is forcing to unwind, on the way to its throw.
  Execution* unwinding;
  // What the last observed switch left on the stack it came from; null after a process has ended.
  Suspension* left;
  // The scheduler that is driven on this thread, or one that runs nothing.
  Dispatch* dispatch;
  // Its FiberLocals; null if it has none.
  FiberValues* values;
  // Where the next select begins to look follows from it.
  std::uint32_t select_turn = 0;
};

} // namespace cede::detail

#if CEDE_INLINE_SWITCH
#include <cede/detail/switch.h>
#else
namespace cede::detail {
ThreadBlock& thread() noexcept;
}
#endif
