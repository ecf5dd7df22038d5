// SPDX-License-Identifier: MIT
// Timers: expiries on a schedule, which nobody has to wait for while they happen.
#pragma once

#include <cede/result.h>
#include <cede/time.h>
#include <cede/waiter.h>

#include <chrono>
#include <cstdint>

namespace cede {

struct TimerOptions {
  std::chrono::nanoseconds after{0};    // from now to the first expiry; a negative one is none
  std::chrono::nanoseconds interval{0}; // from one to the next; a timer without one expires once
  // An interval begins where the one before ended, however late somebody asked: nothing drifts, and
  // expiries that nobody asked for are counted. Otherwise it begins when next() gives the expiry.
  bool hard = false;
};

struct TimerEvent {
  std::uint64_t hits = 0; // expiries since the last event; more than one of a hard timer only
  TimePoint due;          // of the latest of them
};

// Expires at a time, once or again and again:
//
//   cede::Timer tick({.after = 1s, .interval = 1s, .hard = true});
//   while (cede::Result<cede::TimerEvent> event = tick.next())
//     std::cout << event->hits << '\n';
//
// An expiry that comes before next() is kept for it. While nobody waits the timer does nothing: it
// is looked at when it is asked. In a select it is on_deadline(tick.due(), ...).
//   Thread    of the scheduler whose fibers wait
class Timer {
public:
  explicit Timer(TimerOptions options) noexcept { start(options); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer(); // whoever waits fails with closed

  // Waits for the next expiry, or takes the one that was kept, whatever the deadline.
  //   Blocks    the calling fiber
  //   Fails     closed: it was cancelled, or has expired for the last time; busy: another fiber
  //             waits; timed_out, cancelled, not_a_fiber
  //   Throws    Cancelled
  Result<TimerEvent> next(Deadline deadline = kForever);

  // There are no more expiries, and what was kept is dropped; whoever waits fails with closed.
  void cancel() noexcept;

  // Begins anew, from now, also after cancel(). Whoever waits waits for the new expiry.
  void start(TimerOptions options) noexcept;

  // The next expiry, or the one that is kept; kForever if there are no more.
  Deadline due() const noexcept { return schedule_.due; }

private:
  struct Schedule {
    // What is due at this time, and then the next; no hits if nothing is.
    TimerEvent take(TimePoint time) noexcept;

    TimerOptions options;
    Deadline due = kForever;
  };
  // What whoever waits is told of the timer, on his stack.
  struct Wait {
    bool is_unchanged = true; // the schedule is the one that he waits by
    bool is_gone = false;     // so is the timer
  };
  void change(TimerOptions options, Deadline due) noexcept;

  Schedule schedule_;
  Wait* wait_ = nullptr; // null while nobody waits, or has waited and not run since
  WaitList waiters_;     // who waits; a change ends it
};

} // namespace cede
