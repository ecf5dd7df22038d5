// SPDX-License-Identifier: MIT
// Watchdog: tells of fibers that keep their scheduler's thread to themselves.
#pragma once

#include <cede/scheduler.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cede {

namespace core {
struct Watch;
} // namespace core

// Who has not yielded, as a watchdog saw it.
struct Overrun {
  std::uint64_t id = 0; // 0: no fiber, but what the scheduler calls: a post, hook or handler
  std::string name;     // of the fiber; empty if it was given none
  std::chrono::nanoseconds time{}; // for which it has run, at least
  // Where it was, innermost first; empty where that can't be had: see below.
  std::vector<const void*> backtrace;

  // Some lines, with a name for each address where the system knows one.
  std::string to_text() const;
};

// Is told of an overrun on the watchdog's own thread, while the fiber runs on.
using OverrunHandler = std::function<void(const Overrun& overrun)>;

// Watches a scheduler from a thread of its own. When one dispatch has lasted for `limit`, because a
// fiber computes or calls what blocks the thread, it says so: on standard error, or to a handler;
// again after twice that time, and so on. A scheduler that sleeps or isn't driven is left alone,
// and so is a fiber that yields in time, however many others do.
//
//   cede::run([] {
//     cede::Watchdog watchdog(100ms);
//     ...
//   });
//
// It looks four times within the limit. While one watches, no yield is taken inline, so that it
// sees each dispatch.
//
// The backtrace is taken by an OS signal, SIGURG, sent to the scheduler's thread once an overrun is
// certain; the fiber's system call then may fail with EINTR, if it is one that isn't restarted. The
// handler is installed with the first watchdog and stays. A SIGURG that isn't the watchdog's goes
// to the handler that was there before; one that the program installs later, or blocking SIGURG,
// costs the backtraces. There are none on Windows and without <execinfo.h>. Linked with -rdynamic,
// a program's own functions have names in the text.
//
// A child that fork() makes is not watched, and must not destroy what it has inherited.
//   Thread    made and destroyed on the scheduler's, before the scheduler; one a scheduler
class Watchdog {
public:
  // Of the scheduler that is driven here; a check fails if none is.
  //   Throws    std::system_error, std::bad_alloc; no limit, or less:
  //   std::system_error(invalid_argument)
  explicit Watchdog(std::chrono::nanoseconds limit, OverrunHandler handler = {});
  // The same, of `scheduler`.
  Watchdog(Scheduler& scheduler, std::chrono::nanoseconds limit, OverrunHandler handler = {});
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  // Waits for a handler that runs.
  ~Watchdog();

private:
  std::unique_ptr<core::Watch> watch_;
};

} // namespace cede
