// SPDX-License-Identifier: MIT
// The pool of stacks behind detail::reserve_stack(): one set of slabs and one depot of idle stacks
// for each power of two of usable bytes. Layer core.
#pragma once

#include <cede/stack.h>

#include <cstddef>

namespace cede::core {

// What StackOptions::paint fills a stack with.
inline constexpr std::byte kPaint{0xa5};

StackSettings settings() noexcept;

// How many stacks of slabs there are now, for tests and reports.
struct StackCounts {
  std::size_t in_use = 0; // held by a process
  std::size_t idle = 0;   // on a thread's list or in the depot
  std::size_t cold = 0;   // reserved, guarded, without memory
};
StackCounts count_stacks() noexcept;

} // namespace cede::core
