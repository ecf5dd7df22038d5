// SPDX-License-Identifier: MIT
// What a target has to give. A new one fills a folder beside this file; PORTING.md says how. The
// build picks the folder, whose frame.h defines cede::arch::Target.
#pragma once

#include <cede/detail/context.h>
#include <cede/detail/execution.h>

#include <concepts>
#include <cstddef>
#include <cstdint>

#include CEDE_FRAME_HEADER

extern "C" {

// Saves the caller in *from and goes on in *to; returns the word that *from is resumed with. Keeps
// what the ABI makes callee-saved. What stands CEDE_UNWIND_DISTANCE bytes in front of the resume
// address calls cede_throw_unwind as if the caller had.
void* cede_switch(cede::detail::Context* from, cede::detail::Context* to, void* word);

// Goes on in *to and saves nothing.
[[noreturn]] void cede_leave(cede::detail::Context* to, void* word);

// Where a new process is resumed, with sp at its EntryHead: calls `run` with that and the word, and
// leaves for what it returns. Unwinders end here.
void cede_entry();

// Called by the target: throws in the execution that this thread forces to unwind.
[[noreturn]] void cede_throw_unwind();

// Called by the target when an exception is about to leave an entry: says so on standard error and
// names the process by an address on its stack. What follows is std::terminate.
void cede_report_escape(const void* on_its_stack) noexcept;
}

namespace cede::arch {

template <class T>
concept IsTarget = requires(detail::Context& context, detail::Stack& stack) {
  // The name of the folder.
  { T::kName } -> std::convertible_to<const char*>;
  // The floating-point control with which the ABI starts a thread, as in Context::fpenv.
  { T::kDefaultFpenv } -> std::convertible_to<std::uint64_t>;
  // The registers that cede_switch keeps, by name, in the order of probe.S's answer.
  { T::kSavedRegisters[0] } -> std::convertible_to<const char*>;
};

static_assert(IsTarget<Target>);

} // namespace cede::arch
