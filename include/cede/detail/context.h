// SPDX-License-Identifier: MIT
// A saved execution as every target and both forms of the switch see it. Public only because a
// Process holds one. The layout block is read by the assembler too.
#pragma once

//      offset                role in a saved execution                 resumed by
#define CEDE_CONTEXT_SP 0      // stack pointer                         the switch
#define CEDE_CONTEXT_FP 8      // frame pointer                         the switch
#define CEDE_CONTEXT_RESUME 16 // address at which it goes on           the switch
#define CEDE_CONTEXT_BASE                                                                          \
  24 // the register a compiler may reserve   the switch
     // to reach locals: rbx, x19
#define CEDE_CONTEXT_FPENV                                                                         \
  32 // floating-point control: MXCSR and x87 the switch, if it differs
     // control word, FPCR

// This many bytes in front of every resume address stands a second entry, which throws in the
// resumed execution instead of going on in it. Registers are loaded for it as for the first.
#define CEDE_UNWIND_DISTANCE 12

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

namespace cede::detail {

struct Context {
  void* sp = nullptr;
  void* fp = nullptr;
  void* resume = nullptr;
  void* base = nullptr;
  std::uint64_t fpenv = 0;
};

static_assert(offsetof(Context, sp) == CEDE_CONTEXT_SP);
static_assert(offsetof(Context, fp) == CEDE_CONTEXT_FP);
static_assert(offsetof(Context, resume) == CEDE_CONTEXT_RESUME);
static_assert(offsetof(Context, base) == CEDE_CONTEXT_BASE);
static_assert(offsetof(Context, fpenv) == CEDE_CONTEXT_FPENV);
static_assert(sizeof(Context) == 40);

} // namespace cede::detail
#endif
