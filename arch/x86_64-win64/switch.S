// SPDX-License-Identifier: MIT
// The switch and the first and last instructions of a process, x86-64 Windows (Microsoft, x64
// calling convention; x64 exception handling). There is no inline form.
//
// Callee saves    rbx rbp rdi rsi r12-r15 rsp, xmm6-xmm15, MXCSR bits 15:6, x87 control word. Caller
//                 saves the rest.
// And the block   of the thread (TIB): the bounds of its stack, which the system and stack probes
//                 look at, the bytes guaranteed to a handler of overflow, the fiber, the list of
//                 handlers. Each side saves them in its own frame and loads its own: StackLimit
//                 moves while a thread's own stack grows.
// Not saved       MXCSR's status flags and the x87 status word (caller-saved); upper halves of ymm
//                 and zmm (caller-saved); fiber-local storage and the activation context (they stay
//                 the thread's); DF (clear at every call).
// Alignment       16n at a call, so 16n + 8 at the first instruction of what is called. The caller
//                 leaves 32 bytes of home space above the return address.
// Return          by a ret, for the call that entered: see x86_64-sysv/switch.S.
// Unwind data     describes an sp that moves by known steps only. So all of an execution lies in its
//                 frame, rbx and rbp too, and it is its own side of the switch that loads sp: an
//                 unwinder finds a whole frame of cede_switch, the one left or the one resumed, at
//                 every instruction. Context::fp and Context::base are not used. Where a process
//                 starts or ends, it finds return address 0, the end of the stack.

#include <cede/detail/config.h>
#include <cede/detail/context.h>

#include "../asm.h"
#include "frame.h"

// Goes on if the floating-point control of the context at rdx is that of the processor, stored at
// `stored`; else loads it at the label given.
.macro COMPARE_FPENV stored, differ
  movl CEDE_CONTEXT_FPENV(%rdx), %eax
  xorl \stored, %eax
  testl $0xffc0, %eax
  jne \differ
  movzwl CEDE_CONTEXT_FPENV + 4(%rdx), %eax
  cmpw 4 + \stored, %ax
  jne \differ
.endm

.macro LOAD_FPENV
  ldmxcsr CEDE_CONTEXT_FPENV(%rdx)
  fldcw CEDE_CONTEXT_FPENV + 4(%rdx)
.endm

// Leaves for the context at rdx, which finds that still in rdx, loads sp itself, and takes the word
// from r8.
.macro GO
  jmpq *CEDE_CONTEXT_RESUME(%rdx)
.endm

.macro SAVE register, slot
  movq %\register, \slot(%rsp)
  .seh_savereg %\register, \slot
.endm

.macro SAVE_XMM register, slot
  movaps %\register, \slot(%rsp)
  .seh_savexmm %\register, \slot
.endm

.macro SAVE_TIB field, slot
  movq %gs:\field, %rax
  movq %rax, \slot(%rsp)
.endm

.macro LOAD_TIB field, slot
  movq \slot(%rsp), %rax
  movq %rax, %gs:\field
.endm

