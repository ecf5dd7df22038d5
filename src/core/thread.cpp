// SPDX-License-Identifier: MIT
#include "thread.h"

#include "../os/fault.h"
#include "../os/thread.h"
#include "overflow.h"
#include "sanitizers.h"

#include <cxxabi.h>

extern "C" {
// What objects refer to that were compiled with this library's options.
extern const char CEDE_OPTIONS_SYMBOL;
const char CEDE_OPTIONS_SYMBOL = 0;
}

namespace cede::core {

namespace {

// Enough for a burst, and at most 4 MiB of touched pages a thread.
constexpr std::uint32_t kIdleLimit = 64;

// The thread may switch again after this (a later destructor of thread-specific data): then it is
// made known again.
void leave_thread(void* argument) noexcept {
  auto& block = *static_cast<detail::ThreadBlock*>(argument);
  destroy_values(block);
  tell_of_ended_thread();
  flush_idle_stacks(block);
  block.idle_limit = 0;
  block.exceptions = &not_known;
  os::leave_fault_stack();
}

} // namespace

void enter_thread() noexcept {
  detail::ThreadBlock& block = detail::thread();
  if (block.exceptions != &not_known)
    return;
  block.exceptions = reinterpret_cast<detail::ExceptionGlobals*>(abi::__cxa_get_globals());
  tell_of_new_thread();
  if (!os::call_at_thread_exit(leave_thread, &block))
    return; // nobody would collect what it keeps
  block.idle_limit = are_processes_observed() ? 0 : kIdleLimit;
  if (are_overflows_reported())
    os::enter_fault_stack();
}

} // namespace cede::core
