// SPDX-License-Identifier: MIT
// The out-of-line switch and the first and last instructions of a process, AArch64
// (Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1 general registers, 6.1.2 SIMD and
// floating point, 6.4.5 stack).
//
// Callee saves    x19-x28 x29 sp, the low halves of v8-v15 (d8-d15); FPCR's control bits, which only
//                 functions made for that may change. x30 is the return address.
// Not saved       x18 (the platform's: never written), tpidr_el0 (the thread's), FPSR (status, and
//                 caller-saved), the upper parts of v8-v15, the SVE registers (caller-saved in a call
//                 to a function like this). SME is not supported: leave streaming mode and ZA before
//                 a switch.
// Alignment       sp is 16n at all times.
// Return          cede_switch is entered by a call and left by a ret: the processor predicts returns
//                 by pairing them with calls, and one jump in place of a ret spoils the prediction
//                 of every frame above. The return address is signed while it lies in memory, as
//                 -mbranch-protection has it: paciasp and autiasp are no-ops on processors without
//                 keys, which belong to the program, so a process may move between threads. The word
//                 travels in x2, the two contexts in x0 and x1, as in the inline form, with which
//                 the executions are interchangeable.

#include <cede/detail/config.h>
#include <cede/detail/context.h>

#include "../asm.h"
#include "frame.h"
#include "switch.h"

// Goes on if `current`, the processor's floating-point control, is that of the context at x1; else
// goes to the label given, with x10 what to write.
.macro COMPARE_FPENV current, differ
  ldr x10, [x1, CEDE_CONTEXT_FPENV]
  cmp \current, x10
  b.ne \differ
.endm

// Leaves for the context at x1. Through x17, from which both kinds of landing pad can be reached.
.macro GO
  .cfi_remember_state
  CEDE_CFI_TARGET
  ldp x17, x19, [x1, CEDE_CONTEXT_RESUME]
  ldp x9, x29, [x1, CEDE_CONTEXT_SP]
  mov sp, x9
  br x17
  .cfi_restore_state
.endm

.macro SAVE_PAIR first, second, offset
  stp \first, \second, [sp, \offset]
  .cfi_rel_offset \first, \offset
  .cfi_rel_offset \second, \offset + 8
.endm

.macro RESTORE_PAIR first, second, offset
  ldp \first, \second, [sp, \offset]
  .cfi_restore \first
  .cfi_restore \second
.endm

.macro RESTORE_FRAME
  RESTORE_PAIR x20, x21, CEDE_FRAME_X20
  RESTORE_PAIR x22, x23, CEDE_FRAME_X22
  RESTORE_PAIR x24, x25, CEDE_FRAME_X24
  RESTORE_PAIR x26, x27, CEDE_FRAME_X26
  RESTORE_PAIR x28, x30, CEDE_FRAME_X28
  RESTORE_PAIR d8, d9, CEDE_FRAME_D8
  RESTORE_PAIR d10, d11, CEDE_FRAME_D10
  RESTORE_PAIR d12, d13, CEDE_FRAME_D12
  RESTORE_PAIR d14, d15, CEDE_FRAME_D14
  add sp, sp, CEDE_FRAME_BYTES
  .cfi_def_cfa_offset 0 // not relative: clang 14 counts on from before a .cfi_restore_state
  autiasp
  .cfi_negate_ra_state
.endm

// void* cede_switch(Context* from, Context* to, void* word)
// Saves the caller in *from and goes on in *to; returns the word that *from is resumed with.
//   x0 from   x1 to   x2 word
CEDE_BEGIN(cede_switch)
  paciasp
  .cfi_negate_ra_state
  sub sp, sp, CEDE_FRAME_BYTES
  .cfi_adjust_cfa_offset CEDE_FRAME_BYTES
  SAVE_PAIR x20, x21, CEDE_FRAME_X20
  SAVE_PAIR x22, x23, CEDE_FRAME_X22
  SAVE_PAIR x24, x25, CEDE_FRAME_X24
  SAVE_PAIR x26, x27, CEDE_FRAME_X26
  SAVE_PAIR x28, x30, CEDE_FRAME_X28
  SAVE_PAIR d8, d9, CEDE_FRAME_D8
  SAVE_PAIR d10, d11, CEDE_FRAME_D10
  SAVE_PAIR d12, d13, CEDE_FRAME_D12
  SAVE_PAIR d14, d15, CEDE_FRAME_D14

  mov x9, sp
  adr x10, .Lresume
  stp x9, x29, [x0, CEDE_CONTEXT_SP]
  stp x10, x19, [x0, CEDE_CONTEXT_RESUME]

#if CEDE_PRESERVE_FPENV
  mrs x9, fpcr
  str x9, [x0, CEDE_CONTEXT_FPENV]
  COMPARE_FPENV x9, .Lswitch_differ
#endif
.Lswitch_go:
  GO

#if CEDE_PRESERVE_FPENV
.Lswitch_differ:
  msr fpcr, x10
  b .Lswitch_go
#endif

  // The second entry, CEDE_UNWIND_DISTANCE bytes: landing pad, jump, filling. Unwinders look for
  // the rules of a resume address one byte before it: there they have to be this side's again.
  brk 0
.Lunwind:
  bti j
  b .Lthrow
  .skip CEDE_UNWIND_DISTANCE - (. - .Lunwind)
.Lresume:
  bti j
  .cfi_remember_state
  RESTORE_FRAME
  mov x0, x2
  ret

  // As if the caller had called it, so that it throws there.
.Lthrow:
  .cfi_restore_state
  RESTORE_FRAME
  b cede_throw_unwind
CEDE_END(cede_switch)

// Where a new process starts. It calls the function at the head of the entry record that sp points
// to, and leaves for what that returns. Unwinders, also those that follow frame pointers, end here;
// the personality is asked about an exception that nobody below has caught, and names the process.
//   sp the entry record   x2 word
CEDE_BEGIN_OUTERMOST(cede_entry)
  .cfi_personality 0x1b, cede_entry_personality
  .hidden cede_entry_personality // else the pc-relative reference could not be part of a shared object
  mov x29, xzr
  mov x0, sp
  mov x1, x2
  ldr x9, [sp, CEDE_ENTRY_RUN]
  blr x9
  mov x2, x1
  mov x1, x0
  b .Lleave
CEDE_END(cede_entry)

// [[noreturn]] void cede_leave(Context* to, void* word)
// Goes on in *to and saves nothing. The frame of the caller is as good as gone.
//   x0 to   x1 word
CEDE_BEGIN_OUTERMOST(cede_leave)
  mov x2, x1
  mov x1, x0
.Lleave:
#if CEDE_PRESERVE_FPENV
  mrs x9, fpcr
  COMPARE_FPENV x9, .Lleave_differ
#endif
.Lleave_go:
  GO

#if CEDE_PRESERVE_FPENV
.Lleave_differ:
  msr fpcr, x10
  b .Lleave_go
#endif
CEDE_END(cede_leave)

CEDE_END_OF_FILE
