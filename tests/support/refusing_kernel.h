// SPDX-License-Identifier: MIT
// A kernel that refuses memory when a test says so: this program's own mmap, mprotect and madvise,
// which stand in front of the C library's. For one file of a program. POSIX only.
#pragma once

#include <cerrno>
#include <cstddef>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cede::test {

struct Kernel {
  int grants = -1;               // so many regions and guards more; then it refuses. -1: all
  bool takes_any_advice = false; // and does nothing, as some emulators

  bool refuses() {
    if (grants < 0)
      return false;
    if (grants == 0) {
      errno = ENOMEM;
      return true;
    }
    --grants;
    return false;
  }
};

inline constinit Kernel kernel;

// All is granted again at the end of the scope.
struct Refusal {
  explicit Refusal(int grants) { kernel.grants = grants; }
  ~Refusal() { kernel = {}; }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;
};

} // namespace cede::test

extern "C" {

void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if ((flags & MAP_NORESERVE) && cede::test::kernel.refuses())
    return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

int mprotect(void* at, std::size_t bytes, int protection) noexcept {
  if (protection == PROT_NONE && cede::test::kernel.refuses())
    return -1;
  return static_cast<int>(syscall(SYS_mprotect, at, bytes, protection));
}

int madvise(void* at, std::size_t bytes, int advice) noexcept {
  constexpr int kGuardInstall = 102;
  if (cede::test::kernel.takes_any_advice)
    return 0;
  if (advice == kGuardInstall && cede::test::kernel.refuses())
    return -1;
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}
}
