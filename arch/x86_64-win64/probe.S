// SPDX-License-Identifier: MIT
// For tests: fills every register that the ABI makes callee-saved, and the fields of the thread
// information block that can be filled, switches, and compares.

#include <cede/detail/config.h>

#include "../asm.h"
#include "frame.h"

// Offsets from sp while the probe runs, above the home space.
#define SEED 32
#define CONTROL 40 // MXCSR and x87 control word that were set
#define CONTROL_NOW 48
#define CALLERS 56 // the caller's MXCSR and control word
#define CALLERS_GUARANTEED_BYTES 64
#define CALLERS_FIBER_DATA 72
#define EXCEPTION_LIST 80 // what the block says on this stack
#define STACK_BASE 88
#define STACK_LIMIT 96
#define DEALLOCATION_STACK 104
#define CALLERS_XMM6 112 // to xmm15
#define LOCAL_BYTES 280

// Values for the registers, each a different one for each seed.
#define VALUE(number) number * 0x1001

.macro FILL register, number
  leaq VALUE(\number)(%r8), %\register
.endm

// Both halves.
.macro FILL_XMM register, number
  leaq VALUE(\number)(%r8), %rax
  movq %rax, %\register
  punpcklqdq %\register, %\register
.endm

// Sets bit `number` of eax if the flags say "not equal".
.macro NOTE number
  setne %dl
  movzbl %dl, %edx
  shll $\number, %edx
  orl %edx, %eax
.endm

// Sets bit `number` of eax unless the register still holds its value.
.macro COMPARE register, number
  movq SEED(%rsp), %rcx
  leaq VALUE(\number)(%rcx), %rcx
  cmpq %rcx, %\register
  NOTE \number
.endm

.macro COMPARE_XMM register, number
  movq SEED(%rsp), %rcx
  leaq VALUE(\number)(%rcx), %rcx
  movq %rcx, %xmm0
  punpcklqdq %xmm0, %xmm0
  pcmpeqb %\register, %xmm0
  pmovmskb %xmm0, %ecx
  cmpl $0xffff, %ecx
  NOTE \number
.endm

.macro FILL_TIB field, number, callers
  movq %gs:\field, %rax
  movq %rax, \callers(%rsp)
  leaq VALUE(\number)(%r8), %rax
  movq %rax, %gs:\field
.endm

.macro COMPARE_TIB field, number, callers
  movq %gs:\field, %r10
  COMPARE r10, \number
  movq \callers(%rsp), %rcx
  movq %rcx, %gs:\field
.endm

// The bounds and the handlers can't be others than this stack's: the system looks at them, also when
// a process that waits here is unwound.
.macro REMEMBER_TIB field, slot
  movq %gs:\field, %rax
  movq %rax, \slot(%rsp)
.endm

.macro COMPARE_REMEMBERED_TIB field, number, slot
  movq %gs:\field, %rcx
  cmpq \slot(%rsp), %rcx
  NOTE \number
.endm

.macro PUSH register
  pushq %\register
  .seh_pushreg %\register
.endm

.macro SAVE_XMM register, slot
  movaps %\register, \slot(%rsp)
  .seh_savexmm %\register, \slot
.endm

// unsigned cede_probe(Context* from, Context* to, uint64_t seed)
// Calls cede_switch(from, to, nullptr) with each register of Target::kSavedRegisters set to a value
// made from `seed`; bit i of the answer is set if register i had another when it returned. Without
// CEDE_PRESERVE_FPENV the control words are left alone.
//   rcx from   rdx to   r8 seed
CEDE_BEGIN(cede_probe)
  PUSH rbx
  PUSH rbp
  PUSH rdi
  PUSH rsi
  PUSH r12
  PUSH r13
  PUSH r14
  PUSH r15
  subq $LOCAL_BYTES, %rsp
  .seh_stackalloc LOCAL_BYTES
  SAVE_XMM xmm6, CALLERS_XMM6
  SAVE_XMM xmm7, CALLERS_XMM6 + 16
  SAVE_XMM xmm8, CALLERS_XMM6 + 32
  SAVE_XMM xmm9, CALLERS_XMM6 + 48
  SAVE_XMM xmm10, CALLERS_XMM6 + 64
  SAVE_XMM xmm11, CALLERS_XMM6 + 80
  SAVE_XMM xmm12, CALLERS_XMM6 + 96
  SAVE_XMM xmm13, CALLERS_XMM6 + 112
  SAVE_XMM xmm14, CALLERS_XMM6 + 128
  SAVE_XMM xmm15, CALLERS_XMM6 + 144
  .seh_endprologue

  movq %r8, SEED(%rsp)
  movq %rcx, %r10
