// SPDX-License-Identifier: MIT
// The program's operator new, which fails where a test wants it. Included by one file of a program.
// Sanitizers bring allocation functions of their own, which never fail.
#pragma once

#include "support/environment.h"

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace cede::test {

inline constexpr long kNever = std::numeric_limits<long>::max();

// How many allocations of this thread still succeed, and how many are not freed, on all threads.
inline constinit thread_local long allocations_until_failure = kNever;
inline constinit long allocations_alive = 0;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    CEDE_TEST_HAS_FEATURE(address_sanitizer) || CEDE_TEST_HAS_FEATURE(thread_sanitizer)
inline bool can_fail_allocations() {
  return false;
}
#else
inline bool can_fail_allocations() {
  return !on_valgrind();
}

inline void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (allocations_until_failure != kNever && allocations_until_failure-- <= 0)
    return nullptr;
  ++allocations_alive;
  // Rounded up, as some systems want it of aligned memory.
#ifdef _WIN32
  return __mingw_aligned_malloc(bytes, alignment);
#else
  return std::aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
#endif
}

inline void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* memory = allocate(bytes, alignment))
    return memory;
  throw std::bad_alloc();
}

inline void release(void* memory) noexcept {
  if (memory == nullptr)
    return;
  --allocations_alive;
#ifdef _WIN32
  __mingw_aligned_free(memory);
#else
  std::free(memory);
#endif
}

inline constexpr std::size_t kUsualAlignment = alignof(std::max_align_t);
#endif

} // namespace cede::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                             \
    !CEDE_TEST_HAS_FEATURE(address_sanitizer) && !CEDE_TEST_HAS_FEATURE(thread_sanitizer)
// Not inlined: the compiler would see malloc and delete, or new and free, and warn.
#define CEDE_TEST_NEW [[gnu::noinline]]
CEDE_TEST_NEW void* operator new(std::size_t bytes) {
  return cede::test::allocate_or_throw(bytes, cede::test::kUsualAlignment);
}
CEDE_TEST_NEW void* operator new[](std::size_t bytes) {
  return cede::test::allocate_or_throw(bytes, cede::test::kUsualAlignment);
}
CEDE_TEST_NEW void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return cede::test::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
CEDE_TEST_NEW void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return cede::test::allocate(bytes, cede::test::kUsualAlignment);
}
CEDE_TEST_NEW void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return cede::test::allocate(bytes, cede::test::kUsualAlignment);
}
CEDE_TEST_NEW void* operator new(std::size_t bytes, std::align_val_t alignment,
                                 const std::nothrow_t&) noexcept {
  return cede::test::allocate(bytes, static_cast<std::size_t>(alignment));
}
CEDE_TEST_NEW void operator delete(void* memory) noexcept {
  cede::test::release(memory);
}
CEDE_TEST_NEW void operator delete[](void* memory) noexcept {
  cede::test::release(memory);
}
CEDE_TEST_NEW void operator delete(void* memory, std::size_t) noexcept {
  cede::test::release(memory);
}
CEDE_TEST_NEW void operator delete[](void* memory, std::size_t) noexcept {
  cede::test::release(memory);
}
CEDE_TEST_NEW void operator delete(void* memory, std::align_val_t) noexcept {
  cede::test::release(memory);
}
CEDE_TEST_NEW void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  cede::test::release(memory);
}
#undef CEDE_TEST_NEW
#endif
