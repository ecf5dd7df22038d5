// SPDX-License-Identifier: MIT
// What a scheduler that is watched shows to other threads: how many dispatches there were, and whom
// the last one was of. Layer core.
//
// Invariants: the scheduler's thread writes, any thread reads. A dispatch is counted before it is
// described, so who reads a description and then finds the count as it was knows that they belong
// together.
#pragma once

#include <cede/detail/fiber_record.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cede::core {

class Heartbeat {
public:
  // -- the scheduler's thread --------------------------------------------------------------------

  // `fiber` runs from now on; null for the pump.
  void beat(const detail::FiberRecord* fiber) noexcept;
  // Nobody runs from now on: the thread sleeps, or drives another.
  void rest() noexcept { count(kResting); }

  // -- any thread --------------------------------------------------------------------------------

  // Another one after each beat and rest.
  std::uint64_t now() const noexcept { return beats_.load(std::memory_order_relaxed); }
  static bool is_at_rest(std::uint64_t beat) noexcept { return (beat & kResting) != 0; }

  // Whose a beat is; false if that is over.
  bool describe(std::uint64_t beat, std::uint64_t& id, std::string& name) const;

private:
  static constexpr std::uint64_t kResting = 1;
  static constexpr std::size_t kWords = 4;

  void count(std::uint64_t state) noexcept {
    beats_.store(((beats_.load(std::memory_order_relaxed) >> 1) + 1) << 1 | state,
                 std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> beats_{kResting};
  // Stored with release and loaded with acquire: who sees a new one sees the new count.
  std::atomic<std::uint64_t> id_{0};
  std::atomic<std::uint64_t> name_[kWords]{};
};

} // namespace cede::core
