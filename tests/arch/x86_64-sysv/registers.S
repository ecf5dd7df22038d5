// SPDX-License-Identifier: MIT
// For tests of code that compilers make: calls a function with known values in every callee-saved
// register, and compares them afterwards.

#include "../../../arch/asm.h"

#define SEED 0 // offset from sp during the call
#define LOCAL_BYTES 24

.macro PUSH register
  pushq %\register
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %\register, 0
.endm

.macro POP register
  popq %\register
  .cfi_adjust_cfa_offset -8
  .cfi_restore %\register
.endm

.macro FILL register, number
  leaq \number * 0x1001(%rdx), %\register
.endm

// Sets bit `number` of eax unless the register still holds its value.
.macro COMPARE register, number
  leaq \number * 0x1001(%rdx), %rcx
  xorl %esi, %esi
  cmpq %rcx, %\register
  setne %sil
  shll $\number, %esi
  orl %esi, %eax
.endm

// unsigned cede_call_filled(void (*function)(void*), void* argument, uint64_t seed)
// Calls function(argument) with register i of rbx, rbp, r12 to r15 set to seed + i * 0x1001. Bit i
// of the answer is set if it had another value afterwards.
//   rdi function   rsi argument   rdx seed
CEDE_BEGIN(cede_call_filled)
  PUSH rbx
  PUSH rbp
  PUSH r12
  PUSH r13
  PUSH r14
  PUSH r15
  subq $LOCAL_BYTES, %rsp
  .cfi_adjust_cfa_offset LOCAL_BYTES
  movq %rdx, SEED(%rsp)
  FILL rbx, 0
  FILL rbp, 1
  FILL r12, 2
  FILL r13, 3
  FILL r14, 4
  FILL r15, 5
  movq %rdi, %rax
  movq %rsi, %rdi
  call *%rax
  movq SEED(%rsp), %rdx
  xorl %eax, %eax
  COMPARE rbx, 0
  COMPARE rbp, 1
  COMPARE r12, 2
  COMPARE r13, 3
  COMPARE r14, 4
  COMPARE r15, 5
  addq $LOCAL_BYTES, %rsp
  .cfi_adjust_cfa_offset -LOCAL_BYTES
  POP r15
  POP r14
  POP r13
  POP r12
  POP rbp
  POP rbx
  ret
CEDE_END(cede_call_filled)

CEDE_END_OF_FILE
