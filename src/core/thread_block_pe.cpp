// SPDX-License-Identifier: MIT
// A thread's block in the thread-local storage of the PE format, read without a call. Layer core.
//
// MinGW's thread_local is emulated: a function call and an allocation, whose memory is freed before
// the end of a thread is told of. What lies in the section .tls the loader copies for each thread
// and keeps until its very end (PE format, the .tls section).
#include "thread.h"

#include <cstdint>

constinit cede::detail::ExceptionGlobals cede::core::not_known{nullptr, 1};
constinit cede::detail::Dispatch cede::core::no_scheduler{nullptr, 0};

extern "C" {
// What each thread's block is a copy of. The section's name sorts before the end mark, .tls$ZZZ.
[[gnu::section(".tls$CEDE")]] constinit cede::detail::ThreadBlock cede_thread{
    cede::core::kFirstThreadBlock};
}

namespace cede::detail {

// Volatile and not inlined, because a process may go on on another thread: the address is never
// kept over a switch. gs:0x58 is the thread's array of copies, by the index of the module.
CEDE_NOINLINE ThreadBlock& thread() noexcept {
  std::uintptr_t block;
  std::uintptr_t copies;
  asm volatile("movl _tls_index(%%rip), %k0\n\t"
               "movq %%gs:0x58, %1\n\t"
               "movq (%1,%0,8), %0\n\t"
               "leaq cede_thread@SECREL32(%0), %0"
               : "=&r"(block), "=&r"(copies)
               :
               : "memory");
  return *reinterpret_cast<ThreadBlock*>(block);
}

} // namespace cede::detail
