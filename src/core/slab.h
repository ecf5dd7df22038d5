// SPDX-License-Identifier: MIT
// Slabs: large regions of address space that are cut into equal slots, a stack and its guard each;
// and the search for the stack that an address belongs to. Layer core.
//
//   slot:  | guard | usable ................ | block and colour |    low to high address
//
// Invariants: a slab's record is never freed, only used again and for slots of the same size, so a
// fault handler may walk the list at any moment. A slot below `carved` has its guard; it is in use,
// idle, or on the slab's list of cold slots, whose memory has been given back. All functions but
// find_stack() and name_of_stack() are called under `stacks_mutex()`.
#pragma once

#include <cede/detail/stack.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace cede::detail {

struct Slab {
  // set when the record is made
  const std::size_t slot_bytes;
  const unsigned size_class; // the pool it belongs to
  Slab* const next;          // the record made before this one
  // written under stacks_mutex, read by any thread
  std::atomic<std::byte*> base{nullptr}; // null while the record is unused
  std::atomic<std::uint32_t> carved{0};
  // under stacks_mutex
  std::uint32_t slots = 0;
  Slab* sibling = nullptr; // the next one of this pool
  std::uint32_t cold_count = 0;
  std::uint32_t* cold = nullptr; // indices, room for all slots

  bool has_uncarved() const noexcept { return carved.load(std::memory_order_relaxed) < slots; }
  std::byte* slot_begin(std::uint32_t index) const noexcept {
    return base.load(std::memory_order_relaxed) + index * slot_bytes;
  }
  Stack* block_of(std::uint32_t index) const noexcept;
};

} // namespace cede::detail

namespace cede::core {

using detail::Slab;
using detail::Stack;

inline constexpr std::size_t kGuardBytes = 64 * 1024;

// Guards everything about stacks that threads share: slabs, pools, and the list of stacks in memory
// of the user's. Never held at a switch or while code of the user's runs.
std::mutex& stacks_mutex() noexcept;

// A new slab for stacks of `usable_bytes`, with `slots` slots or, if there is no room for so many,
// fewer; null if there is none for one.
Slab* reserve_slab(std::size_t usable_bytes, unsigned size_class, std::uint32_t slots) noexcept;
// All of its slots are cold or uncarved.
void unreserve_slab(Slab& slab) noexcept;

// A stack from the slab's first uncarved slot.
//   Fails     no_memory, mapping_limit
Result<Stack*> carve(Slab& slab) noexcept;

// A stack from a cold slot of the slab, which has one.
Stack* revive(Slab& slab) noexcept;

// Gives back all memory of an idle stack, its block included, and makes its slot cold.
void make_cold(Stack& stack) noexcept;

// Gives back what lies deeper than the page of the block.
void discard_depth(Stack& stack) noexcept;

// Stacks in memory of the user's, so that they are found too.
void link_users_stack(Stack& stack) noexcept;
void unlink_users_stack(Stack& stack) noexcept;

struct Found {
  std::byte* guard = nullptr; // [guard, low) faults; empty for memory of the user's
  std::byte* low = nullptr;
  std::byte* high = nullptr;
  const char* name = nullptr; // may be empty; null if the address is in no stack of ours
};

// The stack whose slot `address` lies in. Async-signal-safe, but for memory of the user's, which is
// searched only if `users_too`, under a lock.
Found find_stack(const std::byte* address, bool users_too) noexcept;

// For messages: the name of the process on whose stack `address` lies, quoted, or what else it is.
std::string_view name_of_stack(const std::byte* address) noexcept;

} // namespace cede::core
