// SPDX-License-Identifier: MIT
#include <cede/scheduler.h>

#include "check.h"
#include "dump.h"
#include "inbox.h"
#include "lock_order.h"
#include "poller_choice.h"
#include "pump.h"
#include "scheduler_state.h"

#include <cede/remote.h>
#include <utility>

namespace cede {

using core::SchedulerState;
using detail::FiberRecord;

namespace {

void check_owner(const SchedulerState& scheduler) noexcept {
  CEDE_CHECK(scheduler.is_on_its_thread(),
             "a scheduler is used on another thread than the one that made it: use its Remote");
}

} // namespace

Scheduler::Scheduler(SchedulerOptions options)
    : state_(std::make_unique<SchedulerState>(options)) {}

Scheduler::~Scheduler() {
  const std::vector<FiberInfo> left = drain(kForever);
  if (left.empty())
    return;
  core::report_deadlock(*state_);
  CEDE_CHECK(left.empty(), "a scheduler is destroyed whose fibers can never end");
}

void Scheduler::run() {
  while (core::drive(*state_, kForever) == Progress::deadlock)
    core::end_of_all(*state_);
}

Progress Scheduler::run_until(Deadline deadline) {
  return core::drive(*state_, deadline);
}

Progress Scheduler::step() {
  return core::drive_one(*state_);
}

Progress Scheduler::poll_until(Deadline deadline) {
  const Progress progress = core::await_work(*state_, deadline);
  return progress == Progress::worked ? core::drive_one(*state_) : progress;
}

TimePoint Scheduler::now() const noexcept {
  return state_->time();
}

std::size_t Scheduler::alive() const noexcept {
  check_owner(*state_);
  return state_->alive;
}

void Scheduler::close() noexcept {
  check_owner(*state_);
  state_->is_closing = true;
  state_->inbox->refuse_posts();
  state_->records->for_each([this](FiberRecord& fiber) { state_->request_cancel(fiber); });
}

std::vector<FiberInfo> Scheduler::drain(Deadline deadline) {
  close();
  core::drive(*state_, deadline);
  return fibers();
}

Remote Scheduler::remote() {
  check_owner(*state_);
  return Remote(state_->inbox);
}

Result<const char*> Scheduler::backend_name() {
  check_owner(*state_);
  if (state_->inbox->poller() == nullptr)
    if (Result<void> chosen = core::choose_poller(*state_); !chosen)
      return chosen.error();
  return state_->inbox->poller()->name();
}

void Scheduler::set_unhandled(UnhandledError handler) {
  check_owner(*state_);
  state_->on_unhandled = std::move(handler);
}

void Scheduler::set_idle(IdleHook hook) {
  check_owner(*state_);
  state_->on_idle = std::move(hook);
}

void Scheduler::set_lock_order(LockOrderReport report) {
  check_owner(*state_);
  if (state_->lock_order != nullptr)
    state_->lock_order->set_handler(std::move(report));
}

void Scheduler::advance(std::chrono::nanoseconds duration) {
  check_owner(*state_);
  CEDE_CHECK(state_->options.has_test_clock, "only a test clock can be moved");
  state_->test_time =
      Deadline::from_nanoseconds(
          detail::add_saturated(state_->test_time.time_since_epoch().count(), duration.count()))
          .time();
}

std::vector<FiberInfo> Scheduler::fibers() const {
  check_owner(*state_);
  return core::list_fibers(*state_);
}

std::string Scheduler::dump() const {
  check_owner(*state_);
  return core::dump_fibers(*state_);
}

SchedulerMetrics Scheduler::metrics() const noexcept {
  check_owner(*state_);
  SchedulerMetrics metrics = state_->counted;
  metrics.alive = state_->alive;
  metrics.stacks = state_->stacks;
  metrics.deadlines = state_->deadlines.size();
  metrics.spawned = state_->last_id;
  state_->revoke_quick_yields(); // brings the count up to date
  metrics.switches = state_->switches;
  metrics.posts_refused = state_->inbox->posts_refused();
  metrics.posts_waiting = state_->inbox->posts_waiting();
  metrics.unhandled_errors = state_->unhandled_errors;
  return metrics;
}

namespace detail {

void run_main(Scheduler& scheduler, const AnyFiber& main) {
  FiberRecord& record = *FiberAccess::record(main);
  record.uses_thread_values = true;
  SchedulerState& state = *record.scheduler;
  while (core::drive(state, kForever, &record) == Progress::deadlock)
    core::end_of_all(state);
  scheduler.close();
  scheduler.run();
}

} // namespace detail
} // namespace cede
