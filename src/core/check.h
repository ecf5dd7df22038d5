// SPDX-License-Identifier: MIT
// CEDE_CHECK: an invariant, or a rule for the caller, whose breach can't be reported to anyone. On
// in every build. Layer core.
#pragma once

#include <cstddef>
#include <string_view>

namespace cede::core {

// A line for standard error, built without allocating: usable in OS-signal handlers.
class Line {
public:
  Line& operator<<(std::string_view text) noexcept;
  Line& operator<<(const char* text) noexcept { return *this << std::string_view(text); }
  Line& operator<<(std::size_t number) noexcept;
  Line& operator<<(const void* address) noexcept;
  // Writes it, with a newline.
  void print() noexcept;

private:
  char text_[512];
  std::size_t bytes_ = 0;
};

// Prints the expression, the place, what it means and the process that runs, and aborts.
[[noreturn]] void fail_check(const char* expression, const char* file, int line,
                             const char* meaning) noexcept;

} // namespace cede::core

#define CEDE_CHECK(expression, meaning)                                                            \
  (static_cast<bool>(expression)                                                                   \
       ? static_cast<void>(0)                                                                      \
       : ::cede::core::fail_check(#expression, __FILE__, __LINE__, meaning))