// The other half of cede_switch, from the context at rdx. What is loaded stays in the frame as well,
// so it remains right for unwinders until sp leaves it.
.macro RESTORE_FRAME
  movq CEDE_CONTEXT_SP(%rdx), %rsp
  LOAD_TIB CEDE_TIB_STACK_BASE, CEDE_FRAME_STACK_BASE
  LOAD_TIB CEDE_TIB_STACK_LIMIT, CEDE_FRAME_STACK_LIMIT
  LOAD_TIB CEDE_TIB_DEALLOCATION_STACK, CEDE_FRAME_DEALLOCATION_STACK
  movl CEDE_FRAME_GUARANTEED_BYTES(%rsp), %eax
  movl %eax, %gs:CEDE_TIB_GUARANTEED_BYTES
  LOAD_TIB CEDE_TIB_FIBER_DATA, CEDE_FRAME_FIBER_DATA
  LOAD_TIB CEDE_TIB_EXCEPTION_LIST, CEDE_FRAME_EXCEPTION_LIST
  movaps CEDE_FRAME_XMM6(%rsp), %xmm6
  movaps CEDE_FRAME_XMM7(%rsp), %xmm7
  movaps CEDE_FRAME_XMM8(%rsp), %xmm8
  movaps CEDE_FRAME_XMM9(%rsp), %xmm9
  movaps CEDE_FRAME_XMM10(%rsp), %xmm10
  movaps CEDE_FRAME_XMM11(%rsp), %xmm11
  movaps CEDE_FRAME_XMM12(%rsp), %xmm12
  movaps CEDE_FRAME_XMM13(%rsp), %xmm13
  movaps CEDE_FRAME_XMM14(%rsp), %xmm14
  movaps CEDE_FRAME_XMM15(%rsp), %xmm15
  movq CEDE_FRAME_RBX(%rsp), %rbx
  movq CEDE_FRAME_RBP(%rsp), %rbp
  movq CEDE_FRAME_RDI(%rsp), %rdi
  movq CEDE_FRAME_RSI(%rsp), %rsi
  movq CEDE_FRAME_R12(%rsp), %r12
  movq CEDE_FRAME_R13(%rsp), %r13
  movq CEDE_FRAME_R14(%rsp), %r14
  movq CEDE_FRAME_R15(%rsp), %r15
.endm

// void* cede_switch(Context* from, Context* to, void* word)
// Saves the caller in *from and goes on in *to; returns the word that *from is resumed with.
//   rcx from   rdx to   r8 word
CEDE_BEGIN(cede_switch)
  subq $CEDE_FRAME_BYTES, %rsp
  .seh_stackalloc CEDE_FRAME_BYTES
  SAVE rbx, CEDE_FRAME_RBX
  SAVE rbp, CEDE_FRAME_RBP
  SAVE rdi, CEDE_FRAME_RDI
  SAVE rsi, CEDE_FRAME_RSI
  SAVE r12, CEDE_FRAME_R12
  SAVE r13, CEDE_FRAME_R13
  SAVE r14, CEDE_FRAME_R14
  SAVE r15, CEDE_FRAME_R15
  SAVE_XMM xmm6, CEDE_FRAME_XMM6
  SAVE_XMM xmm7, CEDE_FRAME_XMM7
  SAVE_XMM xmm8, CEDE_FRAME_XMM8
  SAVE_XMM xmm9, CEDE_FRAME_XMM9
  SAVE_XMM xmm10, CEDE_FRAME_XMM10
  SAVE_XMM xmm11, CEDE_FRAME_XMM11
  SAVE_XMM xmm12, CEDE_FRAME_XMM12
  SAVE_XMM xmm13, CEDE_FRAME_XMM13
  SAVE_XMM xmm14, CEDE_FRAME_XMM14
  SAVE_XMM xmm15, CEDE_FRAME_XMM15
  .seh_endprologue
  SAVE_TIB CEDE_TIB_STACK_BASE, CEDE_FRAME_STACK_BASE
  SAVE_TIB CEDE_TIB_STACK_LIMIT, CEDE_FRAME_STACK_LIMIT
  SAVE_TIB CEDE_TIB_DEALLOCATION_STACK, CEDE_FRAME_DEALLOCATION_STACK
  movl %gs:CEDE_TIB_GUARANTEED_BYTES, %eax
  movl %eax, CEDE_FRAME_GUARANTEED_BYTES(%rsp)
  SAVE_TIB CEDE_TIB_FIBER_DATA, CEDE_FRAME_FIBER_DATA
  SAVE_TIB CEDE_TIB_EXCEPTION_LIST, CEDE_FRAME_EXCEPTION_LIST
  movq $0, CEDE_FRAME_NOBODY(%rsp)

  leaq .Lresume(%rip), %rax
  movq %rsp, CEDE_CONTEXT_SP(%rcx)
  movq %rax, CEDE_CONTEXT_RESUME(%rcx)

