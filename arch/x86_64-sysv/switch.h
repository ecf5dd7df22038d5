// SPDX-License-Identifier: MIT
// The inline form of the switch, x86-64 System V (gcc and clang), and the thread's block.
// Installed as cede/detail/switch.h. switch.S, the out-of-line form, includes it for the unwind
// rules.
//
// The statement neither calls nor returns, so it costs no return prediction. It stores sp, fp, the
// base register and a resume address in the context and never pushes: the red zone below sp
// belongs to the function around it. Everything else is declared overwritten, so the compiler
// spills what is live and nothing else. rbx and rbp can't be declared (a compiler may need them to
// reach the spilled values), so they travel in the context. MXCSR's status flags are not
// callee-saved and stay out of the comparison: loading it when only they differ costs 40 ns.
#pragma once

#include <cede/detail/context.h>

// From the load of sp on, the frame to unwind is the one in the context at rsi, though the program
// counter is still here: CFA = its sp, and the registers lie in the context. DWARF: 4 is rsi, 16
// the return address; 0x0f def_cfa_expression, 0x10 expression, 0x74 breg4, 0x06 deref.
#define CEDE_CFI_TARGET                                                                            \
  .cfi_escape 0x0f, 3, 0x74, CEDE_CONTEXT_SP, 0x06;                                                \
  .cfi_escape 0x10, 6, 2, 0x74, CEDE_CONTEXT_FP;                                                   \
  .cfi_escape 0x10, 16, 2, 0x74, CEDE_CONTEXT_RESUME;                                              \
  .cfi_escape 0x10, 3, 2, 0x74, CEDE_CONTEXT_BASE;                                                 \
  .cfi_undefined 12;                                                                               \
  .cfi_undefined 13;                                                                               \
  .cfi_undefined 14;                                                                               \
  .cfi_undefined 15

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

// The address of a resumed execution is reached by an indirect jump.
#if defined(__CET__) && (__CET__ & 1)
#define CEDE_RESUME_PAD "endbr64\n\t"
#else
#define CEDE_RESUME_PAD
#endif

#ifdef __AVX512F__
#define CEDE_AVX512_CLOBBERS                                                                       \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",      \
      "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5",    \
      "k6", "k7"
#else
#define CEDE_AVX512_CLOBBERS
#endif

#if CEDE_PRESERVE_FPENV
#define CEDE_COMPARE_FPENV                                                                         \
  "movl %c[fpenv](%[from]), %%eax\n\t"                                                             \
  "xorl %c[fpenv](%[to]), %%eax\n\t"                                                               \
  "testl $0xffc0, %%eax\n\t"                                                                       \
  "jne 3f\n\t"                                                                                     \
  "movzwl %c[fpenv]+4(%[from]), %%eax\n\t"                                                         \
  "cmpw %c[fpenv]+4(%[to]), %%ax\n\t"                                                              \
  "jne 3f\n"                                                                                       \
  "4:\n\t"
#define CEDE_LOAD_FPENV                                                                            \
  "3:\n\t"                                                                                         \
  "ldmxcsr %c[fpenv](%[to])\n\t"                                                                   \
  "fldcw %c[fpenv]+4(%[to])\n\t"                                                                   \
  "jmp 4b\n\t"
#else
#define CEDE_COMPARE_FPENV
#define CEDE_LOAD_FPENV
#endif

extern "C" {
extern constinit thread_local cede::detail::ThreadBlock cede_thread;
}

namespace cede::detail {

// This thread's block, by the initial-exec sequence (ELF Handling For Thread-Local Storage, 4.4.6).
// Volatile, because a process may go on on another thread: the address is never kept over a switch.
CEDE_ALWAYS_INLINE ThreadBlock& thread() noexcept {
  ThreadBlock* block;
  asm volatile("movq cede_thread@gottpoff(%%rip), %0\n\t"
               "addq %%fs:0, %0"
               : "=r"(block));
  return *block;
}

// Saves the floating-point control in `saved`. A statement of its own, so that it can stand as
// early as possible: some processors take 15 cycles for a stmxcsr, and begin it only when what
// stands in front of it is done.
CEDE_ALWAYS_INLINE void save_fpenv([[maybe_unused]] Context& saved) noexcept {
#if CEDE_PRESERVE_FPENV
  asm volatile("stmxcsr %c[fpenv](%[saved])\n\t"
               "fnstcw %c[fpenv]+4(%[saved])"
               : "=m"(saved.fpenv)
               : [saved] "r"(&saved), [fpenv] "i"(CEDE_CONTEXT_FPENV));
#endif
}

[[noreturn]] void throw_unwind();

// Saves the rest of this execution in `saved` and goes on in `next`; returns the word that this one
// is resumed with, or throws when it is forced to unwind.
CEDE_ALWAYS_INLINE void* switch_inline(Context& saved, Context& next, void* word) {
  Context* from = &saved;
  Context* to = &next;
  asm volatile goto(
      "leaq 2f(%%rip), %%rax\n\t"
      "movq %%rsp, %c[sp](%[from])\n\t"
      "movq %%rbp, %c[fp](%[from])\n\t"
      "movq %%rbx, %c[base](%[from])\n\t"
      "movq %%rax, %c[resume](%[from])\n\t" CEDE_COMPARE_FPENV CEDE_CFI_BEGIN_TARGET
      "movq %c[sp](%[to]), %%rsp\n\t"
      "movq %c[fp](%[to]), %%rbp\n\t"
      "movq %c[base](%[to]), %%rbx\n\t"
      "jmp *%c[resume](%[to])\n\t" CEDE_CFI_END_TARGET CEDE_LOAD_FPENV
      // The second entry, CEDE_UNWIND_DISTANCE bytes: landing pad, near jump, filling. Unwinders
      // look for the rules of a resume address one byte before it: they have to be ours again.
      "int3\n\t"
      "endbr64\n\t"
      ".byte 0xe9\n\t"
      ".long %l[unwind] - 1f\n"
      "1:\n\t"
      ".skip %c[filling], 0xcc\n"
      "2:\n\t" CEDE_RESUME_PAD
      : [from] "+D"(from), [to] "+S"(to), "+d"(word)
      : [sp] "i"(CEDE_CONTEXT_SP), [fp] "i"(CEDE_CONTEXT_FP), [resume] "i"(CEDE_CONTEXT_RESUME),
        [base] "i"(CEDE_CONTEXT_BASE), [fpenv] "i"(CEDE_CONTEXT_FPENV),
        [filling] "i"(CEDE_UNWIND_DISTANCE - 9)
      : "rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)",
        "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "memory", "cc" CEDE_AVX512_CLOBBERS
      : unwind);
  return word;
unwind:
  throw_unwind();
}

} // namespace cede::detail
#endif
