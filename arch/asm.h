// SPDX-License-Identifier: MIT
// The only assembler macros: what begins and ends a routine on each object format, so that type,
// size, visibility, unwind data, landing pads and notes can't be forgotten.
#pragma once

#if defined(__ELF__)

// clang-format off
#define CEDE_BEGIN(name)                                                                           \
  .text;                                                                                           \
  .p2align 4;                                                                                      \
  .globl name;                                                                                     \
  .hidden name;                                                                                    \
  .type name, %function;                                                                           \
name:                                                                                              \
  .cfi_startproc;                                                                                  \
  CEDE_LANDING_PAD

// The same for a routine where unwinders end. The rule holds from the first byte on, and one byte
// before: there they look for the rules of a return address, which the first instruction is for who
// is about to jump to it.
#define CEDE_BEGIN_OUTERMOST(name)                                                                 \
  .text;                                                                                           \
  .p2align 4;                                                                                      \
  .cfi_startproc;                                                                                  \
  .cfi_undefined CEDE_RETURN_COLUMN;                                                               \
  nop;                                                                                             \
  .p2align 4;                                                                                      \
  .globl name;                                                                                     \
  .hidden name;                                                                                    \
  .type name, %function;                                                                           \
name:                                                                                              \
  CEDE_LANDING_PAD

#define CEDE_END(name)                                                                             \
  .cfi_endproc;                                                                                    \
  .size name, . - name

#if defined(__x86_64__)
// The landing pads are there always (4 bytes that do nothing on other CPUs); the note only where
// the compiler was asked for it. Shadow stacks are not switched, so never claimed.
#define CEDE_LANDING_PAD endbr64
#define CEDE_RETURN_COLUMN 16 // DWARF's number of the return address
#if defined(__CET__) && (__CET__ & 1)
#define CEDE_FEATURES 0xc0000002, 1
#endif
#elif defined(__aarch64__)
#define CEDE_LANDING_PAD bti c
#define CEDE_RETURN_COLUMN 30
#if defined(__ARM_FEATURE_BTI_DEFAULT)
#define CEDE_FEATURE_BTI 1
#else
#define CEDE_FEATURE_BTI 0
#endif
#if defined(__ARM_FEATURE_PAC_DEFAULT)
#define CEDE_FEATURE_PAC 2
#else
#define CEDE_FEATURE_PAC 0
#endif
#if CEDE_FEATURE_BTI || CEDE_FEATURE_PAC
#define CEDE_FEATURES 0xc0000000, CEDE_FEATURE_BTI | CEDE_FEATURE_PAC
#endif
#endif

#ifdef CEDE_FEATURES
#define CEDE_FEATURE_NOTE(type, value)                                                             \
  .pushsection .note.gnu.property, "a";                                                            \
  .p2align 3;                                                                                      \
  .long 4, 16, 5;                                                                                  \
  .asciz "GNU";                                                                                    \
  .long type, 4, value, 0;                                                                         \
  .popsection
#define CEDE_FEATURE_NOTE_OF(features) CEDE_FEATURE_NOTE(features)
#else
#define CEDE_FEATURES
#define CEDE_FEATURE_NOTE_OF(features)
#endif

// The last line of every assembler file.
#define CEDE_END_OF_FILE                                                                           \
  .pushsection .note.GNU-stack, "", %progbits;                                                     \
  .popsection;                                                                                     \
  CEDE_FEATURE_NOTE_OF(CEDE_FEATURES)
// clang-format on

#elif defined(_WIN32)

// clang-format off
#define CEDE_BEGIN(name)                                                                           \
  .text;                                                                                           \
  .p2align 4;                                                                                      \
  .globl name;                                                                                     \
  .def name;                                                                                       \
  .scl 2;                                                                                          \
  .type 32;                                                                                        \
  .endef;                                                                                          \
  .seh_proc name;                                                                                  \
name:

#define CEDE_END(name) .seh_endproc
#define CEDE_END_OF_FILE
// clang-format on

#else
#error "asm.h knows ELF and PE; add the object format of this target"
#endif
