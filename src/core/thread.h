// SPDX-License-Identifier: MIT
// A thread's block: from the thread's first switch to its end. Layer core.
#pragma once

#include <cede/detail/thread.h>

namespace cede::core {

// Makes this thread known: its exception globals, its idle list, its fault stack. Cheap when it is.
void enter_thread() noexcept;

// Moves this thread's idle stacks to the depot. Defined by the pool.
void flush_idle_stacks(detail::ThreadBlock& block) noexcept;

} // namespace cede::core
