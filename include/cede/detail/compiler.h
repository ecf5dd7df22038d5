// SPDX-License-Identifier: MIT
// What differs between compilers, and what cede asks of all of them. The only such place.
#pragma once

#if !defined(__cpp_exceptions)
#error "cede unwinds suspended stacks with exceptions: compile with -fexceptions"
#endif

#include <cstddef>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#define CEDE_ALWAYS_INLINE [[gnu::always_inline]] inline
#define CEDE_NOINLINE [[gnu::noinline]]

// As a default argument: where the caller stands.
#define CEDE_CALLER ::cede::detail::Place::of_caller()

namespace cede::detail {

// A place in the user's code.
struct Place {
  const char* file = nullptr;
  unsigned line = 0;

  // They have to be default arguments themselves: elsewhere in one, gcc 12 takes them for the place
  // of the declaration.
  static constexpr Place of_caller(const char* file = __builtin_FILE(),
                                   unsigned line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

} // namespace cede::detail

// A thread that is cancelled unwinds by something that every `catch (...)` has to pass on.
#if defined(__GLIBCXX__) || defined(__GLIBCPP__)
#define CEDE_PASS_FORCED_UNWIND                                                                    \
  catch (abi::__forced_unwind&) {                                                                  \
    throw;                                                                                         \
  }
#else
#define CEDE_PASS_FORCED_UNWIND
#endif