#if CEDE_PRESERVE_FPENV
  // Another rounding mode for each seed.
  stmxcsr CALLERS(%rsp)
  fnstcw CALLERS + 4(%rsp)
  movl %r8d, %eax
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
  FILL rdi, 2
  FILL rsi, 3
  FILL r12, 4
  FILL r13, 5
  FILL r14, 6
  FILL r15, 7
  FILL_XMM xmm6, 8
  FILL_XMM xmm7, 9
  FILL_XMM xmm8, 10
  FILL_XMM xmm9, 11
  FILL_XMM xmm10, 12
  FILL_XMM xmm11, 13
  FILL_XMM xmm12, 14
  FILL_XMM xmm13, 15
  FILL_XMM xmm14, 16
  FILL_XMM xmm15, 17
  REMEMBER_TIB CEDE_TIB_STACK_BASE, STACK_BASE
  REMEMBER_TIB CEDE_TIB_STACK_LIMIT, STACK_LIMIT
  REMEMBER_TIB CEDE_TIB_DEALLOCATION_STACK, DEALLOCATION_STACK
  movl %gs:CEDE_TIB_GUARANTEED_BYTES, %eax
  movl %eax, CALLERS_GUARANTEED_BYTES(%rsp)
  leal VALUE(23)(%r8), %eax
  movl %eax, %gs:CEDE_TIB_GUARANTEED_BYTES
  FILL_TIB CEDE_TIB_FIBER_DATA, 24, CALLERS_FIBER_DATA
  REMEMBER_TIB CEDE_TIB_EXCEPTION_LIST, EXCEPTION_LIST
  movq %r10, %rcx
  xorl %r8d, %r8d
  call cede_switch

  xorl %eax, %eax
  COMPARE rbx, 0
  COMPARE rbp, 1
  COMPARE rdi, 2
  COMPARE rsi, 3
  COMPARE r12, 4
  COMPARE r13, 5
  COMPARE r14, 6
  COMPARE r15, 7
  COMPARE_XMM xmm6, 8
  COMPARE_XMM xmm7, 9
  COMPARE_XMM xmm8, 10
  COMPARE_XMM xmm9, 11
  COMPARE_XMM xmm10, 12
  COMPARE_XMM xmm11, 13
  COMPARE_XMM xmm12, 14
  COMPARE_XMM xmm13, 15
  COMPARE_XMM xmm14, 16
  COMPARE_XMM xmm15, 17
#if CEDE_PRESERVE_FPENV
  stmxcsr CONTROL_NOW(%rsp)
  fnstcw CONTROL_NOW + 4(%rsp)
  movl CONTROL(%rsp), %ecx
  xorl CONTROL_NOW(%rsp), %ecx
  testl $0xffc0, %ecx
  NOTE 18
  movzwl CONTROL + 4(%rsp), %ecx
  cmpw CONTROL_NOW + 4(%rsp), %cx
  NOTE 19
  ldmxcsr CALLERS(%rsp)
  fldcw CALLERS + 4(%rsp)
#endif
  COMPARE_REMEMBERED_TIB CEDE_TIB_STACK_BASE, 20, STACK_BASE
  COMPARE_REMEMBERED_TIB CEDE_TIB_STACK_LIMIT, 21, STACK_LIMIT
  COMPARE_REMEMBERED_TIB CEDE_TIB_DEALLOCATION_STACK, 22, DEALLOCATION_STACK
  movl SEED(%rsp), %ecx
  leal VALUE(23)(%rcx), %ecx
  cmpl %gs:CEDE_TIB_GUARANTEED_BYTES, %ecx
  NOTE 23
  movl CALLERS_GUARANTEED_BYTES(%rsp), %ecx
  movl %ecx, %gs:CEDE_TIB_GUARANTEED_BYTES
  COMPARE_TIB CEDE_TIB_FIBER_DATA, 24, CALLERS_FIBER_DATA
  COMPARE_REMEMBERED_TIB CEDE_TIB_EXCEPTION_LIST, 25, EXCEPTION_LIST

  movaps CALLERS_XMM6(%rsp), %xmm6
  movaps CALLERS_XMM6 + 16(%rsp), %xmm7
  movaps CALLERS_XMM6 + 32(%rsp), %xmm8
  movaps CALLERS_XMM6 + 48(%rsp), %xmm9
  movaps CALLERS_XMM6 + 64(%rsp), %xmm10
  movaps CALLERS_XMM6 + 80(%rsp), %xmm11
  movaps CALLERS_XMM6 + 96(%rsp), %xmm12
  movaps CALLERS_XMM6 + 112(%rsp), %xmm13
  movaps CALLERS_XMM6 + 128(%rsp), %xmm14
  movaps CALLERS_XMM6 + 144(%rsp), %xmm15
  addq $LOCAL_BYTES, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rsi
  popq %rdi
  popq %rbp
  popq %rbx
  ret
CEDE_END(cede_probe)

CEDE_END_OF_FILE
