// SPDX-License-Identifier: MIT
// The report of a stack that overflows, and of an exception that leaves an entry. Layer core.
#pragma once

namespace cede::core {

// Installs the fault handler, once, unless the settings say no.
void report_overflows() noexcept;

bool are_overflows_reported() noexcept;

} // namespace cede::core
