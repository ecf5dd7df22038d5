// SPDX-License-Identifier: MIT
#include "pump.h"

#include "check.h"
#include "dump.h"
#include "heartbeat.h"
#include "inbox.h"
#include "manager.h"
#include "metrics.h"
#include "scheduler_state.h"
#include "thread.h"
#include "waker.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace cede::core {

using detail::FiberRecord;

namespace {

constexpr std::size_t kAllPosts = std::numeric_limits<std::size_t>::max();

// For a watchdog: the pump works, or leaves.
void beat(const SchedulerState& scheduler) noexcept {
  if (scheduler.heartbeat != nullptr)
    scheduler.heartbeat->beat(nullptr);
}
void rest(const SchedulerState& scheduler) noexcept {
  if (scheduler.heartbeat != nullptr)
    scheduler.heartbeat->rest();
}

// The posts that are there now, not those that they make: they can't keep the fibers from running.
void run_posts(SchedulerState& scheduler, std::size_t most) {
  std::size_t count = std::min(most, scheduler.inbox->posts_waiting() + 1);
  bool is_post = false;
  while (count > 0) {
    detail::Message* message = scheduler.inbox->take();
    if (message == nullptr)
      return;
    beat(scheduler);
    is_post = message->is_counted;
    message->run(*message, scheduler);
    count -= is_post ? 1 : 0;
  }
}

// The clock is read once, so what becomes due meanwhile waits for the next time. A deadline that
// had passed by the time before is that of a wait which began after it.
void wake_the_due(SchedulerState& scheduler) {
  if (scheduler.deadlines.is_empty() && !scheduler.options.times_slices) {
    scheduler.is_round_timed = false;
    return;
  }
  SchedulerMetrics& counted = scheduler.counted;
  const TimePoint before = std::exchange(scheduler.served, scheduler.time());
  if (std::exchange(scheduler.is_round_timed, true))
    counted.longest_round = std::max(counted.longest_round, scheduler.served - before);
  while (Waiter* waiter = scheduler.deadlines.first_due(scheduler.served)) {
    if (const TimePoint due = scheduler.deadlines.of(*waiter).time(); due > before)
      note_lateness(counted, scheduler.served - due);
    waiter->fire(WakeReason::timed_out);
  }
}

// They were not finished earlier, so that a deadline which comes with one loses to it.
void wake_finished(SchedulerState& scheduler, os::Operation* finished) noexcept {
  while (finished != nullptr) {
    // The wait ends, and whoever had it may free it.
    auto& operation = static_cast<AwaitedOperation&>(*std::exchange(finished, finished->next));
    --scheduler.operations;
    operation.waiter->fire(WakeReason::woken, operation.place);
  }
}

void serve(SchedulerState& scheduler, std::size_t most_posts) {
  if (scheduler.is_pump_called) {
    scheduler.is_pump_called = false;
    scheduler.ready.remove(scheduler.pump);
  }
  beat(scheduler);
  scheduler.reset_service();
  ++scheduler.counted.services;
  bury_the_dead(scheduler);
  run_posts(scheduler, most_posts);
  if (scheduler.operations > 0)
    wake_finished(scheduler, scheduler.inbox->poll());
  wake_the_due(scheduler);
}

bool is_left(const SchedulerState& scheduler) noexcept {
  return scheduler.alive > 0 || !scheduler.inbox->is_empty();
}

// Whether somebody outside may yet send something, or has. The inbox is looked at last: who sends
// and is gone before the next look is seen in one of them.
bool can_be_reached(const SchedulerState& scheduler) noexcept {
  return scheduler.operations > 0 || scheduler.jobs > 0 || scheduler.inbox->has_holders() ||
         has_used_waker(scheduler) || !scheduler.inbox->is_empty();
}

bool can_be_woken(const SchedulerState& scheduler) noexcept {
  return !scheduler.deadlines.is_empty() || can_be_reached(scheduler);
}

// With a test clock the time of the nearest deadline comes at once, unless somebody else may still
// send something that comes before it.
void wait(SchedulerState& scheduler, Deadline deadline) {
  ++scheduler.counted.idle_waits;
  scheduler.is_round_timed = false;
  rest(scheduler);
  const Deadline nearest = std::min(scheduler.deadlines.nearest(), deadline);
  if (scheduler.options.has_test_clock && !nearest.is_forever() && !can_be_reached(scheduler))
    scheduler.test_time = std::max(scheduler.test_time, nearest.time());
  else if (scheduler.options.has_test_clock)
    wake_finished(scheduler, scheduler.inbox->wait(os::PollTime::max()));
  else
    wake_finished(scheduler, scheduler.inbox->wait(nearest.time()));
}

} // namespace

