// SPDX-License-Identifier: MIT
#include "helpers.h"

#include "../core/check.h"
#include "../os/thread.h"

#include <cede/cancel.h>
#include <cede/detail/wait.h>

#include <tuple>
#include <utility>

namespace cede {

namespace io {

namespace {

void tell(detail::Message& message, core::SchedulerState& scheduler) {
  --scheduler.jobs;
  auto& job = static_cast<Job&>(message);
  job.has_ended = true;
  job.waiter->fire();
}

} // namespace

// It is never discarded: while it is on its way its fiber lives, and so does the scheduler.
Job::Job(detail::HelperCall& asked, Waiter& waiting) noexcept
    : Message{nullptr, tell, nullptr, false}, call(&asked), waiter(&waiting) {}

Helpers::Helpers(const core::SchedulerState& scheduler)
    : inbox_(scheduler.inbox), thread_limit_(scheduler.options.helpers),
      queue_limit_(scheduler.options.helper_queue) {
  threads_.reserve(thread_limit_);
}

Helpers::~Helpers() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

Result<void> Helpers::submit(Job& job) noexcept {
  std::unique_lock lock(mutex_);
  if (queued_ >= idle_) { // nobody is left for this one
    if (threads_.size() < thread_limit_ && start_thread())
      ++idle_; // on its behalf, until it has looked
    else if (threads_.empty() || queued_ - idle_ >= queue_limit_)
      return Errc::again;
  }
  ++queued_;
  job.next_queued = nullptr;
  *last_ = &job;
  last_ = &job.next_queued;
  lock.unlock();
  has_work_.notify_one();
  return {};
}

bool Helpers::withdraw(Job& job) noexcept {
  const std::scoped_lock lock(mutex_);
  for (Job** place = &first_; *place != nullptr; place = &(*place)->next_queued)
    if (*place == &job) {
      *place = job.next_queued;
      if (last_ == &job.next_queued)
        last_ = place;
      --queued_;
      return true;
    }
  return false;
}

bool Helpers::start_thread() noexcept {
  try {
    os::WithoutSignals scope; // they belong to the program's own threads
    threads_.emplace_back([this] { serve(); });
    return true;
  } catch (...) {
    return false;
  }
}

void Helpers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [this] { return first_ != nullptr || is_ending_; });
    if (first_ == nullptr)
      return;
    Job& job = *first_;
    first_ = job.next_queued;
    if (first_ == nullptr)
      last_ = &first_;
    --queued_;
    --idle_;
    lock.unlock();
    job.call->work(*job.call);
    lock.lock();
    ++idle_; // before the fiber can call again
    lock.unlock();
    inbox_->send(job); // from here on its fiber may go on, and it is gone
    lock.lock();
  }
}

} // namespace io

namespace detail {

namespace {

// Null without memory.
io::Helpers* helpers_of(core::SchedulerState& scheduler) noexcept {
  try {
    if (scheduler.helpers == nullptr)
      scheduler.helpers = std::make_unique<io::Helpers>(scheduler);
  } catch (...) {
    return nullptr;
  }
  return static_cast<io::Helpers*>(scheduler.helpers.get());
}

} // namespace

// The waits don't throw: a call that has begun is waited for.
Result<void> call_helper(HelperCall& call, Deadline deadline, WhenUnwinding rule) {
  core::SchedulerState* scheduler = core::SchedulerState::driven();
  if (scheduler == nullptr) {
    call.work(call);
    return {};
  }
  CEDE_CHECK(!scheduler->runs_pump(),
             "a wait in what the scheduler itself calls: a post, a hook or a handler");
  if (has_to_look()) [[unlikely]]
    if (Result<void> met = meet_request_on_entry(rule); !met)
      return met;
  io::Helpers* helpers = helpers_of(*scheduler);
  if (helpers == nullptr)
    return Errc::again;
  const WhenUnwinding rule_now =
      core::has_to_report(*scheduler->current) ? rule : WhenUnwinding::report;
  WakeReason reason{};
  {
    const CancelByResult quietly;
    Waiter waiter("blocking");
    io::Job job(call, waiter);
    if (Result<void> submitted = helpers->submit(job); !submitted)
      return submitted;
    ++scheduler->jobs;
    reason = waiter.wait(deadline, rule_now);
    if (reason == WakeReason::woken)
      return {};
    if (job.has_ended) // after the wait, and before this fiber's turn
      return {};
    if (!helpers->withdraw(job)) {
      call.stop(call);
      const Shield shield;
      Waiter end("blocking");
      job.waiter = &end;
      end.wait();
      return {};
    }
    --scheduler->jobs;
  }
  if (reason == WakeReason::cancelled)
    std::ignore = meet_request_on_entry(WhenUnwinding::report); // throws, if it may
  return result_of_wait(reason);
}

} // namespace detail

} // namespace cede
