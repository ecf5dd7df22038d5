// SPDX-License-Identifier: MIT
// The out-of-line switch by swapcontext (POSIX.1-2001; glibc keeps all callee-saved registers and
// the floating-point environment, and the OS signal mask, which costs its system call).
#include "../arch.h"

#include <cede/detail/compiler.h>
#include <cede/detail/stack.h>

#include <cfenv>
#include <cstdlib>

namespace {

using cede::arch::SwitchFrame;
using cede::detail::Context;
using cede::detail::Departure;
using cede::detail::EntryHead;

// There is no address to jump to: what a context's `resume` says is which of the two entries is
// meant, the later one by its own address.
char entries[CEDE_UNWIND_DISTANCE + 1];
void* const kResume = entries + CEDE_UNWIND_DISTANCE;

// An exception that leaves an entry is named here and thrown on, to the end of the stack and so to
// std::terminate.
Departure run(EntryHead* head, void* word) {
  try {
    return head->run(head, word);
  }
  CEDE_PASS_FORCED_UNWIND
  catch (...) {
    cede_report_escape(head);
    throw;
  }
}

// makecontext passes ints only.
void start(unsigned head_high, unsigned head_low, unsigned word_high, unsigned word_low) {
  auto join = [](unsigned high, unsigned low) {
    return reinterpret_cast<void*>(std::uintptr_t{high} << 32 | low);
  };
  std::fesetenv(FE_DFL_ENV); // getcontext took the environment of whoever switched
  const Departure next =
      run(static_cast<EntryHead*>(join(head_high, head_low)), join(word_high, word_low));
  cede_leave(next.to, next.word);
}

// The machine context of a process that has not started, to begin with `word`.
void prepare(ucontext_t& machine, const Context& to, void* word) {
  auto* head = static_cast<EntryHead*>(to.sp);
  std::byte* low = head->execution->stack->low;
  getcontext(&machine);
  machine.uc_link = nullptr;
  machine.uc_stack.ss_sp = low;
  machine.uc_stack.ss_size = static_cast<std::size_t>(static_cast<std::byte*>(to.sp) - low);
  const auto at = reinterpret_cast<std::uintptr_t>(head);
  const auto number = reinterpret_cast<std::uintptr_t>(word);
  makecontext(&machine, reinterpret_cast<void (*)()>(start), 4, static_cast<unsigned>(at >> 32),
              static_cast<unsigned>(at), static_cast<unsigned>(number >> 32),
              static_cast<unsigned>(number));
}

// The machine context that goes on in `to`; `fresh` is room for one.
const ucontext_t* enter(ucontext_t& fresh, const Context& to, void* word) {
  if (to.resume == reinterpret_cast<void*>(&cede_entry)) {
    prepare(fresh, to, word);
    return &fresh;
  }
  auto* frame = static_cast<SwitchFrame*>(to.sp);
  frame->word = word;
  frame->is_to_unwind = to.resume != kResume;
  return &frame->machine;
}

} // namespace

void* cede_switch(Context* from, Context* to, void* word) {
  SwitchFrame here;
  ucontext_t fresh;
  from->sp = &here;
  from->resume = kResume;
  swapcontext(&here.machine, enter(fresh, *to, word));
  if (here.is_to_unwind)
    cede_throw_unwind();
  return here.word;
}

void cede_leave(Context* to, void* word) {
  ucontext_t fresh;
  setcontext(enter(fresh, *to, word));
  std::abort(); // setcontext returns only when it fails
}

// Names the entry of a new process; control never comes here.
void cede_entry() {
  std::abort();
}
