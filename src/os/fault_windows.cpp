// SPDX-License-Identifier: MIT
// Memory faults as exceptions, by a vectored handler. Layer os.
#include "fault.h"

#include <cstdint>
#include <windows.h>

namespace cede::os {
namespace {

FaultReporter report = nullptr;

// It runs on the stack that faulted: on the guard pages, which the system has made usable, when
// that has overflowed. Whatever it was, the handlers behind this one are asked next; of a reported
// fault nobody should let the program go on, and it dies of it.
LONG NTAPI on_exception(EXCEPTION_POINTERS* exception) {
  const EXCEPTION_RECORD& record = *exception->ExceptionRecord;
  switch (record.ExceptionCode) {
  case EXCEPTION_STACK_OVERFLOW:   // a guard page of the stack that runs
  case EXCEPTION_GUARD_PAGE:       // a guard page of another
  case EXCEPTION_ACCESS_VIOLATION: // below them
    // Information 1 is the address, as documented for access violations and so for the others.
    if (record.NumberParameters >= 2)
      report(reinterpret_cast<std::byte*>(record.ExceptionInformation[1]),
             reinterpret_cast<std::byte*>(exception->ContextRecord->Rsp));
  }
  return EXCEPTION_CONTINUE_SEARCH;
}

} // namespace

void install_fault_handler(FaultReporter reporter) noexcept {
  report = reporter;
  AddVectoredExceptionHandler(1, on_exception);
}

// Every stack has its own room for the handler.
void enter_fault_stack() noexcept {}
void leave_fault_stack() noexcept {}

void write_error(const char* text, std::size_t bytes) noexcept {
  const HANDLE file = GetStdHandle(STD_ERROR_HANDLE);
  while (bytes > 0) {
    DWORD written = 0;
    if (!WriteFile(file, text, static_cast<DWORD>(bytes), &written, nullptr) || written == 0)
      return;
    text += written;
    bytes -= written;
  }
}

} // namespace cede::os
