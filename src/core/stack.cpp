// SPDX-License-Identifier: MIT
#include "stack.h"

#include "../os/thread.h"
#include "overflow.h"
#include "sanitizers.h"
#include "slab.h"
#include "target.h"
#include "thread.h"

#include <cede/detail/stack.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace cede::core {
namespace {

constexpr unsigned kClasses = 32;
constexpr std::size_t kMostBytes = kMinimumStackBytes << (kClasses - 1);

unsigned class_of(std::size_t bytes) noexcept {
  return static_cast<unsigned>(std::bit_width((bytes - 1) / kMinimumStackBytes));
}

std::size_t bytes_of_class(unsigned size_class) noexcept {
  return kMinimumStackBytes << size_class;
}

// The stacks of one power of two.
struct Pool {
  Slab* slabs = nullptr;
  Stack* idle = nullptr; // newest first
  std::uint32_t slabs_reserved = 0;
};

// All of it under stacks_mutex.
Pool pools[kClasses];
StackSettings current_settings;
std::size_t idle_count = 0;   // in all pools
std::size_t cold_count = 0;   // in all slabs
std::size_t carved_count = 0; // in all slabs

// Each slab of a pool is twice as large as the one before: a few regions serve a million stacks,
// and one process takes little address space.
std::uint32_t slots_of_next_slab(const Pool& pool, std::size_t bytes) noexcept {
  constexpr std::uint32_t kFirst = 64;
  constexpr unsigned kMostDoublings = 14;
  constexpr std::size_t kFirstBytes = 64 * 1024 * 1024;
  const std::size_t fitting = std::max<std::size_t>(1, kFirstBytes / (bytes + kGuardBytes));
  return static_cast<std::uint32_t>(std::min<std::size_t>(kFirst, fitting))
         << std::min(pool.slabs_reserved, kMostDoublings);
}

Slab* reserve_slab_for(Pool& pool, unsigned size_class) noexcept {
  const std::size_t bytes = bytes_of_class(size_class);
  Slab* slab = reserve_slab(bytes, size_class, slots_of_next_slab(pool, bytes));
  if (slab != nullptr) {
    slab->sibling = pool.slabs;
    pool.slabs = slab;
    ++pool.slabs_reserved;
  }
  return slab;
}

// A cold slot goes before a new one: it has its guard already, also when the system has no more.
Result<Stack*> take(unsigned size_class) noexcept {
  const std::lock_guard lock(stacks_mutex());
  Pool& pool = pools[size_class];
  if (Stack* stack = pool.idle) {
    pool.idle = stack->next;
    --idle_count;
    return stack;
  }
  Slab* uncarved = nullptr;
  for (Slab* slab = pool.slabs; slab != nullptr; slab = slab->sibling) {
    if (slab->cold_count > 0) {
      --cold_count;
      return revive(*slab);
    }
    if (slab->has_uncarved())
      uncarved = slab;
  }
  if (uncarved == nullptr)
    uncarved = reserve_slab_for(pool, size_class);
  if (uncarved == nullptr)
    return Errc::no_memory;
  Result<Stack*> stack = carve(*uncarved);
  carved_count += stack ? 1 : 0;
  return stack;
}

// Under stacks_mutex. Beyond the bound the memory goes back at once; within it the page of the
// block stays, so that the next process finds it warm.
void put_in_depot(Stack& stack) noexcept {
  if (idle_count >= current_settings.idle_stacks) {
    make_cold(stack);
    ++cold_count;
    return;
  }
  discard_depth(stack);
  Pool& pool = pools[stack.slab->size_class];
  stack.next = pool.idle;
  pool.idle = &stack;
  ++idle_count;
}

// Under stacks_mutex.
void shrink_depot(std::size_t down_to) noexcept {
  for (Pool& pool : pools)
    while (idle_count > down_to && pool.idle != nullptr) {
      Stack* stack = pool.idle;
      pool.idle = stack->next;
      make_cold(*stack);
      --idle_count;
      ++cold_count;
    }
}

// Moves all but the `kept` stacks that were released last.
void flush(detail::ThreadBlock& block, std::uint32_t kept) noexcept {
  Stack** link = &block.idle;
  for (std::uint32_t i = 0; i < kept; ++i)
    link = &(*link)->next;
  Stack* stack = std::exchange(*link, nullptr);
  block.idle_count = kept;
  const std::lock_guard lock(stacks_mutex());
  while (stack != nullptr)
    put_in_depot(*std::exchange(stack, stack->next));
}

Result<Stack*> adopt(std::span<std::byte> memory) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = (begin + memory.size()) & ~std::uintptr_t{63};
  if (memory.size() < kMinimumStackBytes)
    return Errc::invalid_argument;
  auto* stack = ::new (reinterpret_cast<void*>(end - sizeof(Stack))) Stack{};
  stack->low = memory.data();
  stack->bottom = stack->low;
  stack->top = stack->high();
  stack->special = detail::kUsersMemory;
  set_first_context(*stack);
  const std::lock_guard lock(stacks_mutex());
  link_users_stack(*stack);
  return stack;
}

