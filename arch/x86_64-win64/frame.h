// SPDX-License-Identifier: MIT
// The frames that switch.S builds on a stack, x86-64 Windows. High address first, offsets from the
// saved sp.
#pragma once

// What cede_switch leaves on the stack of a suspended execution.
#define CEDE_FRAME_RETURN 280 // return address, pushed by the call
#define CEDE_FRAME_RBX 272
#define CEDE_FRAME_RBP 264
#define CEDE_FRAME_RDI 256
#define CEDE_FRAME_RSI 248
#define CEDE_FRAME_R12 240
#define CEDE_FRAME_R13 232
#define CEDE_FRAME_R14 224
#define CEDE_FRAME_XMM15 208
#define CEDE_FRAME_XMM14 192
#define CEDE_FRAME_XMM13 176
#define CEDE_FRAME_XMM12 160
#define CEDE_FRAME_XMM11 144
#define CEDE_FRAME_XMM10 128
#define CEDE_FRAME_XMM9 112
#define CEDE_FRAME_XMM8 96
#define CEDE_FRAME_XMM7 80
#define CEDE_FRAME_XMM6 64 // 16n
#define CEDE_FRAME_R15 56
#define CEDE_FRAME_STACK_BASE 48 // what the thread information block said of this stack
#define CEDE_FRAME_STACK_LIMIT 40
#define CEDE_FRAME_DEALLOCATION_STACK 32
#define CEDE_FRAME_GUARANTEED_BYTES 24
#define CEDE_FRAME_FIBER_DATA 16
#define CEDE_FRAME_EXCEPTION_LIST 8
#define CEDE_FRAME_NOBODY 0 // <- sp, 16n; 0: the return address of who is being entered from here
#define CEDE_FRAME_BYTES 280

// What newprocess leaves for cede_entry: the head of the process's entry record.
#define CEDE_ENTRY_EXECUTION 24
#define CEDE_ENTRY_RUN 0 // <- sp, 16n; the function to call with sp itself and the first word

// What cede_entry builds below that record: for unwinders a frame of cede_switch too.
#define CEDE_START_BYTES 320
#define CEDE_START_STACK_BASE 304 // the sp of nobody: the end of the stack
#define CEDE_START_NOBODY 280     // 0: the return address; with it begins a machine frame
#define CEDE_START_DEPARTURE 32   // where `run` puts what it returns
#define CEDE_START_HOME 0         // <- sp, 16n; the callee's home space

// In an Execution and in a Stack.
#define CEDE_EXECUTION_STACK 48
#define CEDE_STACK_LOW 0
#define CEDE_STACK_BOTTOM 64

// In this slot of an empty cede_switch frame, which both ways to leave for good have, the
// processor's floating-point control is compared.
#define CEDE_LEAVE_FPENV CEDE_FRAME_R15

// The thread information block, by gs.
#define CEDE_TIB_EXCEPTION_LIST 0x00
#define CEDE_TIB_STACK_BASE 0x08
#define CEDE_TIB_STACK_LIMIT 0x10
#define CEDE_TIB_FIBER_DATA 0x20
#define CEDE_TIB_DEALLOCATION_STACK 0x1478
#define CEDE_TIB_GUARANTEED_BYTES 0x1748 // 32 bits

// The first values of a process: no registered handlers, and as much stack left for who handles an
// overflow as memory_windows.cpp keeps guard pages.
#define CEDE_FIRST_EXCEPTION_LIST -1
#define CEDE_FIRST_GUARANTEED_BYTES 0x4000

#ifndef __ASSEMBLER__
#include <cede/detail/execution.h>
#include <cede/detail/stack.h>

#include <cstddef>
#include <cstdint>