FiberRecord* poll_in_place(SchedulerState& scheduler) noexcept {
  if (scheduler.options.has_test_clock)
    return nullptr;
  while (scheduler.operations > 0 && scheduler.graves == nullptr && scheduler.failed == nullptr &&
         scheduler.inbox->is_empty()) {
    const Deadline until = std::min(scheduler.deadlines.nearest(), scheduler.driven_until);
    wait(scheduler, until);
    if (FiberRecord* next = scheduler.next_fiber())
      return next;
    if (!until.is_forever() && until.time() <= scheduler.time())
      break;
  }
  return nullptr;
}

Driving::Driving(SchedulerState& scheduler) noexcept {
  CEDE_CHECK(scheduler.is_on_its_thread(),
             "a scheduler is driven on another thread than the one that made it");
  CEDE_CHECK(SchedulerState::driven() == nullptr,
             "a scheduler is driven from within one that is driven already");
  enter_thread();
  detail::thread().dispatch = &scheduler;
  beat(scheduler);
}

Driving::~Driving() {
  SchedulerState& scheduler = *SchedulerState::driven();
  scheduler.is_round_timed = false;
  rest(scheduler);
  detail::thread().dispatch = &no_scheduler;
}

Progress drive(SchedulerState& scheduler, Deadline deadline, const FiberRecord* awaited) {
  const Driving driving(scheduler);
  scheduler.awaited = awaited;
  scheduler.driven_until = deadline;
  bool is_last_pass_over = false;
  for (;;) {
    serve(scheduler, kAllPosts);
    if (awaited != nullptr && awaited->stage == detail::FiberStage::finished)
      return Progress::worked;
    const bool is_time_up = !deadline.is_forever() && deadline.time() <= scheduler.time();
    if (is_time_up && std::exchange(is_last_pass_over, true))
      return is_left(scheduler) ? Progress::timed_out : Progress::closed;
    if (FiberRecord* next = scheduler.next_fiber()) {
      if (is_time_up)
        scheduler.end_round_with_pump(next->priority);
      scheduler.run_fibers(*next);
      continue;
    }
    if (!is_left(scheduler))
      return Progress::closed;
    if (is_time_up)
      return Progress::timed_out;
    if (scheduler.has_work())
      continue;
    if (can_be_woken(scheduler))
      wait(scheduler, deadline);
    else if (!scheduler.end_starved())
      return Progress::deadlock;
  }
}

Progress drive_one(SchedulerState& scheduler) {
  const Driving driving(scheduler);
  const std::size_t posts = scheduler.inbox->posts_waiting();
  serve(scheduler, 1);
  FiberRecord* next = scheduler.next_fiber();
  if (next != nullptr) {
    scheduler.is_stepping = true;
    scheduler.run_fibers(*next);
    scheduler.is_stepping = false;
    bury_the_dead(scheduler);
  }
  if (next != nullptr || posts > 0)
    return Progress::worked;
  if (!is_left(scheduler))
    return Progress::closed;
  if (can_be_woken(scheduler))
    return Progress::timed_out;
  return scheduler.end_starved() ? Progress::worked : Progress::deadlock;
}

Progress await_work(SchedulerState& scheduler, Deadline deadline) {
  const Driving driving(scheduler);
  for (;;) {
    bury_the_dead(scheduler);
    if (scheduler.has_work())
      return Progress::worked;
    if (!is_left(scheduler))
      return Progress::closed;
    if (!deadline.is_forever() && deadline.time() <= scheduler.time())
      return Progress::timed_out;
    if (can_be_woken(scheduler))
      wait(scheduler, deadline);
    else if (!scheduler.end_starved())
      return Progress::deadlock;
  }
}

void end_of_all(SchedulerState& scheduler) {
  {
    const Driving driving(scheduler);
    if (scheduler.on_idle && scheduler.on_idle() && scheduler.has_work())
      return;
  }
  report_deadlock(scheduler);
  std::exit(51);
}

} // namespace cede::core
