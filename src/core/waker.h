// SPDX-License-Identifier: MIT
// What the Wakers of one fiber share. Layer core.
//
// Invariants: the fiber holds a reference until it ends, each Waker one, and the message one while
// it is on its way. `fiber` is read and written on the scheduler's thread only.
#pragma once

#include "inbox.h"

#include <cede/detail/fiber_record.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace cede::detail {

// Of the one message of a WakerState.
enum class WakeStage : std::uint8_t {
  none,
  sent,
  sent_and_asked_again, // by somebody whose posts may come after it
};

struct WakerState : Message {
  // any thread
  std::atomic<std::size_t> references{1};
  std::atomic<std::size_t> handles{0};
  std::atomic<WakeStage> stage{WakeStage::none};
  const std::shared_ptr<core::Inbox> inbox;
  // owner thread only
  FiberRecord* fiber;          // null once it has ended
  WakerState* older = nullptr; // on the scheduler's list, until then
  WakerState* newer = nullptr;

  WakerState(std::shared_ptr<core::Inbox> home, FiberRecord& woken);
  void wake() noexcept;
  void release() noexcept;
};

} // namespace cede::detail

namespace cede::core {

// Whether a fiber is parked that another thread could wake.
bool has_used_waker(const SchedulerState& scheduler) noexcept;

} // namespace cede::core
