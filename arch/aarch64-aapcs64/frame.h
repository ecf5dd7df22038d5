// SPDX-License-Identifier: MIT
// The frames that switch.S builds on a stack, AArch64. High address first, offsets from the saved
// sp.
#pragma once

// What cede_switch leaves on the stack of a suspended execution. Pairs that one instruction moves
// are named by their lower register.
#define CEDE_FRAME_D14 128 // d14, d15
#define CEDE_FRAME_D12 112 // d12, d13
#define CEDE_FRAME_D10 96  // d10, d11
#define CEDE_FRAME_D8 80   // d8, d9
#define CEDE_FRAME_X28 64  // x28, and at CEDE_FRAME_RETURN x30
#define CEDE_FRAME_X26 48  // x26, x27
#define CEDE_FRAME_X24 32  // x24, x25
#define CEDE_FRAME_X22 16  // x22, x23
#define CEDE_FRAME_X20 0   // x20, x21 <- sp, 16n
#define CEDE_FRAME_BYTES 144

// The return address, signed with the sp of the call where the processor can.
#define CEDE_FRAME_RETURN 72

// What newprocess leaves for cede_entry: the head of the process's entry record.
#define CEDE_ENTRY_RUN 0 // <- sp, 16n; the function to call with sp itself and the first word

#ifndef __ASSEMBLER__
#include <cede/detail/context.h>
#include <cede/detail/execution.h>

#include <cstddef>
#include <cstdint>

namespace cede::arch {

struct SwitchFrame {
  std::uint64_t x20, x21, x22, x23, x24, x25, x26, x27, x28;
  void* return_address;
  double d8, d9, d10, d11, d12, d13, d14, d15;
};

static_assert(offsetof(SwitchFrame, x20) == CEDE_FRAME_X20);
static_assert(offsetof(SwitchFrame, x22) == CEDE_FRAME_X22);
static_assert(offsetof(SwitchFrame, x24) == CEDE_FRAME_X24);
static_assert(offsetof(SwitchFrame, x26) == CEDE_FRAME_X26);
static_assert(offsetof(SwitchFrame, x28) == CEDE_FRAME_X28);
static_assert(offsetof(SwitchFrame, return_address) == CEDE_FRAME_RETURN);
static_assert(offsetof(SwitchFrame, d8) == CEDE_FRAME_D8);
static_assert(offsetof(SwitchFrame, d10) == CEDE_FRAME_D10);
static_assert(offsetof(SwitchFrame, d12) == CEDE_FRAME_D12);
static_assert(offsetof(SwitchFrame, d14) == CEDE_FRAME_D14);
static_assert(CEDE_FRAME_RETURN == CEDE_FRAME_X28 + 8, "x28 and x30 are one pair");
static_assert(sizeof(SwitchFrame) == CEDE_FRAME_BYTES && CEDE_FRAME_BYTES % 16 == 0);
static_assert(offsetof(detail::EntryHead, run) == CEDE_ENTRY_RUN);

struct Target {
  static constexpr const char* kName = "aarch64-aapcs64";
  // FPCR: round to nearest, no flushing, no traps.
  static constexpr std::uint64_t kDefaultFpenv = 0;
  static constexpr const char* kSavedRegisters[] = {"x19", "x20", "x21", "x22", "x23", "x24", "x25",
                                                    "x26", "x27", "x28", "x29", "d8",  "d9",  "d10",
                                                    "d11", "d12", "d13", "d14", "d15", "fpcr"};
};

} // namespace cede::arch
#endif
