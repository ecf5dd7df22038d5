// SPDX-License-Identifier: MIT
// What threads send to a scheduler.
#pragma once

namespace cede::core {
class Inbox;
struct SchedulerState;
} // namespace cede::core

namespace cede::detail {

// Made by any thread. Once it was accepted, one of the two is called, once, on the scheduler's
// thread, and the message is its own after that.
struct Message {
  Message* next = nullptr;
  void (*run)(Message& message, core::SchedulerState& scheduler) = nullptr;
  // The scheduler ends before its turn has come.
  void (*discard)(Message& message) noexcept = nullptr;
  bool is_counted = false; // against the limit on posts
};

} // namespace cede::detail
