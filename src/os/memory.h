// SPDX-License-Identifier: MIT
// Address space for stacks: what an operating system has to give. Layer os.
//
// A region is reserved whole and becomes usable stack by stack. Addresses and sizes are multiples
// of page_bytes(), which is at least 4096.
#pragma once

#include <cstddef>
#include <system_error>

namespace cede::os {

std::size_t page_bytes() noexcept;

// How guards are made.
enum class GuardMethod {
  automatic, // by advice if the kernel does as it says, else by protection
  advice,    // MADV_GUARD_INSTALL: takes no mapping of its own
  protection // mprotect: two mappings a stack
};

// Chooses for guards made from now on. `advice` where the kernel has none fails in arm().
void set_guard_method(GuardMethod method) noexcept;

// The method that `automatic` stands for here.
GuardMethod detect_guard_method() noexcept;

// Reserves `bytes` of address space that takes no memory yet; null if there is none. The kernel is
// asked not to fill it with huge pages: one touched page would then cost 2 MiB.
std::byte* reserve(std::size_t bytes) noexcept;
void unreserve(std::byte* base, std::size_t bytes) noexcept;

// Makes [low, high) usable and [guard, low) a guard region, where every access faults. On failure
// nothing is armed.
//   Fails     not_enough_memory; kMappingLimit where the kernel's limit on mappings is the reason
std::error_code arm(std::byte* guard, std::byte* low, std::byte* high) noexcept;

// What the system, where it asks, is to take for the lowest address of a stack that arm() made
// usable from `low` on: `low`, or, where it needs some of the guard region to raise an overflow,
// less.
std::byte* system_bottom(std::byte* low) noexcept;

// What arm() says when the number of mappings, not memory, has run out.
inline constexpr std::errc kMappingLimit = std::errc::too_many_links;

// Gives the memory of [low, high) back and keeps it usable; its content is lost: zero, or on
// Windows what was there until the system takes the pages away.
void discard(std::byte* low, std::byte* high) noexcept;

// The start of the first page that has memory and begins in [low, high); `high` if none has.
// `low` is the start of a page.
std::byte* first_resident(std::byte* low, std::byte* high) noexcept;

} // namespace cede::os
