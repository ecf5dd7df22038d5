// SPDX-License-Identifier: MIT
// The waits that end by time, as a heap. Layer core.
//
// Invariants: ordered by deadline and, among equal ones, by the order in which they were set. Each
// waiter in it knows its place, so that it can be taken out. Four children a node: half the depth
// of a binary heap, and the four stand side by side.
#pragma once

#include <cede/waiter.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cede::core {

class Deadlines {
public:
  static constexpr std::size_t kNowhere = SIZE_MAX;

  bool is_empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }

  // Makes room for as many, so that insert() can't fail.
  void reserve(std::size_t count) {
    if (count > heap_.capacity())
      grow(count);
  }

  void insert(Waiter& waiter, Deadline deadline) noexcept;
  void remove(Waiter& waiter) noexcept;

  // The nearest one; kForever if there is none.
  Deadline nearest() const noexcept;
  // The first in turn; null if it is not due at `time`.
  Waiter* first_due(TimePoint time) const noexcept;
  // That of a waiter; kForever if it has none.
  Deadline of(const Waiter& waiter) const noexcept;

private:
  struct Entry {
    std::int64_t nanoseconds;
    std::uint64_t turn;
    Waiter* waiter;

    bool is_before(const Entry& other) const noexcept {
      return nanoseconds != other.nanoseconds ? nanoseconds < other.nanoseconds : turn < other.turn;
    }
  };

  void grow(std::size_t count);
  void put(std::size_t at, const Entry& entry) noexcept;
  void rise(std::size_t at, const Entry& entry) noexcept;
  void sink(std::size_t at, const Entry& entry) noexcept;

  std::vector<Entry> heap_;
  std::uint64_t turns_ = 0;
};

} // namespace cede::core