Result<Stack*> find_for(const StackOptions& options) noexcept {
  if (options.memory.data() != nullptr)
    return adopt(options.memory);
  const std::size_t bytes = options.bytes == 0 ? kDefaultStackBytes : options.bytes;
  if (bytes < kMinimumStackBytes || bytes > kMostBytes)
    return Errc::invalid_argument;
  const unsigned size_class = class_of(bytes);
  const bool is_default = size_class == class_of(kDefaultStackBytes);
  if (Stack* hot = is_default ? detail::take_idle_stack() : nullptr)
    return hot;
  Result<Stack*> stack = take(size_class);
  if (stack && !is_default)
    (*stack)->special |= detail::kOtherSize;
  return stack;
}

// A child has the one thread that forked, and whatever another held stays locked in it.
bool arrange_forks() noexcept {
  os::call_around_fork([] { stacks_mutex().lock(); }, [] { stacks_mutex().unlock(); });
  return true;
}

} // namespace

StackSettings settings() noexcept {
  const std::lock_guard lock(stacks_mutex());
  return current_settings;
}

StackCounts count_stacks() noexcept {
  const std::lock_guard lock(stacks_mutex());
  const std::size_t mine = detail::thread().idle_count;
  return {carved_count - cold_count - idle_count - mine, idle_count + mine, cold_count};
}

void flush_idle_stacks(detail::ThreadBlock& block) noexcept {
  flush(block, 0);
}

} // namespace cede::core

namespace cede::detail {

Result<Stack*> reserve_stack(const StackOptions& options) {
  core::report_overflows();
  core::enter_thread();
  static const bool forks_are_arranged = core::arrange_forks();
  static_cast<void>(forks_are_arranged);
  Result<Stack*> reserved = core::find_for(options);
  if (!reserved)
    return reserved;
  Stack& stack = **reserved;
  core::tell_of_new_process(stack);
  if (!options.name.empty()) {
    stack.name[options.name.copy(stack.name, sizeof stack.name - 1)] = '\0';
    stack.special |= kNamed;
  }
  if (options.paint) {
    std::memset(stack.low, static_cast<int>(core::kPaint),
                static_cast<std::size_t>(stack.top - stack.low));
    stack.special |= kPainted;
  }
  if (core::are_switches_observed())
    stack.special |= kObserved;
  return reserved;
}

void release_stack(Stack& stack) noexcept {
  core::enter_thread();
  core::tell_of_ended_process(stack);
  const std::uint32_t special = std::exchange(stack.special, 0);
  stack.name[0] = '\0';
  if (special & kUsersMemory) {
    const std::lock_guard lock(core::stacks_mutex());
    core::unlink_users_stack(stack);
    return;
  }
  ThreadBlock& block = thread();
  if (special & (kOtherSize | kPainted) || block.idle_limit == 0) {
    const std::lock_guard lock(core::stacks_mutex());
    core::put_in_depot(stack);
    return;
  }
  if (block.idle_count >= block.idle_limit)
    core::flush(block, block.idle_limit / 2);
  give_idle_stack(stack);
}

} // namespace cede::detail

namespace cede {

void configure_stacks(const StackSettings& settings) {
  const std::lock_guard lock(core::stacks_mutex());
  core::current_settings = settings;
  core::shrink_depot(settings.idle_stacks);
}

void trim() {
  core::flush_idle_stacks(detail::thread());
  const std::lock_guard lock(core::stacks_mutex());
  core::shrink_depot(0);
  for (core::Pool& pool : core::pools) {
    detail::Slab** link = &pool.slabs;
    while (detail::Slab* slab = *link) {
      if (slab->cold_count < slab->carved.load(std::memory_order_relaxed)) {
        link = &slab->sibling;
        continue;
      }
      *link = slab->sibling;
      core::cold_count -= slab->cold_count;
      core::carved_count -= slab->cold_count;
      core::unreserve_slab(*slab);
      --pool.slabs_reserved;
    }
  }
}

} // namespace cede
