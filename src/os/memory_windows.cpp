// SPDX-License-Identifier: MIT
// Address space for stacks by VirtualAlloc. Layer os.
//
// An armed stack is committed whole, and so are the pages below it that raise the overflow:
//
//   | reserved ... | reserved page | guard pages | usable |     low to high address
//   ^ guard        ^ system_bottom()             ^ low
//
// The system takes the range from system_bottom() up for the stack. A guard page in a stack is
// commonly replaced by the next one below, silently. Here none fits any more: so the first touch of
// a guard page raises STATUS_STACK_OVERFLOW and makes all of them usable, for who handles it.
#include "memory.h"

#include <algorithm>
#include <atomic>

// K32QueryWorkingSetEx is in kernel32 under this version: no other library to link.
#define PSAPI_VERSION 2
#include <windows.h>

#include <psapi.h>

namespace cede::os {
namespace {

// A handler of overflow runs on them: room for the dispatcher's frame with the widest vector
// registers, and for handlers behind ours. No less than the two that Wine wants. A process's
// guaranteed bytes are as many (frame.h of x86_64-win64).
constexpr std::size_t kGuardPages = 4;

std::atomic<GuardMethod> chosen_method{GuardMethod::automatic};

std::size_t bytes_between(const std::byte* low, const std::byte* high) noexcept {
  return static_cast<std::size_t>(high - low);
}

} // namespace

std::size_t page_bytes() noexcept {
  static const std::size_t bytes = [] {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return static_cast<std::size_t>(info.dwPageSize);
  }();
  return bytes;
}

void set_guard_method(GuardMethod method) noexcept {
  chosen_method.store(method, std::memory_order_relaxed);
}

GuardMethod detect_guard_method() noexcept {
  return GuardMethod::protection;
}

std::byte* system_bottom(std::byte* low) noexcept {
  return low - (kGuardPages + 1) * page_bytes();
}

// PAGE_READWRITE, though nothing is accessible yet: Wine commits guard pages with the protection
// that their region was reserved with.
std::byte* reserve(std::size_t bytes) noexcept {
  return static_cast<std::byte*>(VirtualAlloc(nullptr, bytes, MEM_RESERVE, PAGE_READWRITE));
}

void unreserve(std::byte* base, std::size_t) noexcept {
  VirtualFree(base, 0, MEM_RELEASE);
}

std::error_code arm(std::byte* guard, std::byte* low, std::byte* high) noexcept {
  if (chosen_method.load(std::memory_order_relaxed) == GuardMethod::advice)
    return std::make_error_code(std::errc::operation_not_supported);
  std::byte* raising = low - kGuardPages * page_bytes();
  if (VirtualAlloc(low, bytes_between(low, high), MEM_COMMIT, PAGE_READWRITE) != nullptr &&
      VirtualAlloc(raising, bytes_between(raising, low), MEM_COMMIT, PAGE_READWRITE | PAGE_GUARD) !=
          nullptr)
    return {};
  VirtualFree(guard, bytes_between(guard, high), MEM_DECOMMIT);
  return std::make_error_code(std::errc::not_enough_memory);
}

// MEM_RESET: the pages need not be kept. VirtualUnlock of what is not locked: they leave the
// working set. It stays committed, so that it can be used again without a way to fail.
void discard(std::byte* low, std::byte* high) noexcept {
  if (low == high)
    return;
  VirtualAlloc(low, bytes_between(low, high), MEM_RESET, PAGE_READWRITE);
  VirtualUnlock(low, bytes_between(low, high));
}

// What the system has trimmed from the working set counts as not resident.
std::byte* first_resident(std::byte* low, std::byte* high) noexcept {
  const std::size_t page = page_bytes();
  PSAPI_WORKING_SET_EX_INFORMATION asked[64];
  while (low < high) {
    const std::size_t pages =
        std::min((bytes_between(low, high) + page - 1) / page, std::size(asked));
    for (std::size_t i = 0; i < pages; ++i)
      asked[i] = {low + i * page, {}};
    if (!QueryWorkingSetEx(GetCurrentProcess(), asked, static_cast<DWORD>(pages * sizeof *asked)))
      return low; // not known: all of it may be
    for (std::size_t i = 0; i < pages; ++i)
      if (asked[i].VirtualAttributes.Valid)
        return low + i * page;
    low += pages * page;
  }
  return high;
}

} // namespace cede::os
