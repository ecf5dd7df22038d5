// SPDX-License-Identifier: MIT
// Where a test runs: what changes how much it can do, and how it would die there.
#pragma once

#include <gtest/gtest.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

#include <csignal>
#include <string>

#ifdef __has_feature
#define CEDE_TEST_HAS_FEATURE(feature) __has_feature(feature)
#else
#define CEDE_TEST_HAS_FEATURE(feature) 0
#endif

namespace cede::test {

#if defined(__SANITIZE_ADDRESS__) || CEDE_TEST_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || CEDE_TEST_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

inline bool on_valgrind() {
#ifdef RUNNING_ON_VALGRIND
  return RUNNING_ON_VALGRIND;
#else
  return false;
#endif
}

// Whether another system's emulator runs this: what it tells of the program's memory is made up.
inline constexpr bool kEmulated = CEDE_TESTS_ARE_EMULATED;

// A pattern for all that is printed by a child which a fault ends.
inline std::string all_printed(const std::string& pattern) {
#ifdef _WIN32
  return pattern + "$";
#else
  return pattern + "(qemu: uncaught target signal.*)?$"; // qemu adds a line of its own
#endif
}

// Whether an observer keeps records of its own for each process, or memory for each byte.
inline bool is_observed() {
  return kAddressSanitizer || kThreadSanitizer || on_valgrind();
}

// How often to do what costs an observer much more than the processor. ThreadSanitizer of gcc 12
// knows at most 8,128 fibers.
inline int scaled(int times, int observed_times) {
  return is_observed() ? observed_times : times;
}

// What a child's exit status says when the system ended it for an access to memory.
inline bool died_of_fault(int status) {
#ifdef _WIN32
  const auto code = static_cast<unsigned>(status);
  // access violation, stack overflow, guard page of a stack that doesn't run
  return code == 0xc0000005 || code == 0xc00000fd || code == 0x80000001;
#else
  return testing::KilledBySignal(SIGSEGV)(status) ||
         (kAddressSanitizer && testing::ExitedWithCode(1)(status)) || // after reports of theirs
         (kThreadSanitizer && testing::ExitedWithCode(66)(status));
#endif
}

} // namespace cede::test
