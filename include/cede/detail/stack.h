// SPDX-License-Identifier: MIT
// A stack as the inlined parts of cede see it: the block at its top, and the way to get and to
// give back a default one without a call.
#pragma once

#include <cede/detail/compiler.h>
#include <cede/detail/thread.h>
#include <cede/result.h>
#include <cede/stack.h>

#include <cstddef>
#include <cstdint>

namespace cede::detail {

struct Execution;
struct Slab;

// Why a stack must not be taken or released inline.
enum Special : std::uint32_t {
  kUsersMemory = 1, // not ours to keep
  kOtherSize = 2,   // belongs to another pool than the default one
  kNamed = 4,       // the name has to be forgotten
  kPainted = 8,     // every page is touched
  kObserved = 16,   // a sanitizer has to be told
};

// Lies at the highest address of the stack it describes, so that it costs no page of its own.
// Owned by the process that holds it, by one idle list, or by nobody while its slot is cold.
struct Stack {
  // set when the slot is carved or the user's memory is adopted
  std::byte* low;      // lowest usable byte
  std::byte* top;      // where the first frame goes: below this block by the stack's colour
  Slab* slab;          // null for memory of the user's
  void* entry;         // cede_entry: where a new process resumes
  std::uint64_t fpenv; // the floating-point control of a new process: the ABI's default
  std::uint32_t slot;
  // set by the owner
  std::uint32_t special; // a set of Special; 0 may be taken and released inline
  Stack* next;           // on a list: the next one
  Execution* unwinder;   // while its process is forced to unwind: where control goes at the end
  std::byte* bottom;     // set with `low`: what the system takes for the lowest address
  void* tsan_fiber;      // ThreadSanitizer's name for its process
  unsigned valgrind_id;  // valgrind's name for it, where there is a process
  char name[32];

  std::byte* high() noexcept { return reinterpret_cast<std::byte*>(this); }
};

// A stack for `options`, from an idle list or newly carved.
//   Fails     no_memory, mapping_limit, invalid_argument
Result<Stack*> reserve_stack(const StackOptions& options);
void release_stack(Stack& stack) noexcept;

inline bool are_default(const StackOptions& options) noexcept {
  return options.bytes == 0 && options.memory.data() == nullptr && options.name.empty() &&
         !options.paint;
}

CEDE_ALWAYS_INLINE Stack* take_idle_stack() noexcept {
  ThreadBlock& block = thread();
  Stack* stack = block.idle;
  if (stack != nullptr) [[likely]] {
    block.idle = stack->next;
    --block.idle_count;
  }
  return stack;
}

CEDE_ALWAYS_INLINE void give_idle_stack(Stack& stack) noexcept {
  ThreadBlock& block = thread();
  if (stack.special != 0 || block.idle_count >= block.idle_limit) [[unlikely]] {
    release_stack(stack);
    return;
  }
  stack.next = block.idle;
  block.idle = &stack;
  ++block.idle_count;
}

} // namespace cede::detail
