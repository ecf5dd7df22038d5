// SPDX-License-Identifier: MIT
// What a user can say and ask about stacks.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace cede {

inline constexpr std::size_t kDefaultStackBytes = 64 * 1024;
inline constexpr std::size_t kMinimumStackBytes = 16 * 1024;

struct StackOptions {
  // Usable bytes, rounded up; the guard and the colour come on top. 0 means kDefaultStackBytes;
  // less than kMinimumStackBytes is Errc::invalid_argument.
  std::size_t bytes = 0;
  // Memory of the caller's to use instead, which has to outlive the process. It gets no guard.
  std::span<std::byte> memory = {};
  // Copied, up to 31 bytes: for reports of overflow and other faults.
  std::string_view name = {};
  // Fills the stack with a pattern, so that stack_high_water() is exact to the byte. It makes the
  // whole stack resident.
  bool paint = false;
};

// The bounds of a stack; both null where they are not known.
struct StackLimits {
  std::byte* low = nullptr;
  std::byte* high = nullptr;
  // Bytes between the caller's frame and `low`.
  std::size_t remaining() const;
};

// The limits of the stack that runs now, whoever made it: a process's, or the thread's own.
//   Thread    any
StackLimits stack_limits();

struct StackSettings {
  // Whether the first process made installs the handler that names an overflowing stack (SIGSEGV
  // and SIGBUS on an alternate OS-signal stack, a vectored handler on Windows).
  bool report_overflow = true;
  // Stacks that may stay idle in the process-wide depot, each with one resident page.
  std::size_t idle_stacks = 1024;
};

// Changes the settings; `report_overflow` has an effect only before the first process is made.
//   Thread    any
void configure_stacks(const StackSettings& settings);

// Gives back all memory of idle stacks: the depot's and this thread's.
//   Thread    any
void trim();

} // namespace cede
