// SPDX-License-Identifier: MIT
// A thread's block: from the thread's first switch to its end. Layer core.
#pragma once

#include <cede/detail/compiler.h>
#include <cede/detail/dispatch.h>
#include <cede/detail/thread.h>

namespace cede::core {

// Stands for the globals of a thread that is not known yet. Never empty, so that no switch takes
// the fast path, and never written. It stands beside the blocks, so that a program that refers to
// it links those too: what else refers to them are assembly statements, which the linker sees too
// late when it optimises.
extern detail::ExceptionGlobals not_known;

// Stands for the scheduler of a thread that drives none; never written.
extern detail::Dispatch no_scheduler;

// The block of such a thread. There is one file for each way to keep it: thread_block_*.cpp.
inline constexpr detail::ThreadBlock kFirstThreadBlock{
    &not_known, nullptr, 0, 0, nullptr, nullptr, &no_scheduler, nullptr};

// Makes this thread known: its exception globals, its idle list, its fault stack. Cheap when it is.
void enter_thread() noexcept;

// Moves this thread's idle stacks to the depot. Defined by the pool.
void flush_idle_stacks(detail::ThreadBlock& block) noexcept;

// Destroys the FiberLocals of this thread, which ends. Defined by them.
void destroy_values(detail::ThreadBlock& block) noexcept;

} // namespace cede::core
