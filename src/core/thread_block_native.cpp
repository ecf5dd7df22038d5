// SPDX-License-Identifier: MIT
// A thread's block as a thread_local object of the compiler's. Layer core.
#include "thread.h"

constinit cede::detail::ExceptionGlobals cede::core::not_known{nullptr, 1};
constinit cede::detail::Dispatch cede::core::no_scheduler{nullptr, 0};

extern "C" {
#if CEDE_INLINE_SWITCH
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local cede::detail::ThreadBlock cede_thread{cede::core::kFirstThreadBlock};
}

namespace cede::detail {

#if !CEDE_INLINE_SWITCH
// Not inlined, and opaque: a process may go on on another thread, and a compiler that sees through
// this would keep the address over a switch.
CEDE_NOINLINE ThreadBlock& thread() noexcept {
  ThreadBlock* block = &cede_thread;
  asm volatile("" : "+r"(block) : : "memory");
  return *block;
}
#endif

} // namespace cede::detail
