// SPDX-License-Identifier: MIT
// For tests: fills every register that the ABI makes callee-saved, switches, and compares.

#include <cede/detail/config.h>

#include "../asm.h"

#define SEED 176         // offsets from sp while the probe runs
#define CONTROL 184      // FPCR that was set
#define CALLERS 192      // the caller's FPCR
#define FRAME_BYTES 208  // below those, the caller's registers

// x9 = the value for the register of this number: another one for each seed, in both halves.
.macro VALUE number
  ldr x9, [sp, SEED]
  mov x10, \number << 16
  add x9, x9, x10
  mov x10, 0x0101010101010101
  mul x9, x9, x10
.endm

.macro FILL register, number
  VALUE \number
  mov \register, x9
.endm

.macro FILL_DOUBLE register, number
  VALUE \number
  fmov \register, x9
.endm

// Sets bit `number` of w0 unless the register still holds its value.
.macro COMPARE register, number
  VALUE \number
  cmp \register, x9
  cset w10, ne
  orr w0, w0, w10, lsl \number
.endm

.macro COMPARE_DOUBLE register, number
  fmov x11, \register
  COMPARE x11, \number
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

// unsigned cede_probe(Context* from, Context* to, uint64_t seed)
// Calls cede_switch(from, to, nullptr) with each register of Target::kSavedRegisters set to a value
// made from `seed`; bit i of the answer is set if register i had another when it returned. Without
// CEDE_PRESERVE_FPENV the control register is left alone.
//   x0 from   x1 to   x2 seed
CEDE_BEGIN(cede_probe)
  paciasp
  .cfi_negate_ra_state
  sub sp, sp, FRAME_BYTES
  .cfi_adjust_cfa_offset FRAME_BYTES
  SAVE_PAIR x29, x30, 0
  SAVE_PAIR x19, x20, 16
  SAVE_PAIR x21, x22, 32
  SAVE_PAIR x23, x24, 48
  SAVE_PAIR x25, x26, 64
  SAVE_PAIR x27, x28, 80
  SAVE_PAIR d8, d9, 96
  SAVE_PAIR d10, d11, 112
  SAVE_PAIR d12, d13, 128
  SAVE_PAIR d14, d15, 144

  str x2, [sp, SEED]
#if CEDE_PRESERVE_FPENV
  // Another rounding mode for each seed, with and without flushing to zero.
  mrs x9, fpcr
  str x9, [sp, CALLERS]
  and x9, x2, 7
  lsl x9, x9, 22
  str x9, [sp, CONTROL]
  msr fpcr, x9
#endif
  FILL x19, 0
  FILL x20, 1
  FILL x21, 2
  FILL x22, 3
  FILL x23, 4
  FILL x24, 5
  FILL x25, 6
  FILL x26, 7
  FILL x27, 8
  FILL x28, 9
  FILL x29, 10
  FILL_DOUBLE d8, 11
  FILL_DOUBLE d9, 12
  FILL_DOUBLE d10, 13
  FILL_DOUBLE d11, 14
  FILL_DOUBLE d12, 15
  FILL_DOUBLE d13, 16
  FILL_DOUBLE d14, 17
  FILL_DOUBLE d15, 18
  mov x2, xzr
  bl cede_switch

  mov w0, wzr
  COMPARE x19, 0
  COMPARE x20, 1
  COMPARE x21, 2
  COMPARE x22, 3
  COMPARE x23, 4
  COMPARE x24, 5
  COMPARE x25, 6
  COMPARE x26, 7
  COMPARE x27, 8
  COMPARE x28, 9
  COMPARE x29, 10
  COMPARE_DOUBLE d8, 11
  COMPARE_DOUBLE d9, 12
  COMPARE_DOUBLE d10, 13
  COMPARE_DOUBLE d11, 14
  COMPARE_DOUBLE d12, 15
  COMPARE_DOUBLE d13, 16
  COMPARE_DOUBLE d14, 17
  COMPARE_DOUBLE d15, 18
#if CEDE_PRESERVE_FPENV
  mrs x9, fpcr
  ldr x10, [sp, CONTROL]
  cmp x9, x10
  cset w10, ne
  orr w0, w0, w10, lsl 19
  ldr x9, [sp, CALLERS]
  msr fpcr, x9
#endif

  RESTORE_PAIR x29, x30, 0
  RESTORE_PAIR x19, x20, 16
  RESTORE_PAIR x21, x22, 32
  RESTORE_PAIR x23, x24, 48
  RESTORE_PAIR x25, x26, 64
  RESTORE_PAIR x27, x28, 80
  RESTORE_PAIR d8, d9, 96
  RESTORE_PAIR d10, d11, 112
  RESTORE_PAIR d12, d13, 128
  RESTORE_PAIR d14, d15, 144
  add sp, sp, FRAME_BYTES
  .cfi_adjust_cfa_offset -FRAME_BYTES
  autiasp
  .cfi_negate_ra_state
  ret
CEDE_END(cede_probe)

CEDE_END_OF_FILE
