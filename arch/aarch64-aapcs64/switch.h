// SPDX-License-Identifier: MIT
// The inline form of the switch, AArch64 (gcc and clang), and the thread's block. Installed as
// cede/detail/switch.h. switch.S, the out-of-line form, includes it for the unwind rules.
//
// The statement neither calls nor returns, so it costs no return prediction. It stores sp, fp, the
// base register and a resume address in the context. Everything else is declared overwritten, so
// the compiler spills what is live and nothing else. x29 can't be declared, and x19 may be what a
// compiler reaches the spilled values by, so they travel in the context. x18 is declared although
// no switch ever writes it: where the platform leaves it to the compiler (Linux), it is the one
// register left, and values would be kept in it. FPCR is compared before it is written, since the
// write drains the pipeline; it has no status flags (those are FPSR's).
//
// The jump goes through x17: from there it may arrive at either kind of landing pad, `bti c` at
// cede_entry and `bti j` at a resume address (Arm Architecture Reference Manual, PSTATE.BTYPE).
#pragma once

#include <cede/detail/context.h>

// From the first load on, the frame to unwind is the one in the context at x1, though the program
// counter is still here: CFA = its sp, and the registers lie in the context. Its resume address is
// not signed, whether or not the return address of the function around is: RA_SIGN_STATE becomes
// CFA + 0, which is even. (A val_expression would say so more directly, but libgcc of gcc 12.2
// takes the parity of its address for the state; negating would have to know the state.) DWARF for
// AArch64: 1 is x1, 30 the return address, 34 RA_SIGN_STATE, 72 to 79 d8 to d15; 0x0f
// def_cfa_expression, 0x10 expression, 0x14 val_offset, 0x71 breg1, 0x06 deref.
#define CEDE_CFI_TARGET                                                                            \
  .cfi_escape 0x0f, 3, 0x71, CEDE_CONTEXT_SP, 0x06;                                                \
  .cfi_escape 0x10, 29, 2, 0x71, CEDE_CONTEXT_FP;                                                  \
  .cfi_escape 0x10, 30, 2, 0x71, CEDE_CONTEXT_RESUME;                                              \
  .cfi_escape 0x10, 19, 2, 0x71, CEDE_CONTEXT_BASE;                                                \
  .cfi_escape 0x14, 34, 0;                                                                         \
  .cfi_undefined 20;                                                                               \
  .cfi_undefined 21;                                                                               \
  .cfi_undefined 22;                                                                               \
  .cfi_undefined 23;                                                                               \
  .cfi_undefined 24;                                                                               \
  .cfi_undefined 25;                                                                               \
  .cfi_undefined 26;                                                                               \
  .cfi_undefined 27;                                                                               \
  .cfi_undefined 28;                                                                               \
  .cfi_undefined 72;                                                                               \
  .cfi_undefined 73;                                                                               \
  .cfi_undefined 74;                                                                               \
  .cfi_undefined 75;                                                                               \
  .cfi_undefined 76;                                                                               \
  .cfi_undefined 77;                                                                               \
  .cfi_undefined 78;                                                                               \
  .cfi_undefined 79

#ifndef __ASSEMBLER__
#include <cede/detail/compiler.h>
#include <cede/detail/config.h>
#include <cede/detail/thread.h>

#define CEDE_TEXT_OF(...) #__VA_ARGS__
#define CEDE_TEXT(...) CEDE_TEXT_OF(__VA_ARGS__)

#ifdef __GCC_HAVE_DWARF2_CFI_ASM
#define CEDE_CFI_BEGIN_TARGET ".cfi_remember_state\n\t" CEDE_TEXT(CEDE_CFI_TARGET) "\n\t"
#define CEDE_CFI_END_TARGET ".cfi_restore_state\n\t"
#else
#define CEDE_CFI_BEGIN_TARGET
#define CEDE_CFI_END_TARGET
#endif

// `bti j`, by the number that every assembler takes. Only code that was compiled for it lies on
// guarded pages.
#ifdef __ARM_FEATURE_BTI_DEFAULT
#define CEDE_RESUME_PAD "hint 36\n\t"
#else
#define CEDE_RESUME_PAD
#endif

