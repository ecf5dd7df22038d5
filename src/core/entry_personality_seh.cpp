// SPDX-License-Identifier: MIT
// The end of a stack for exceptions, where unwinders are those of Windows. Layer core.
//
// It is the language handler of cede_entry's frame, the last one of every process, and does what
// the system's own handler does at the end of a thread's stack, which is not on this one: it lets
// the unhandled exception filter decide. The C runtime's lets a C++ exception go on, back into its
// throw, which then calls std::terminate there with every frame in place (GCC, libgcc
// unwind-seh.c).
#include "target.h"

#include <windows.h>

namespace {

constexpr DWORD kGccThrow = 0x20474343; // libgcc's code for a C++ exception: user-defined, "GCC"

} // namespace

extern "C" EXCEPTION_DISPOSITION cede_entry_handler(EXCEPTION_RECORD* record, void* frame,
                                                    CONTEXT* context, DISPATCHER_CONTEXT*) {
  constexpr DWORD kUnwinding = 0x66; // EXCEPTION_UNWIND: in any of its forms
  if (record->ExceptionFlags & kUnwinding)
    return ExceptionContinueSearch;
  if (record->ExceptionCode == kGccThrow)
    cede_report_escape(frame);
  EXCEPTION_POINTERS exception{record, context};
  switch (UnhandledExceptionFilter(&exception)) {
  case EXCEPTION_CONTINUE_EXECUTION:
    return ExceptionContinueExecution;
  case EXCEPTION_EXECUTE_HANDLER: // what the system's handler would do
    TerminateProcess(GetCurrentProcess(), record->ExceptionCode);
  }
  return ExceptionContinueSearch; // a debugger is to have it
}
