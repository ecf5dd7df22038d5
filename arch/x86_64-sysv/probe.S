// SPDX-License-Identifier: MIT
// For tests: fills every register that the ABI makes callee-saved, switches, and compares.

#include <cede/detail/config.h>

#include "../asm.h"

#define SEED 0        // offsets from sp while the probe runs
#define CONTROL 8     // MXCSR and x87 control word that were set
#define CONTROL_NOW 16
#define CALLERS 24    // the caller's MXCSR and control word
#define LOCAL_BYTES 40

// Values for the registers, each a different one for each seed.
#define VALUE(number) number * 0x1001

.macro FILL register, number
  leaq VALUE(\number)(%rdx), %\register
.endm

// Sets bit `number` of eax unless the register still holds its value.
.macro COMPARE register, number
  movq SEED(%rsp), %rcx
  leaq VALUE(\number)(%rcx), %rcx
  xorl %edx, %edx
  cmpq %rcx, %\register
  setne %dl
  shll $\number, %edx
  orl %edx, %eax
.endm

// unsigned cede_probe(Context* from, Context* to, uint64_t seed)
// Calls cede_switch(from, to, nullptr) with each register of Target::kSavedRegisters set to a value
// made from `seed`; bit i of the answer is set if register i had another when it returned. Without
// CEDE_PRESERVE_FPENV the control words are left alone.
//   rdi from   rsi to   rdx seed
CEDE_BEGIN(cede_probe)
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbp, 0
  pushq %r12
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r12, 0
  pushq %r13
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r13, 0
  pushq %r14
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r14, 0
  pushq %r15
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r15, 0
  subq $LOCAL_BYTES, %rsp
  .cfi_adjust_cfa_offset LOCAL_BYTES

  movq %rdx, SEED(%rsp)
#if CEDE_PRESERVE_FPENV
  // Another rounding mode for each seed.
  stmxcsr CALLERS(%rsp)
  fnstcw CALLERS + 4(%rsp)
  movl %edx, %eax
  andl $3, %eax
  movl %eax, %ecx
  shll $13, %eax
  orl $0x1f80, %eax
  shll $10, %ecx
  orl $0x037f, %ecx
  movl %eax, CONTROL(%rsp)
  movw %cx, CONTROL + 4(%rsp)
  ldmxcsr CONTROL(%rsp)
  fldcw CONTROL + 4(%rsp)
#endif
  FILL rbx, 0
  FILL rbp, 1
  FILL r12, 2
  FILL r13, 3
  FILL r14, 4
  FILL r15, 5
  xorl %edx, %edx
  call cede_switch

  xorl %eax, %eax
  COMPARE rbx, 0
  COMPARE rbp, 1
  COMPARE r12, 2
  COMPARE r13, 3
  COMPARE r14, 4
  COMPARE r15, 5
#if CEDE_PRESERVE_FPENV
  stmxcsr CONTROL_NOW(%rsp)
  fnstcw CONTROL_NOW + 4(%rsp)
  movl CONTROL(%rsp), %ecx
  xorl CONTROL_NOW(%rsp), %ecx
  xorl %edx, %edx
  testl $0xffc0, %ecx
  setne %dl
  shll $6, %edx
  orl %edx, %eax
  movzwl CONTROL + 4(%rsp), %ecx
  xorl %edx, %edx
  cmpw CONTROL_NOW + 4(%rsp), %cx
  setne %dl
  shll $7, %edx
  orl %edx, %eax
  ldmxcsr CALLERS(%rsp)
  fldcw CALLERS + 4(%rsp)
#endif

  addq $LOCAL_BYTES, %rsp
  .cfi_adjust_cfa_offset -LOCAL_BYTES
  popq %r15
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r15
  popq %r14
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r14
  popq %r13
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r13
  popq %r12
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r12
  popq %rbp
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbp
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  ret
CEDE_END(cede_probe)

CEDE_END_OF_FILE
