// SPDX-License-Identifier: MIT
#include "record_pool.h"

#include <cstdint>
#include <new>

namespace cede::core {

using detail::FiberRecord;

namespace {
constexpr std::align_val_t kBlockAlignment{64 * 1024};
} // namespace

RecordPool::Block& RecordPool::block_of(FiberRecord& record) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(&record);
  return *reinterpret_cast<Block*>(address & ~std::uintptr_t{kBlockBytes - 1});
}

// Records are carved one by one: what was never used stays without memory.
FiberRecord* RecordPool::take_from_new_block() noexcept {
  static_assert(sizeof(Block) <= kBlockBytes);
  if (blocks_ == nullptr || blocks_->carved == kBlockRecords) {
    void* memory = ::operator new(kBlockBytes, kBlockAlignment, std::nothrow);
    if (memory == nullptr)
      return nullptr;
    auto* block = ::new (memory) Block;
    block->pool = this;
    block->next = blocks_;
    block->carved = 0;
    blocks_ = block;
  }
  ++in_use_;
  return ::new (static_cast<void*>(&blocks_->record(blocks_->carved++))) FiberRecord;
}

void RecordPool::give(FiberRecord& record) noexcept {
  RecordPool& pool = *block_of(record).pool;
  record.next = pool.free_;
  pool.free_ = &record;
  --pool.in_use_;
  pool.destroy_if_unused();
}

void RecordPool::abandon() noexcept {
  is_abandoned_ = true;
  destroy_if_unused();
}

void RecordPool::destroy_if_unused() noexcept {
  if (is_abandoned_ && in_use_ == 0)
    delete this;
}

RecordPool::~RecordPool() {
  while (blocks_ != nullptr) {
    Block* next = blocks_->next;
    ::operator delete(blocks_, kBlockAlignment);
    blocks_ = next;
  }
}

} // namespace cede::core