namespace cede::arch {

struct SwitchFrame {
  std::uint64_t nobody;
  std::uint64_t exception_list, fiber_data, guaranteed_bytes, deallocation_stack, stack_limit,
      stack_base;
  std::uint64_t r15;
  struct alignas(16) {
    std::uint64_t halves[2];
  } xmm[10]; // xmm6 to xmm15
  std::uint64_t r14, r13, r12, rsi, rdi, rbp, rbx;
  void* return_address;
};

static_assert(offsetof(SwitchFrame, nobody) == CEDE_FRAME_NOBODY);
static_assert(offsetof(SwitchFrame, exception_list) == CEDE_FRAME_EXCEPTION_LIST);
static_assert(offsetof(SwitchFrame, fiber_data) == CEDE_FRAME_FIBER_DATA);
static_assert(offsetof(SwitchFrame, guaranteed_bytes) == CEDE_FRAME_GUARANTEED_BYTES);
static_assert(offsetof(SwitchFrame, deallocation_stack) == CEDE_FRAME_DEALLOCATION_STACK);
static_assert(offsetof(SwitchFrame, stack_limit) == CEDE_FRAME_STACK_LIMIT);
static_assert(offsetof(SwitchFrame, stack_base) == CEDE_FRAME_STACK_BASE);
static_assert(offsetof(SwitchFrame, r15) == CEDE_FRAME_R15);
static_assert(offsetof(SwitchFrame, xmm[0]) == CEDE_FRAME_XMM6);
static_assert(offsetof(SwitchFrame, xmm[1]) == CEDE_FRAME_XMM7);
static_assert(offsetof(SwitchFrame, xmm[2]) == CEDE_FRAME_XMM8);
static_assert(offsetof(SwitchFrame, xmm[3]) == CEDE_FRAME_XMM9);
static_assert(offsetof(SwitchFrame, xmm[4]) == CEDE_FRAME_XMM10);
static_assert(offsetof(SwitchFrame, xmm[5]) == CEDE_FRAME_XMM11);
static_assert(offsetof(SwitchFrame, xmm[6]) == CEDE_FRAME_XMM12);
static_assert(offsetof(SwitchFrame, xmm[7]) == CEDE_FRAME_XMM13);
static_assert(offsetof(SwitchFrame, xmm[8]) == CEDE_FRAME_XMM14);
static_assert(offsetof(SwitchFrame, xmm[9]) == CEDE_FRAME_XMM15);
static_assert(offsetof(SwitchFrame, r14) == CEDE_FRAME_R14);
static_assert(offsetof(SwitchFrame, r13) == CEDE_FRAME_R13);
static_assert(offsetof(SwitchFrame, r12) == CEDE_FRAME_R12);
static_assert(offsetof(SwitchFrame, rsi) == CEDE_FRAME_RSI);
static_assert(offsetof(SwitchFrame, rdi) == CEDE_FRAME_RDI);
static_assert(offsetof(SwitchFrame, rbp) == CEDE_FRAME_RBP);
static_assert(offsetof(SwitchFrame, rbx) == CEDE_FRAME_RBX);
static_assert(offsetof(SwitchFrame, return_address) == CEDE_FRAME_RETURN);
static_assert(CEDE_FRAME_RETURN == CEDE_FRAME_BYTES);

// The machine frame that an interrupt pushes, as unwinders read it (x64 exception handling,
// UWOP_PUSH_MACHFRAME).
struct StartFrame {
  std::uint64_t home[4];
  detail::Departure departure;
  std::uint64_t filling[29];
  std::uint64_t ip, segment, flags, sp, stack_segment;
};

static_assert(offsetof(StartFrame, home) == CEDE_START_HOME);
static_assert(offsetof(StartFrame, departure) == CEDE_START_DEPARTURE);
static_assert(offsetof(StartFrame, ip) == CEDE_START_NOBODY);
static_assert(offsetof(StartFrame, sp) == CEDE_START_STACK_BASE);
static_assert(sizeof(StartFrame) == CEDE_START_BYTES && CEDE_START_BYTES % 16 == 0);
static_assert(CEDE_START_NOBODY == CEDE_FRAME_RETURN);

static_assert(offsetof(detail::EntryHead, run) == CEDE_ENTRY_RUN);
static_assert(offsetof(detail::EntryHead, execution) == CEDE_ENTRY_EXECUTION);
static_assert(offsetof(detail::Execution, stack) == CEDE_EXECUTION_STACK);
static_assert(offsetof(detail::Stack, low) == CEDE_STACK_LOW);
static_assert(offsetof(detail::Stack, bottom) == CEDE_STACK_BOTTOM);

struct Target {
  static constexpr const char* kName = "x86_64-win64";
  // MXCSR 0x1f80, and the x87 control word with which MinGW-w64's C runtime starts main and every
  // thread. Windows starts them with 0x027f, but this ABI's long double has a significand of 64
  // bits (GCC, IA-32/x86-64 options), which that word would round to 53.
  static constexpr std::uint64_t kDefaultFpenv = 0x037f'0000'1f80;
  // clang-format off
  static constexpr const char* kSavedRegisters[] = {
      "rbx", "rbp", "rdi", "rsi", "r12", "r13", "r14", "r15",
      "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
      "mxcsr", "x87cw",
      "StackBase", "StackLimit", "DeallocationStack", "GuaranteedStackBytes", "FiberData",
      "ExceptionList"};
  // clang-format on
};

} // namespace cede::arch
#endif
