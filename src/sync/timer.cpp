// SPDX-License-Identifier: MIT
#include <cede/timer.h>

#include <cede/detail/wait.h>

#include <algorithm>

namespace cede {

namespace {

Deadline later(Deadline point, std::chrono::nanoseconds duration, std::uint64_t times) noexcept {
  const auto left = static_cast<std::uint64_t>(detail::kLastNanosecond - point.nanoseconds());
  const auto each = static_cast<std::uint64_t>(duration.count());
  if (each != 0 && times > left / each)
    return kForever;
  return Deadline::from_nanoseconds(point.nanoseconds() + static_cast<std::int64_t>(each * times));
}

} // namespace

Timer::~Timer() {
  if (wait_ != nullptr)
    wait_->is_gone = true;
}

void Timer::start(TimerOptions options) noexcept {
  change(options, after(std::max(options.after, std::chrono::nanoseconds(0))));
}

void Timer::cancel() noexcept {
  change({}, kForever);
}

void Timer::change(TimerOptions options, Deadline due) noexcept {
  schedule_ = {options, due};
  if (wait_ != nullptr)
    wait_->is_unchanged = false;
  waiters_.wake_all();
}

TimerEvent Timer::Schedule::take(TimePoint time) noexcept {
  if (due.is_forever() || due.time() > time)
    return {};
  TimerEvent event{1, due.time()};
  if (options.interval.count() <= 0) {
    due = kForever;
  } else if (options.hard) {
    const auto missed = static_cast<std::uint64_t>((time - event.due) / options.interval);
    event = {missed + 1, later(due, options.interval, missed).time()};
    due = later(due, options.interval, missed + 1);
  } else {
    due = later(time, options.interval, 1);
  }
  return event;
}

// Once the wait is over the timer may be gone; and an expiry that ended it counts, whatever became
// of the timer since.
Result<TimerEvent> Timer::next(Deadline deadline) {
  if (detail::has_to_look()) [[unlikely]]
    if (Result<void> met = detail::meet_request_on_entry(WhenUnwinding::report); !met)
      return met.error();
  if (wait_ != nullptr)
    return Errc::busy;
  for (;;) {
    if (const TimerEvent event = schedule_.take(now()); event.hits > 0)
      return event;
    if (schedule_.due.is_forever())
      return Errc::closed;
    Wait wait;
    struct Scope {
      Timer& timer;
      Wait& wait;
      ~Scope() { // also if it is cancelled
        if (!wait.is_gone)
          timer.wait_ = nullptr;
      }
    };
    Schedule schedule = schedule_;
    Result<void> woken;
    {
      const Scope scope{*this, wait};
      wait_ = &wait;
      WaitLink place;
      woken = detail::wait_in(waiters_, place, "timer", std::min(schedule.due, deadline),
                              WhenUnwinding::report);
    }
    const bool has_expired = !woken && woken.error() == Errc::timed_out && schedule.due <= deadline;
    if (has_expired) {
      const TimerEvent event = schedule.take(now());
      if (!wait.is_gone && wait.is_unchanged)
        schedule_ = schedule;
      return event;
    }
    // A deadline that comes first loses to what is due when it is heard of.
    if (!woken && woken.error() == Errc::timed_out && !wait.is_gone && wait.is_unchanged)
      if (const TimerEvent event = schedule_.take(now()); event.hits > 0)
        return event;
    if (!woken)
      return woken.error();
    if (wait.is_gone)
      return Errc::closed;
  }
}

} // namespace cede
