// SPDX-License-Identifier: MIT
// Where a scheduler's thread waits: for operations that the system carries out, for a point in time
// and for a call from another thread. Layer os.
#pragma once

#include "operation.h"

#include <chrono>
#include <cstddef>
#include <memory>

namespace cede::os {

using PollTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// One a scheduler. Only its thread calls it, save wake(). A descriptor is used with one poller at a
// time.
class Poller {
public:
  virtual ~Poller() = default;

  // Begins an operation, of which one of each direction may be pending for a descriptor. False if
  // it is finished already; otherwise it is given by wait(), once.
  virtual bool submit(Operation& operation) noexcept = 0;
  // Asks to end a pending operation early. True if it is finished now, and is then not given by
  // wait(); otherwise it still is, with the result that it had by then. Its error is ECANCELED if
  // nothing was done.
  virtual bool cancel(Operation& operation) noexcept = 0;
  // The descriptor, for which nothing is pending, is about to be closed or used elsewhere.
  virtual void forget(Descriptor& descriptor) noexcept = 0;

  // Waits until an operation is finished, `until` has come or wake() was called, also if that was
  // before; then gives the finished ones. Never returns early for a time, but it may for no reason.
  virtual Operation* wait(PollTime until) noexcept = 0;

  // Ends the wait, or the next one. Any thread.
  virtual void wake() noexcept = 0;

  virtual const char* name() const noexcept = 0;
};

// A poller, or the system's number of the error why there is none.
struct MadePoller {
  std::unique_ptr<Poller> poller;
  int error = 0;
};

// One that knows no operations and only waits; it needs no descriptor.
std::unique_ptr<Poller> make_waiting_poller() noexcept;

// One that carries operations out. ENOSYS where there is none of the kind.
enum class PollerKind : std::uint8_t { fastest, epoll, io_uring };
MadePoller make_poller(PollerKind kind) noexcept;
MadePoller make_epoll_poller() noexcept;
MadePoller make_uring_poller() noexcept;

// The operation was ended before anything was done.
extern const int kCancelled;

} // namespace cede::os
