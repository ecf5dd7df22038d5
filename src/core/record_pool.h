// SPDX-License-Identifier: MIT
// Memory of fiber records. Layer core.
//
// Invariants: a record lies in a block aligned to its size, whose head leads to the pool. The pool
// lives until its scheduler and the last record in use are gone, so handles may outlive both.
#pragma once

#include <cede/detail/fiber_record.h>

#include <cstddef>

namespace cede::core {

class RecordPool {
public:
  RecordPool() = default;
  RecordPool(const RecordPool&) = delete;
  RecordPool& operator=(const RecordPool&) = delete;

  // Null without memory.
  detail::FiberRecord* take() noexcept {
    if (detail::FiberRecord* record = free_; record != nullptr) [[likely]] {
      free_ = record->next;
      ++in_use_;
      return record;
    }
    return take_from_new_block();
  }

  // May destroy the pool.
  static void give(detail::FiberRecord& record) noexcept;

  // The scheduler is gone. May destroy the pool.
  void abandon() noexcept;

  std::size_t in_use() const noexcept { return in_use_; }

  // Calls `visit` with every record, also those that are not in use: their stage tells.
  template <class Visit>
  void for_each(Visit visit);

private:
  struct Block;
  static constexpr std::size_t kBlockBytes = 64 * 1024;
  static constexpr std::size_t kBlockRecords = kBlockBytes / sizeof(detail::FiberRecord) - 1;

  ~RecordPool();
  detail::FiberRecord* take_from_new_block() noexcept;
  static Block& block_of(detail::FiberRecord& record) noexcept;
  void destroy_if_unused() noexcept;

  detail::FiberRecord* free_ = nullptr;
  Block* blocks_ = nullptr;
  std::size_t in_use_ = 0;
  bool is_abandoned_ = false;
};

struct RecordPool::Block {
  RecordPool* pool;
  Block* next;
  std::size_t carved; // of the records below, the first so many have been handed out once
  alignas(detail::FiberRecord) std::byte memory[kBlockRecords * sizeof(detail::FiberRecord)];

  detail::FiberRecord& record(std::size_t index) noexcept {
    return reinterpret_cast<detail::FiberRecord*>(memory)[index];
  }
};

template <class Visit>
void RecordPool::for_each(Visit visit) {
  for (Block* block = blocks_; block != nullptr; block = block->next)
    for (std::size_t i = 0; i < block->carved; ++i)
      visit(block->record(i));
}

} // namespace cede::core
