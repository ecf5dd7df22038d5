// SPDX-License-Identifier: MIT
#include "slab.h"

#include "../os/memory.h"
#include "target.h"

#include <cstring>
#include <new>

namespace cede::detail {

Stack* Slab::block_of(std::uint32_t index) const noexcept {
  return reinterpret_cast<Stack*>(slot_begin(index) + slot_bytes) - 1;
}

} // namespace cede::detail

namespace cede::core {
namespace {

// Tops of stacks are staggered by whole cache lines: at the same offset in their pages they would
// compete for the same few sets of the first-level cache.
constexpr std::size_t kColourBytes = 64;
constexpr std::uint32_t kColours = 32;

std::atomic<Slab*> all_slabs{nullptr};

Stack* users_stacks = nullptr; // in memory of the user's

std::size_t slot_bytes_for(std::size_t usable_bytes) noexcept {
  // The block and the colour fit in one page: they come on top of what is usable.
  static_assert(sizeof(Stack) + kColourBytes * (kColours - 1) <= 4096);
  const std::size_t page = os::page_bytes();
  return kGuardBytes + (usable_bytes + page - 1) / page * page + page;
}

Slab* unused_record(std::size_t slot_bytes, unsigned size_class) noexcept {
  Slab* first = all_slabs.load(std::memory_order_relaxed);
  for (Slab* slab = first; slab != nullptr; slab = slab->next)
    if (slab->slot_bytes == slot_bytes && slab->base.load(std::memory_order_relaxed) == nullptr)
      return slab;
  auto* slab = new (std::nothrow) Slab{slot_bytes, size_class, first};
  if (slab != nullptr)
    all_slabs.store(slab, std::memory_order_release); // pairs with find_stack's acquire
  return slab;
}

Errc to_errc(std::error_code error) noexcept {
  return error == os::kMappingLimit ? Errc::mapping_limit : Errc::no_memory;
}

void construct(Slab& slab, std::uint32_t index) noexcept {
  auto* stack = ::new (slab.block_of(index)) Stack{};
  stack->low = slab.slot_begin(index) + kGuardBytes;
  stack->bottom = os::system_bottom(stack->low);
  stack->top = stack->high() - kColourBytes * (index % kColours);
  stack->slab = &slab;
  stack->slot = index;
  set_first_context(*stack);
}

} // namespace

// Made at first use, since not every system's mutex can be constant, and never destroyed.
std::mutex& stacks_mutex() noexcept {
  static union Storage {
    std::mutex mutex;
    Storage() : mutex() {}
    ~Storage() {}
  } storage;
  return storage.mutex;
}

Slab* reserve_slab(std::size_t usable_bytes, unsigned size_class, std::uint32_t slots) noexcept {
  Slab* slab = unused_record(slot_bytes_for(usable_bytes), size_class);
  if (slab == nullptr)
    return nullptr;
  for (; slots > 0; slots /= 2) {
    auto* cold = new (std::nothrow) std::uint32_t[slots];
    std::byte* base = cold != nullptr ? os::reserve(slots * slab->slot_bytes) : nullptr;
    if (base != nullptr) {
      slab->slots = slots;
      slab->cold = cold;
      slab->cold_count = 0;
      slab->carved.store(0, std::memory_order_relaxed);
      slab->base.store(base, std::memory_order_release); // pairs with find_stack's acquire
      return slab;
    }
    delete[] cold;
  }
  return nullptr;
}

void unreserve_slab(Slab& slab) noexcept {
  std::byte* base = slab.base.exchange(nullptr, std::memory_order_release);
  os::unreserve(base, slab.slots * slab.slot_bytes);
  delete[] slab.cold;
  slab.cold = nullptr;
}

Result<Stack*> carve(Slab& slab) noexcept {
  const std::uint32_t index = slab.carved.load(std::memory_order_relaxed);
  std::byte* begin = slab.slot_begin(index);
  if (const std::error_code error = os::arm(begin, begin + kGuardBytes, begin + slab.slot_bytes))
    return to_errc(error);
  construct(slab, index);
  slab.carved.store(index + 1, std::memory_order_release); // pairs with find_stack's acquire
  return slab.block_of(index);
}

Stack* revive(Slab& slab) noexcept {
  const std::uint32_t index = slab.cold[--slab.cold_count];
  construct(slab, index);
  return slab.block_of(index);
}

void make_cold(Stack& stack) noexcept {
  Slab& slab = *stack.slab;
  std::byte* low = stack.low;
  const std::uint32_t index = stack.slot;
  os::discard(low, slab.slot_begin(index) + slab.slot_bytes);
  slab.cold[slab.cold_count++] = index;
}

void discard_depth(Stack& stack) noexcept {
  const std::size_t page = os::page_bytes();
  const auto block = reinterpret_cast<std::uintptr_t>(&stack);
  os::discard(stack.low, reinterpret_cast<std::byte*>(block / page * page));
}

void link_users_stack(Stack& stack) noexcept {
  stack.next = users_stacks;
  users_stacks = &stack;
}

void unlink_users_stack(Stack& stack) noexcept {
  Stack** link = &users_stacks;
  while (*link != &stack)
    link = &(*link)->next;
  *link = stack.next;
}

Found find_stack(const std::byte* address, bool users_too) noexcept {
  for (Slab* slab = all_slabs.load(std::memory_order_acquire); slab != nullptr; slab = slab->next) {
    std::byte* base = slab->base.load(std::memory_order_acquire);
    if (base == nullptr || address < base)
      continue;
    const auto index = static_cast<std::size_t>(address - base) / slab->slot_bytes;
    if (index >= slab->carved.load(std::memory_order_acquire))
      continue;
    // The record may have been given to another region meanwhile: then `carved` counts that one's.
    if (slab->base.load(std::memory_order_relaxed) != base)
      continue;
    std::byte* begin = base + index * slab->slot_bytes;
    auto* stack = reinterpret_cast<Stack*>(begin + slab->slot_bytes) - 1;
    return {begin, begin + kGuardBytes, stack->high(), stack->name};
  }
  if (users_too) {
    const std::lock_guard lock(stacks_mutex());
    for (Stack* stack = users_stacks; stack != nullptr; stack = stack->next)
      if (address >= stack->low && address < stack->high())
        return {stack->low, stack->low, stack->high(), stack->name};
  }
  return {};
}

std::string_view name_of_stack(const std::byte* address) noexcept {
  const Found found = find_stack(address, true);
  if (found.name == nullptr)
    return "no process: a thread's own stack";
  return found.name[0] != '\0' ? std::string_view(found.name) : "an unnamed process";
}

} // namespace cede::core
