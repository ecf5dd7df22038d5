// SPDX-License-Identifier: MIT
#include <cede/watchdog.h>

#include "../os/backtrace.h"
#include "../os/fault.h"
#include "check.h"
#include "heartbeat.h"
#include "scheduler_state.h"
#include "thread.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace cede {

namespace core {

using Clock = std::chrono::steady_clock;

// How long to wait for a backtrace: a thread that blocks the OS signal never gives one, and one on
// a busy machine gives it late.
constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(1);

// A watchdog's thread, and what it shares with the scheduler's.
struct Watch {
  Watch(SchedulerState& watched, std::chrono::nanoseconds time, OverrunHandler on_overrun);
  ~Watch();

  // set at construction
  SchedulerState& scheduler; // the watching thread doesn't touch it
  const std::chrono::nanoseconds limit;
  const OverrunHandler handler;
  os::BacktraceTarget target;
  // any thread
  Heartbeat heartbeat;
  // under the mutex
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  // begins last and ends first
  std::thread thread;

private:
  void run();
  void tell_of(std::uint64_t beat, std::chrono::nanoseconds age);
};

Watch::Watch(SchedulerState& watched, std::chrono::nanoseconds time, OverrunHandler on_overrun)
    : scheduler(watched), limit(time), handler(std::move(on_overrun)) {
  CEDE_CHECK(scheduler.is_on_its_thread(),
             "a watchdog is made on another thread than its scheduler's");
  CEDE_CHECK(scheduler.heartbeat == nullptr, "a scheduler is watched by two watchdogs");
  if (limit <= std::chrono::nanoseconds(0))
    detail::throw_error(Errc::invalid_argument);
  enter_thread(); // so that what the backtraces need ends with it
  if (SchedulerState::driven() == &scheduler)
    heartbeat.beat(scheduler.runs_pump() ? nullptr : scheduler.current);
  thread = std::thread([this] { run(); });
  scheduler.watch_by(&heartbeat);
}

Watch::~Watch() {
  CEDE_CHECK(scheduler.is_on_its_thread(),
             "a watchdog is destroyed on another thread than its scheduler's");
  scheduler.watch_by(nullptr);
  {
    const std::lock_guard lock(mutex);
    is_over = true;
  }
  changed.notify_one();
  thread.join();
}

// A beat that was seen before is as old as that, at least.
void Watch::run() {
  const auto period = std::max<std::chrono::nanoseconds>(limit / 4, std::chrono::microseconds(100));
  std::uint64_t beat = heartbeat.now();
  Clock::time_point seen = Clock::now();
  std::chrono::nanoseconds next_report = limit;
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, period, [this] { return is_over; })) {
    lock.unlock();
    const std::uint64_t now = heartbeat.now();
    const std::chrono::nanoseconds age = Clock::now() - seen;
    if (now != beat || Heartbeat::is_at_rest(now)) {
      beat = now;
      seen = Clock::now();
      next_report = limit;
    } else if (age >= next_report) {
      tell_of(beat, age);
      next_report = 2 * age;
    }
    lock.lock();
  }
}

// Nothing, if it is over meanwhile.
void Watch::tell_of(std::uint64_t beat, std::chrono::nanoseconds age) {
  Overrun overrun;
  overrun.time = age;
  if (!heartbeat.describe(beat, overrun.id, overrun.name))
    return;
  void* frames[os::BacktraceTarget::kMostFrames];
  const std::size_t count = target.take(frames, kPatience);
  if (heartbeat.now() == beat) // else they may be of whoever ran then
    overrun.backtrace.assign(frames, frames + count);
  if (handler) {
    handler(overrun);
  } else {
    const std::string text = overrun.to_text();
    os::write_error(text.data(), text.size());
  }
}

namespace {

SchedulerState& driven_scheduler() noexcept {
  SchedulerState* scheduler = SchedulerState::driven();
  CEDE_CHECK(scheduler != nullptr, "a watchdog where no scheduler is driven");
  return *scheduler;
}

} // namespace
} // namespace core

std::string Overrun::to_text() const {
  std::string text = "cede: ";
  if (id == 0)
    text += "what a scheduler calls itself, a post, hook or handler, has not returned";
  else
    text += "fiber " + std::to_string(id) + (name.empty() ? "" : " (" + name + ")") +
            " has not yielded";
  text += " for " + std::to_string(std::chrono::floor<std::chrono::milliseconds>(time).count()) +
          " ms\n";
  for (const void* address : backtrace)
    text += "  " + os::name_of_address(address) + "\n";
  return text;
}

Watchdog::Watchdog(std::chrono::nanoseconds limit, OverrunHandler handler)
    : watch_(std::make_unique<core::Watch>(core::driven_scheduler(), limit, std::move(handler))) {}

Watchdog::Watchdog(Scheduler& scheduler, std::chrono::nanoseconds limit, OverrunHandler handler)
    : watch_(std::make_unique<core::Watch>(*scheduler.state_, limit, std::move(handler))) {}

Watchdog::~Watchdog() = default;

} // namespace cede
