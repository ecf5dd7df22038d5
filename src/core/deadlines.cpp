// SPDX-License-Identifier: MIT
#include "deadlines.h"

#include <algorithm>

namespace cede::core {

namespace {
constexpr std::size_t kChildren = 4;
} // namespace

void Deadlines::grow(std::size_t count) {
  heap_.reserve(std::max(count, 2 * heap_.capacity()));
}

void Deadlines::insert(Waiter& waiter, Deadline deadline) noexcept {
  const Entry entry{deadline.nanoseconds(), turns_++, &waiter};
  heap_.push_back(entry);
  rise(heap_.size() - 1, entry);
}

void Deadlines::remove(Waiter& waiter) noexcept {
  const std::size_t at = waiter.deadline_at_;
  if (at == kNowhere)
    return;
  waiter.deadline_at_ = kNowhere;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (at == heap_.size())
    return;
  if (at > 0 && last.is_before(heap_[(at - 1) / kChildren]))
    rise(at, last);
  else
    sink(at, last);
}

Deadline Deadlines::nearest() const noexcept {
  return heap_.empty() ? kForever : Deadline::from_nanoseconds(heap_.front().nanoseconds);
}

Waiter* Deadlines::first_due(TimePoint time) const noexcept {
  return !heap_.empty() && heap_.front().nanoseconds <= time.time_since_epoch().count()
             ? heap_.front().waiter
             : nullptr;
}

Deadline Deadlines::of(const Waiter& waiter) const noexcept {
  const std::size_t at = waiter.deadline_at_;
  return at == kNowhere ? kForever : Deadline::from_nanoseconds(heap_[at].nanoseconds);
}

void Deadlines::put(std::size_t at, const Entry& entry) noexcept {
  heap_[at] = entry;
  entry.waiter->deadline_at_ = at;
}

void Deadlines::rise(std::size_t at, const Entry& entry) noexcept {
  while (at > 0) {
    const std::size_t parent = (at - 1) / kChildren;
    if (!entry.is_before(heap_[parent]))
      break;
    put(at, heap_[parent]);
    at = parent;
  }
  put(at, entry);
}

void Deadlines::sink(std::size_t at, const Entry& entry) noexcept {
  for (;;) {
    const std::size_t begin = at * kChildren + 1;
    if (begin >= heap_.size())
      break;
    const std::size_t end = std::min(begin + kChildren, heap_.size());
    std::size_t least = begin;
    for (std::size_t child = begin + 1; child < end; ++child)
      if (heap_[child].is_before(heap_[least]))
        least = child;
    if (!heap_[least].is_before(entry))
      break;
    put(at, heap_[least]);
    at = least;
  }
  put(at, entry);
}

} // namespace cede::core
