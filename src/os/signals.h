// SPDX-License-Identifier: MIT
// OS signals that are read. Layer os.
#pragma once

#include "descriptor.h"

#include <cstdint>

namespace cede::os {

// Signals are bits, number 1 the lowest.

// A descriptor that they are read from.
Opened open_signals(std::uint64_t signals) noexcept;

// Keeps them from this thread: those of them that were not kept from it before.
std::uint64_t hold_signals(std::uint64_t signals) noexcept;
void let_signals(std::uint64_t signals) noexcept;

// What is read for each. The number stands in the first four bytes.
extern const std::size_t kSignalBytes;

} // namespace cede::os
