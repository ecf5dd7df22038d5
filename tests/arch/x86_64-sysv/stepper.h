// SPDX-License-Identifier: MIT
// Single-steps the code under test and lets the unwinder loose at every instruction of it. The
// processor's trap flag belongs to the thread, so it stays set over transfers between processes.
#pragma once

#include <cede/detail/context.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unwind.h>

// Calls function(argument) with register i of rbx, rbp, r12 to r15 set to seed + i * 0x1001. Bit i
// of the answer is set if it had another value afterwards. The frame has right unwind data.
extern "C" unsigned cede_call_filled(void (*function)(void*), void* argument, std::uint64_t seed);

namespace cede::test {

inline constexpr std::size_t kKeptRegisters = 6; // rbx, rbp, r12 to r15
using KeptRegisters = std::array<std::uint64_t, kKeptRegisters>;

// A frame as the unwinder sees it.
struct Frame {
  std::uintptr_t ip;
  std::uintptr_t function; // where the function of `ip` begins; 0 if unknown
  std::uintptr_t sp;
  KeptRegisters registers;
};

// What was found before an instruction was executed.
struct Step {
  static constexpr std::size_t kMostFrames = 16;
  std::uintptr_t pc;
  std::uintptr_t function;
  std::uintptr_t sp;
  KeptRegisters registers;
  detail::Context context; // what rsi points to, if it is a pointer
  std::size_t depth;       // frames from `pc` on, itself included
  Frame frames[kMostFrames];
  Frame last;
  _Unwind_Reason_Code reason;
};

// Which instructions to look at: those of the functions that begin here, and those of the range.
struct StepRange {
  std::array<std::uintptr_t, 4> functions{};
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// False where the processor's trap flag is not to be had: an emulator, a tool.
bool can_step();

// From start_steps() to stop_steps() every instruction of the range is recorded.
void start_steps(const StepRange& range);
std::span<const Step> stop_steps();

// The beginning of the function that `ip` lies in, by unwind data.
std::uintptr_t function_of(std::uintptr_t ip);

} // namespace cede::test
