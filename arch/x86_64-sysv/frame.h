// SPDX-License-Identifier: MIT
// The frames that switch.S builds on a stack, x86-64 System V. High address first, offsets from
// the saved sp.
#pragma once

// What cede_switch leaves on the stack of a suspended execution.
#define CEDE_FRAME_RETURN 32 // return address, pushed by the call
#define CEDE_FRAME_R12 24
#define CEDE_FRAME_R13 16
#define CEDE_FRAME_R14 8
#define CEDE_FRAME_R15 0 // <- sp, 16n + 8
#define CEDE_FRAME_BYTES 32

// What newprocess leaves for cede_entry: the head of the process's entry record.
#define CEDE_ENTRY_RUN 0 // <- sp, 16n; the function to call with sp itself and the first word

// Where cede_leave puts the processor's floating-point control to compare it: in the red zone.
#define CEDE_LEAVE_FPENV -8 // offset from its sp

#ifndef __ASSEMBLER__
#include <cede/detail/execution.h>

#include <cstddef>
#include <cstdint>

namespace cede::arch {

struct SwitchFrame {
  std::uint64_t r15, r14, r13, r12;
  void* return_address;
};

static_assert(offsetof(SwitchFrame, r15) == CEDE_FRAME_R15);
static_assert(offsetof(SwitchFrame, r14) == CEDE_FRAME_R14);
static_assert(offsetof(SwitchFrame, r13) == CEDE_FRAME_R13);
static_assert(offsetof(SwitchFrame, r12) == CEDE_FRAME_R12);
static_assert(offsetof(SwitchFrame, return_address) == CEDE_FRAME_RETURN);
static_assert(CEDE_FRAME_RETURN == CEDE_FRAME_BYTES);
static_assert(offsetof(detail::EntryHead, run) == CEDE_ENTRY_RUN);

struct Target {
  static constexpr const char* kName = "x86_64-sysv";
  // MXCSR 0x1f80 and x87 control word 0x037f (ABI, 3.4.1, initial register state).
  static constexpr std::uint64_t kDefaultFpenv = 0x037f'0000'1f80;
  static constexpr const char* kSavedRegisters[] = {"rbx", "rbp", "r12",   "r13",
                                                    "r14", "r15", "mxcsr", "x87cw"};
};

} // namespace cede::arch
#endif
