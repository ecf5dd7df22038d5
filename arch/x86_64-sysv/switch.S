// SPDX-License-Identifier: MIT
// The out-of-line switch and the first and last instructions of a process, x86-64 System V
// (System V ABI, AMD64 supplement 1.0, 3.2.1 registers, 3.2.2 stack frame, 3.2.3 parameters).
//
// Callee saves    rbx rbp r12-r15 rsp, MXCSR bits 15:6, x87 control word. Caller saves the rest.
// Not saved       MXCSR's status flags and the x87 status word (caller-saved); fs and gs (the
//                 thread's); the upper vector registers (caller-saved); DF (clear at every call).
// Alignment       16n at a call, so 16n + 8 at the first instruction of what is called.
// Return          cede_switch is entered by a call and left by a ret: the processor predicts returns
//                 by pairing them with calls, and one jump in place of a ret spoils the prediction
//                 of every frame above. The word travels in rdx, the two contexts in rdi and rsi, as
//                 in the inline form, with which the executions are interchangeable.

#include <cede/detail/config.h>
#include <cede/detail/context.h>

#include "../asm.h"
#include "frame.h"
#include "switch.h"

// Goes on if the floating-point control of the context at rsi is that of the processor, which the
// macro's first form also stores at rdi; else loads it at the label given.
.macro COMPARE_FPENV stored, differ
  movl CEDE_CONTEXT_FPENV(%rsi), %eax
  xorl \stored, %eax
  testl $0xffc0, %eax
  jne \differ
  movzwl CEDE_CONTEXT_FPENV + 4(%rsi), %eax
  cmpw 4 + \stored, %ax
  jne \differ
.endm

.macro LOAD_FPENV
  ldmxcsr CEDE_CONTEXT_FPENV(%rsi)
  fldcw CEDE_CONTEXT_FPENV + 4(%rsi)
.endm

// Leaves for the context at rsi.
.macro GO
  .cfi_remember_state
  CEDE_CFI_TARGET
  movq CEDE_CONTEXT_SP(%rsi), %rsp
  movq CEDE_CONTEXT_FP(%rsi), %rbp
  movq CEDE_CONTEXT_BASE(%rsi), %rbx
  jmpq *CEDE_CONTEXT_RESUME(%rsi)
  .cfi_restore_state
.endm

.macro RESTORE_FRAME
  movq CEDE_FRAME_R12(%rsp), %r12
  .cfi_restore %r12
  movq CEDE_FRAME_R13(%rsp), %r13
  .cfi_restore %r13
  movq CEDE_FRAME_R14(%rsp), %r14
  .cfi_restore %r14
  movq CEDE_FRAME_R15(%rsp), %r15
  .cfi_restore %r15
  addq $CEDE_FRAME_BYTES, %rsp
  .cfi_def_cfa_offset 8 // not relative: clang 14 counts on from before a .cfi_restore_state
.endm

// void* cede_switch(Context* from, Context* to, void* word)
// Saves the caller in *from and goes on in *to; returns the word that *from is resumed with.
//   rdi from   rsi to   rdx word
CEDE_BEGIN(cede_switch)
#if CEDE_PRESERVE_FPENV
  // First, since it takes the longest.
  stmxcsr CEDE_CONTEXT_FPENV(%rdi)
  fnstcw CEDE_CONTEXT_FPENV + 4(%rdi)
#endif

  subq $CEDE_FRAME_BYTES, %rsp
  .cfi_adjust_cfa_offset CEDE_FRAME_BYTES
  movq %r12, CEDE_FRAME_R12(%rsp)
  .cfi_rel_offset %r12, CEDE_FRAME_R12
  movq %r13, CEDE_FRAME_R13(%rsp)
  .cfi_rel_offset %r13, CEDE_FRAME_R13
  movq %r14, CEDE_FRAME_R14(%rsp)
  .cfi_rel_offset %r14, CEDE_FRAME_R14
  movq %r15, CEDE_FRAME_R15(%rsp)
  .cfi_rel_offset %r15, CEDE_FRAME_R15

  leaq .Lresume(%rip), %rax
  movq %rsp, CEDE_CONTEXT_SP(%rdi)
  movq %rbp, CEDE_CONTEXT_FP(%rdi)
  movq %rbx, CEDE_CONTEXT_BASE(%rdi)
  movq %rax, CEDE_CONTEXT_RESUME(%rdi)

#if CEDE_PRESERVE_FPENV
  COMPARE_FPENV CEDE_CONTEXT_FPENV(%rdi), .Lswitch_differ
#endif
.Lswitch_go:
  GO

#if CEDE_PRESERVE_FPENV
.Lswitch_differ:
  LOAD_FPENV
  jmp .Lswitch_go
#endif

  // The second entry, CEDE_UNWIND_DISTANCE bytes: landing pad, near jump, filling. Unwinders look for
  // the rules of a resume address one byte before it: there they have to be this side's again.
  int3
.Lunwind:
  endbr64
  .byte 0xe9
  .long .Lthrow - 1f
1:
  .skip CEDE_UNWIND_DISTANCE - (1b - .Lunwind), 0xcc
.Lresume:
  CEDE_LANDING_PAD
  .cfi_remember_state
  RESTORE_FRAME
  movq %rdx, %rax
  ret

  // As if the caller had called it, so that it throws there.
.Lthrow:
  .cfi_restore_state
  RESTORE_FRAME
  jmp cede_throw_unwind
CEDE_END(cede_switch)

// Where a new process starts. It calls the function at the head of the entry record that sp points
// to, and leaves for what that returns. Unwinders, also those that follow frame pointers, end here;
// the personality is asked about an exception that nobody below has caught, and names the process.
//   rsp the entry record   rdx word
CEDE_BEGIN_OUTERMOST(cede_entry)
  .cfi_personality 0x1b, cede_entry_personality
  .hidden cede_entry_personality // else the pc-relative reference could not be part of a shared object
  xorl %ebp, %ebp
  movq %rsp, %rdi
  movq %rdx, %rsi
  callq *CEDE_ENTRY_RUN(%rsp)
  movq %rax, %rsi
  jmp .Lleave
CEDE_END(cede_entry)

// [[noreturn]] void cede_leave(Context* to, void* word)
// Goes on in *to and saves nothing. The frame of the caller is as good as gone.
//   rdi to   rsi word
CEDE_BEGIN_OUTERMOST(cede_leave)
  movq %rsi, %rdx
  movq %rdi, %rsi
.Lleave:
#if CEDE_PRESERVE_FPENV
  stmxcsr CEDE_LEAVE_FPENV(%rsp)
  fnstcw CEDE_LEAVE_FPENV + 4(%rsp)
  COMPARE_FPENV CEDE_LEAVE_FPENV(%rsp), .Lleave_differ
#endif
.Lleave_go:
  GO

#if CEDE_PRESERVE_FPENV
.Lleave_differ:
  LOAD_FPENV
  jmp .Lleave_go
#endif
CEDE_END(cede_leave)

CEDE_END_OF_FILE
