// SPDX-License-Identifier: MIT
// The primitive layer: processes with their own stacks, and the transfer between them. It needs no
// scheduler.
#pragma once

#include <cede/detail/compiler.h>
#include <cede/detail/execution.h>
#include <cede/detail/stack.h>
#include <cede/detail/thread.h>
#include <cede/result.h>
#include <cede/stack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace cede {

class Process;

// Where control goes when an entry returns, and the word that arrives there.
struct Next {
  Process& process;
  void* word = nullptr;
};

// A process: a stack of its own and a saved execution; or, without a stack, a slot in which any
// execution can be saved.
//
//   cede::Process main, worker;
//   cede::newprocess(worker, [&](void*) { return cede::Next{main}; }).value();
//   cede::transfer(main, worker);
//
// Destroying a suspended process unwinds its stack, so that its destructors run; one that never
// started destroys its callable and runs nothing. Destroying a slot that holds an execution, or a
// process that runs on its own stack, fails a check. The stack goes back to an idle list.
//   Thread    any, one at a time; what was left on one thread may be resumed on another
class Process {
public:
  enum class State { empty, created, suspended, running, finished };

  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // `running` means that nothing is saved here.
  State state() const noexcept;

private:
  friend detail::Execution& execution_of(Process& process) noexcept { return process.execution_; }
  friend const detail::Execution& execution_of(const Process& process) noexcept {
    return process.execution_;
  }

  detail::Execution execution_;
};

// Makes `entry` a process, which runs when it is first transferred to: `Next entry(void* word)`,
// with the word of that transfer. The callable is moved to the new stack. It starts with the ABI's
// default floating-point environment. `process` has to be empty or finished; anything else fails a
// check. An exception that leaves the entry ends the program by std::terminate, at the throw, after
// a line that names the process.
//   Fails     no_memory, mapping_limit, invalid_argument; `process` is then as it was
//   Throws    what moving `entry` throws
//   Thread    any
template <class Entry>
Result<void> newprocess(Process& process, Entry entry, StackOptions options = {});

// Saves what runs now in `from` and goes on in `to`, where `word` is what its own transfer returns
// or its entry receives. Returns the word of the transfer that comes back to `from`. `from` has to
// be empty, or to hold nothing because it is what runs now; `to` has to be created or suspended.
// Anything else fails a check. While `from` is being destroyed this throws, and `to` is not looked
// at. errno, the OS signal mask and thread_locals belong to the thread and are not switched.
//   Thread    any
CEDE_ALWAYS_INLINE void* transfer(Process& from, Process& to, void* word = nullptr);

// The most bytes of its stack that `process` has used, to the page (what earlier owners of the
// stack used may count too); to the byte with StackOptions::paint. 0 without a stack.
//   Thread    any, while `process` doesn't run
std::size_t stack_high_water(const Process& process);

// ---------------------------------------------------------------------------------------------

namespace detail {

template <class Entry>
struct EntryRecord : EntryHead {
  Entry entry;

  EntryRecord(Execution& owner, Entry&& callable)
      : EntryHead{run_entry, run_entry, discard_entry, &owner}, entry(std::move(callable)) {}

  static Departure run_entry(EntryHead* head, void* word) {
    auto& self = *static_cast<EntryRecord*>(head);
    Execution& execution = *self.execution;
    Execution* next = nullptr;
    try {
      Next chosen = self.entry(word);
      next = &execution_of(chosen.process);
      word = chosen.word;
    } catch (const Unwind&) {
    }
    std::destroy_at(&self.entry);
    if (execution.gate == Gate::running && next != nullptr && next->gate == Gate::suspended)
        [[likely]] {
      execution.gate = Gate::finished;
      next->gate = Gate::running;
      return {&next->context, word};
    }
    return leave_out_of_line(execution, next, word);
  }

