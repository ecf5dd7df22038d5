// SPDX-License-Identifier: MIT
// The frames that switch.S builds on a stack, AArch64. High address first, offsets from the saved
// sp.
#pragma once

// What cede_switch leaves on the stack of a suspended execution. One instruction moves two slots,
// by the offset of the lower.
#define CEDE_FRAME_D15 136
#define CEDE_FRAME_D14 128
#define CEDE_FRAME_D13 120
#define CEDE_FRAME_D12 112
#define CEDE_FRAME_D11 104
#define CEDE_FRAME_D10 96
#define CEDE_FRAME_D9 88
#define CEDE_FRAME_D8 80
#define CEDE_FRAME_RETURN 72 // x30, signed with the sp of the call where the processor can
#define CEDE_FRAME_X28 64
#define CEDE_FRAME_X27 56
#define CEDE_FRAME_X26 48
#define CEDE_FRAME_X25 40
#define CEDE_FRAME_X24 32
#define CEDE_FRAME_X23 24
#define CEDE_FRAME_X22 16
#define CEDE_FRAME_X21 8
#define CEDE_FRAME_X20 0 // <- sp, 16n
#define CEDE_FRAME_BYTES 144

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
static_assert(offsetof(SwitchFrame, x21) == CEDE_FRAME_X21);
static_assert(offsetof(SwitchFrame, x22) == CEDE_FRAME_X22);
static_assert(offsetof(SwitchFrame, x23) == CEDE_FRAME_X23);
static_assert(offsetof(SwitchFrame, x24) == CEDE_FRAME_X24);
static_assert(offsetof(SwitchFrame, x25) == CEDE_FRAME_X25);
static_assert(offsetof(SwitchFrame, x26) == CEDE_FRAME_X26);
static_assert(offsetof(SwitchFrame, x27) == CEDE_FRAME_X27);
static_assert(offsetof(SwitchFrame, x28) == CEDE_FRAME_X28);
static_assert(offsetof(SwitchFrame, return_address) == CEDE_FRAME_RETURN);
static_assert(offsetof(SwitchFrame, d8) == CEDE_FRAME_D8);
static_assert(offsetof(SwitchFrame, d9) == CEDE_FRAME_D9);
static_assert(offsetof(SwitchFrame, d10) == CEDE_FRAME_D10);
static_assert(offsetof(SwitchFrame, d11) == CEDE_FRAME_D11);
static_assert(offsetof(SwitchFrame, d12) == CEDE_FRAME_D12);
static_assert(offsetof(SwitchFrame, d13) == CEDE_FRAME_D13);
static_assert(offsetof(SwitchFrame, d14) == CEDE_FRAME_D14);
static_assert(offsetof(SwitchFrame, d15) == CEDE_FRAME_D15);
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
