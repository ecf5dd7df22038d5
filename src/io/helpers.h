// SPDX-License-Identifier: MIT
// A scheduler's helper threads: they do one call after the other and tell the scheduler. Layer io.
//
// Invariants: a call is on the queue, or a thread does it, or it is on its way through the inbox;
// its fiber waits all the time. Each thread is counted as idle exactly while it waits for a call.
#pragma once

#include "../core/inbox.h"
#include "../core/scheduler_state.h"

#include <cede/blocking.h>
#include <cede/detail/message.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cede::io {

// A call, and the fiber that waits for it.
struct Job : detail::Message {
  Job(detail::HelperCall& asked, Waiter& waiting) noexcept;

  detail::HelperCall* const call;
  // the scheduler's thread only
  Waiter* waiter;
  bool has_ended = false;
  // under the helpers' mutex
  Job* next_queued = nullptr;
};

class Helpers final : public core::Attachment {
public:
  explicit Helpers(const core::SchedulerState& scheduler);
  // All calls have ended.
  ~Helpers() override;

  // Takes it, to be done in turn.
  //   Fails     again: as many wait as may, or there is no thread to do it
  Result<void> submit(Job& job) noexcept;
  // Takes it back. False if it has begun, and comes through the inbox.
  bool withdraw(Job& job) noexcept;

private:
  bool start_thread() noexcept;
  void serve();

  // set at construction
  const std::shared_ptr<core::Inbox> inbox_;
  const std::size_t thread_limit_;
  const std::size_t queue_limit_;
  // under mutex_
  std::mutex mutex_;
  std::condition_variable has_work_;
  Job* first_ = nullptr;
  Job** last_ = &first_;
  std::size_t queued_ = 0;
  std::size_t idle_ = 0;
  bool is_ending_ = false;
  // the scheduler's thread only
  std::vector<std::thread> threads_;
};

} // namespace cede::io
