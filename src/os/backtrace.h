// SPDX-License-Identifier: MIT
// Backtraces of other threads, while they run. Layer os.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

namespace cede::os {

// A thread that backtraces are taken of. Only that thread makes and destroys it.
class BacktraceTarget {
public:
  static constexpr std::size_t kMostFrames = 64;

  BacktraceTarget() noexcept;
  BacktraceTarget(const BacktraceTarget&) = delete;
  BacktraceTarget& operator=(const BacktraceTarget&) = delete;
  ~BacktraceTarget();

  // Interrupts the thread and fills `frames`, innermost first. Gives how many there are: none where
  // the system can't, or if the thread hasn't answered within `patience`. One caller at a time, on
  // another thread.
  std::size_t take(void* (&frames)[kMostFrames], std::chrono::nanoseconds patience) noexcept;

  // Async-signal-safe: on the thread itself. False if nothing was asked of it.
  bool answer(const void* interrupted_at) noexcept;
  BacktraceTarget* older() const noexcept { return older_.load(std::memory_order_relaxed); }

private:
  // Whoever changes it from `asked` owns the frames until the next change.
  enum class Stage : unsigned char { idle, asked, answering, answered };

  std::atomic<Stage> stage_{Stage::idle};
  std::size_t count_ = 0;
  void* frames_[kMostFrames];
  std::atomic<BacktraceTarget*> older_{nullptr}; // the same thread's, made before
  unsigned long long thread_ = 0;
};

// An address in words, as far as the system knows: its file, function and distance.
std::string name_of_address(const void* address);

} // namespace cede::os
