// SPDX-License-Identifier: MIT
// Memory faults: how the system tells of them, and how they are passed on. Layer os.
#pragma once

#include <cstddef>

namespace cede::os {

// Called for each fault with the address that was accessed and the stack pointer, on a stack that
// has room. True: it was reported, and the program dies of the fault. False: it is none of ours and
// goes to whoever handled faults before. Must be async-signal-safe.
using FaultReporter = bool (*)(std::byte* address, std::byte* sp);

// Installs the handler, in front of the one that is there.
void install_fault_handler(FaultReporter reporter) noexcept;

// Gives this thread the stack that the handler runs on, unless it has one. leave_ takes it away.
void enter_fault_stack() noexcept;
void leave_fault_stack() noexcept;

// Writes to standard error: async-signal-safe, and whole also when several threads write.
void write_error(const char* text, std::size_t bytes) noexcept;

} // namespace cede::os
