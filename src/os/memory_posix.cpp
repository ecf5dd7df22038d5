// SPDX-License-Identifier: MIT
// Address space for stacks by mmap. Layer os.
#include "memory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace cede::os {
namespace {

// Linux 6.13; not in every distribution's headers.
constexpr int kGuardInstall = 102;
constexpr int kNoSuchAdvice = 0x3039;

std::atomic<GuardMethod> chosen_method{GuardMethod::automatic};

// Some emulators accept any advice and do nothing: then the guard would be a writable page. Whoever
// takes an advice that nobody has defined is not believed.
GuardMethod probe() noexcept {
  const std::size_t bytes = page_bytes();
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return GuardMethod::protection;
  const int unrelated_errno = errno;
  const bool honest = madvise(page, bytes, kNoSuchAdvice) != 0;
  const bool installed = madvise(page, bytes, kGuardInstall) == 0;
  errno = unrelated_errno;
  munmap(page, bytes);
  return honest && installed ? GuardMethod::advice : GuardMethod::protection;
}

std::size_t bytes_between(const std::byte* low, const std::byte* high) noexcept {
  return static_cast<std::size_t>(high - low);
}

} // namespace

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void set_guard_method(GuardMethod method) noexcept {
  chosen_method.store(method, std::memory_order_relaxed);
}

GuardMethod detect_guard_method() noexcept {
  static const GuardMethod detected = probe();
  return detected;
}

std::byte* reserve(std::size_t bytes) noexcept {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED)
    return nullptr;
#ifdef MADV_NOHUGEPAGE
  madvise(base, bytes, MADV_NOHUGEPAGE); // fails only where there are no huge pages
#endif
  return static_cast<std::byte*>(base);
}

void unreserve(std::byte* base, std::size_t bytes) noexcept {
  munmap(base, bytes);
}

std::error_code arm(std::byte* guard, std::byte* low, std::byte* high) noexcept {
  static_cast<void>(high); // usable since it was reserved
  const std::size_t bytes = bytes_between(guard, low);
  const GuardMethod chosen = chosen_method.load(std::memory_order_relaxed);
  const GuardMethod wanted = chosen == GuardMethod::automatic ? detect_guard_method() : chosen;
  if (wanted == GuardMethod::advice && madvise(guard, bytes, kGuardInstall) == 0)
    return {};
  // Memory that is locked (mlockall) takes no such advice.
  if (chosen == GuardMethod::advice)
    return std::error_code(errno, std::generic_category());
  if (mprotect(guard, bytes, PROT_NONE) == 0)
    return {};
  // It splits a mapping and needs no other memory to speak of (mprotect(2), ENOMEM).
  return std::make_error_code(errno == ENOMEM ? kMappingLimit : static_cast<std::errc>(errno));
}

std::byte* system_bottom(std::byte* low) noexcept {
  return low;
}

void discard(std::byte* low, std::byte* high) noexcept {
  if (low != high)
    madvise(low, bytes_between(low, high), MADV_DONTNEED);
}

std::byte* first_resident(std::byte* low, std::byte* high) noexcept {
  const std::size_t page = page_bytes();
  unsigned char resident[64];
  while (low < high) {
    const std::size_t pages =
        std::min((bytes_between(low, high) + page - 1) / page, sizeof resident);
    if (mincore(low, pages * page, resident) != 0)
      return low; // not known: all of it may be
    for (std::size_t i = 0; i < pages; ++i)
      if (resident[i] & 1)
        return low + i * page;
    low += pages * page;
  }
  return high;
}

} // namespace cede::os
