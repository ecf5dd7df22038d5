// SPDX-License-Identifier: MIT
// The slow fallback for a processor that nobody has ported yet: POSIX ucontext, which makes a
// system call each switch. Chosen only by asking for it (-DCEDE_TARGET=generic-ucontext).
#pragma once

#include <cede/detail/execution.h>

#include <cstdint>
#include <ucontext.h>

namespace cede::arch {

// What cede_switch leaves on the stack of a suspended execution; Context::sp points to it.
struct SwitchFrame {
  ucontext_t machine;
  void* word = nullptr;      // what it is resumed with
  bool is_to_unwind = false; // it was resumed at its second entry
};

struct Target {
  static constexpr const char* kName = "generic-ucontext";
  // ucontext carries the floating-point environment itself.
  static constexpr std::uint64_t kDefaultFpenv = 0;
  // swapcontext keeps what the ABI asks for; from C++ only this can be looked at.
  static constexpr const char* kSavedRegisters[] = {"rounding mode"};
};

} // namespace cede::arch