  static void discard_entry(EntryHead* head) noexcept {
    std::destroy_at(&static_cast<EntryRecord*>(head)->entry);
  }
};

template <class Entry>
bool is_null(const Entry& entry) noexcept {
  if constexpr (requires {
                  { entry == nullptr } -> std::convertible_to<bool>;
                })
    return entry == nullptr;
  else
    return false;
}

// Refers to the library's symbol for the options that this file was compiled with.
extern "C" const char CEDE_OPTIONS_SYMBOL;
[[gnu::used]] inline const char* const options_of_this_library = &CEDE_OPTIONS_SYMBOL;

} // namespace detail

inline Process::~Process() {
  if (execution_.gate == detail::Gate::finished) [[likely]]
    detail::give_idle_stack(*execution_.stack);
  else if (execution_.gate != detail::Gate::empty)
    detail::destroy(execution_);
}

template <class Entry>
Result<void> newprocess(Process& process, Entry entry, StackOptions options) {
  using Record = detail::EntryRecord<Entry>;
  static_assert(std::is_invocable_r_v<Next, Entry&, void*>,
                "an entry is called with a word and returns where control goes: Next(void*)");
  static_assert(sizeof(Record) <= kMinimumStackBytes / 4,
                "this callable would fill its stack: keep what it captures elsewhere");
  if (detail::is_null(entry))
    return Errc::invalid_argument;
  detail::Execution& execution = execution_of(process);
  if (execution.gate != detail::Gate::empty)
    detail::reuse(execution);
  detail::Stack* stack = detail::are_default(options) ? detail::take_idle_stack() : nullptr;
  if (stack == nullptr) {
    Result<detail::Stack*> reserved = detail::reserve_stack(options);
    if (!reserved)
      return reserved.error();
    stack = *reserved;
  }
  auto at = reinterpret_cast<std::uintptr_t>(stack->top) - sizeof(Record);
  at &= ~(std::uintptr_t{alignof(Record)} - 1);
  Record* record = nullptr;
  if constexpr (std::is_nothrow_move_constructible_v<Entry>) {
    record = ::new (reinterpret_cast<void*>(at)) Record(execution, std::move(entry));
  } else {
    try {
      record = ::new (reinterpret_cast<void*>(at)) Record(execution, std::move(entry));
    } catch (...) {
      detail::give_idle_stack(*stack);
      throw;
    }
  }
  execution.context.sp = record;
  execution.context.fp = nullptr;
  execution.context.resume = stack->entry;
  execution.context.fpenv = stack->fpenv;
  execution.stack = stack;
  execution.gate = detail::Gate::suspended;
  if (stack->special & detail::kObserved) [[unlikely]]
    detail::observe(execution, *record);
  return {};
}

namespace detail {

// Whether to switch is all that has to be done. One branch for all of it costs less than one each.
CEDE_ALWAYS_INLINE bool is_plain_switch(const ThreadBlock& block, const Execution& leaving,
                                        const Execution& entering) {
  const ExceptionGlobals& exceptions = *block.exceptions;
  const auto gate_of = [](Gate gate) { return static_cast<std::uint32_t>(gate); };
  return ((gate_of(leaving.gate) ^ gate_of(Gate::running)) |
          (gate_of(entering.gate) ^ gate_of(Gate::suspended)) | exceptions.uncaught |
          reinterpret_cast<std::uintptr_t>(exceptions.caught)) == 0;
}

} // namespace detail

CEDE_ALWAYS_INLINE void* transfer(Process& from, Process& to, void* word) {
  detail::Execution& leaving = execution_of(from);
  detail::Execution& entering = execution_of(to);
#if CEDE_INLINE_SWITCH
  detail::save_fpenv(leaving.context); // before anything is known: nothing is saved there yet
  if (detail::is_plain_switch(detail::thread(), leaving, entering)) [[likely]] {
    leaving.gate = detail::Gate::suspended;
    entering.gate = detail::Gate::running;
    return detail::switch_inline(leaving.context, entering.context, word);
  }
#endif
  return detail::transfer_out_of_line(leaving, entering, word);
}

} // namespace cede