// The vector registers' upper parts go with v0 to v31.
#ifdef __ARM_FEATURE_SVE
#define CEDE_SVE_CLOBBERS                                                                          \
  , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", \
      "p15"
#else
#define CEDE_SVE_CLOBBERS
#endif

#if CEDE_PRESERVE_FPENV
#define CEDE_COMPARE_FPENV                                                                         \
  "mrs x9, fpcr\n\t"                                                                               \
  "str x9, [%[from], %c[fpenv]]\n\t"                                                               \
  "ldr x10, [%[to], %c[fpenv]]\n\t"                                                                \
  "cmp x9, x10\n\t"                                                                                \
  "b.ne 3f\n"                                                                                      \
  "4:\n\t"
#define CEDE_LOAD_FPENV                                                                            \
  "3:\n\t"                                                                                         \
  "msr fpcr, x10\n\t"                                                                              \
  "b 4b\n\t"
#else
#define CEDE_COMPARE_FPENV
#define CEDE_LOAD_FPENV
#endif

extern "C" {
extern constinit thread_local cede::detail::ThreadBlock cede_thread;
}

namespace cede::detail {

// This thread's block, by the initial-exec sequence (ELF for the Arm 64-bit Architecture, TLS).
// Volatile, because a process may go on on another thread: the address is never kept over a switch.
CEDE_ALWAYS_INLINE ThreadBlock& thread() noexcept {
  ThreadBlock* block;
  std::uint64_t offset;
  asm volatile("adrp %1, :gottprel:cede_thread\n\t"
               "ldr %1, [%1, :gottprel_lo12:cede_thread]\n\t"
               "mrs %0, tpidr_el0\n\t"
               "add %0, %0, %1"
               : "=r"(block), "=&r"(offset));
  return *block;
}

// The statement below reads FPCR when it compares it: that is quick here.
CEDE_ALWAYS_INLINE void save_fpenv(Context&) noexcept {}

[[noreturn]] void throw_unwind();

// The statement moves these as pairs, and the second entry is three instructions.
static_assert(CEDE_CONTEXT_FP == CEDE_CONTEXT_SP + 8);
static_assert(CEDE_CONTEXT_BASE == CEDE_CONTEXT_RESUME + 8);
static_assert(CEDE_UNWIND_DISTANCE == 12);

// Saves this execution in `saved` and goes on in `next`; returns the word that this one is resumed
// with, or throws when it is forced to unwind.
CEDE_ALWAYS_INLINE void* switch_inline(Context& saved, Context& next, void* word) {
  register Context* from asm("x0") = &saved;
  register Context* to asm("x1") = &next;
  register void* carried asm("x2") = word;
  asm volatile goto(
      "mov x9, sp\n\t"
      "adr x10, 2f\n\t"
      "stp x9, x29, [%[from], %c[sp]]\n\t"
      "stp x10, x19, [%[from], %c[resume]]\n\t" CEDE_COMPARE_FPENV CEDE_CFI_BEGIN_TARGET
      "ldp x17, x19, [%[to], %c[resume]]\n\t"
      "ldp x9, x29, [%[to], %c[sp]]\n\t"
      "mov sp, x9\n\t"
      "br x17\n\t" CEDE_CFI_END_TARGET CEDE_LOAD_FPENV
      // The second entry, CEDE_UNWIND_DISTANCE bytes: landing pad, jump, filling. Unwinders look
      // for the rules of a resume address one byte before it: there they have to be ours again.
      "brk 0\n\t"
      "hint 36\n\t"
      "b %l[unwind]\n\t"
      "brk 0\n"
      "2:\n\t" CEDE_RESUME_PAD
      : [from] "+r"(from), [to] "+r"(to), [word] "+r"(carried)
      :
      [sp] "i"(CEDE_CONTEXT_SP), [resume] "i"(CEDE_CONTEXT_RESUME), [fpenv] "i"(CEDE_CONTEXT_FPENV)
      : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x18", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0",
        "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
        "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
        "v28", "v29", "v30", "v31", "memory", "cc" CEDE_SVE_CLOBBERS
      : unwind);
  return carried;
unwind:
  throw_unwind();
}

} // namespace cede::detail
#endif