#if CEDE_PRESERVE_FPENV
  stmxcsr CEDE_CONTEXT_FPENV(%rcx)
  fnstcw CEDE_CONTEXT_FPENV + 4(%rcx)
  COMPARE_FPENV CEDE_CONTEXT_FPENV(%rcx), .Lswitch_differ
#endif
.Lswitch_go:
  GO

#if CEDE_PRESERVE_FPENV
.Lswitch_differ:
  LOAD_FPENV
  jmp .Lswitch_go
#endif

  // The second entry, CEDE_UNWIND_DISTANCE bytes: near jump, filling.
.Lunwind:
  .byte 0xe9
  .long .Lthrow - 1f
1:
  .skip CEDE_UNWIND_DISTANCE - (1b - .Lunwind), 0xcc
.Lresume:
  RESTORE_FRAME
  movq %r8, %rax
  addq $CEDE_FRAME_BYTES, %rsp
  ret

  // As if the caller had called it, in its home space, so that it throws there.
.Lthrow:
  RESTORE_FRAME
  addq $CEDE_FRAME_BYTES, %rsp
  jmp cede_throw_unwind
CEDE_END(cede_switch)

// Where a new process starts, sp still on the stack of whoever enters it, whose 0 there is the
// return address for an unwinder. It calls the function at the head of the entry record with that
// and the word, and leaves for what it returns: a Departure, 16 bytes, which this ABI returns in
// memory of the caller's, by its address as a first argument before the others.
// The machine frame ends the stack for unwinders: return address 0, and an sp at StackBase, past
// which none looks. The handler is asked about an exception that nobody below has caught.
//   rdx the context, whose sp is the entry record   r8 word
CEDE_BEGIN(cede_entry)
  .seh_handler cede_entry_handler, @except
  movq CEDE_CONTEXT_SP(%rdx), %rcx
  movq CEDE_ENTRY_EXECUTION(%rcx), %rax
  movq CEDE_EXECUTION_STACK(%rax), %rax
  movq $0, CEDE_START_NOBODY - CEDE_START_BYTES(%rcx)
  movq %rax, CEDE_START_STACK_BASE - CEDE_START_BYTES(%rcx)
  leaq -CEDE_START_BYTES(%rcx), %rsp
  .seh_pushframe
  .seh_stackalloc CEDE_START_NOBODY
  .seh_endprologue
  // The block at a stack's high end stands where its usable part ends.
  movq %rax, %gs:CEDE_TIB_STACK_BASE
  movq CEDE_STACK_LOW(%rax), %rdx
  movq %rdx, %gs:CEDE_TIB_STACK_LIMIT
  movq CEDE_STACK_BOTTOM(%rax), %rdx
  movq %rdx, %gs:CEDE_TIB_DEALLOCATION_STACK
  movl $CEDE_FIRST_GUARANTEED_BYTES, %gs:CEDE_TIB_GUARANTEED_BYTES
  movq $CEDE_FIRST_EXCEPTION_LIST, %gs:CEDE_TIB_EXCEPTION_LIST
  // FiberData stays: to the system, the thread's fiber goes on here.

  movq %rcx, %rdx
  leaq CEDE_START_DEPARTURE(%rsp), %rcx
  callq *CEDE_ENTRY_RUN(%rdx)
  movq CEDE_START_DEPARTURE(%rsp), %rdx
  movq CEDE_START_DEPARTURE + 8(%rsp), %r8
  jmp .Lleave
CEDE_END(cede_entry)

// [[noreturn]] void cede_leave(Context* to, void* word)
// Goes on in *to and saves nothing. The frame of the caller is as good as gone, so its return
// address is overwritten. It leaves from a frame like those of cede_switch, for unwinders at the first
// instruction of who is resumed.
//   rcx to   rdx word
CEDE_BEGIN(cede_leave)
  movq %rdx, %r8
  movq %rcx, %rdx
  movq $0, (%rsp)
  subq $CEDE_FRAME_BYTES, %rsp
  .seh_stackalloc CEDE_FRAME_BYTES
  .seh_endprologue
.Lleave:
  movq $0, CEDE_FRAME_NOBODY(%rsp)
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
