// SPDX-License-Identifier: MIT
// An open descriptor with those who use it, and the way of each call on it: its turn, the
// operation, the wait. Layer io.
//
// Invariants: of each direction at most one call has its turn. `home` is the inbox of the scheduler
// in which an operation was first submitted; its poller knows the descriptor.
#pragma once

#include "../core/scheduler_state.h"
#include "../os/operation.h"

#include <cede/stream.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

namespace cede::io {

struct Handle : os::Descriptor {
  bool is_open() const noexcept { return !is_closed; }

  bool is_taken[2] = {};             // by a call
  bool is_closed = false;            // or released
  int borrowed = -1;                 // the standard stream that this one is
  std::uint32_t references = 1;      // the stream's, until it is closed, and the calls'
  std::uint32_t helpers = 0;         // at work with the descriptor, which is closed after them
  std::shared_ptr<core::Inbox> home; // null until it is needed
  detail::Place made;                // where
};

// A new one for a descriptor, which stays the caller's if that fails.
Result<Handle*> make_handle(int number, detail::Place made) noexcept;
// The same, and it is closed then.
Result<Handle*> own(int number, detail::Place made) noexcept;

// Whoever waits fails with closed; then the descriptor is closed and the stream's reference
// dropped.
Result<void> close(Handle& handle) noexcept;

// The same without closing it: gives its number. Fails with busy while somebody waits.
Result<int> release(Handle& handle) noexcept;

// One call's turn with a direction of a handle. A null one is closed.
//   Throws    Cancelled, at the beginning and in its waits
class Turn {
public:
  Turn(Handle* handle, os::Direction direction);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn();

  // Why it has none: closed, busy, cancelled.
  std::error_code error() const noexcept { return error_; }

  // Carries it out, waiting where it has to. `what` is shown in dumps. Its bytes are what was done,
  // also if there is an error.
  //   Blocks    the calling fiber; on a plain thread, that
  std::error_code carry_out(core::AwaitedOperation& operation, const char* what, Deadline deadline);

private:
  std::error_code wait(core::AwaitedOperation& operation, const char* what, Deadline deadline);

  Handle* handle_;
  os::Direction direction_;
  std::error_code error_;
};

// While one is in scope a helper may use the descriptor.
class HelpersUse {
public:
  explicit HelpersUse(Handle& handle) noexcept;
  HelpersUse(const HelpersUse&) = delete;
  HelpersUse& operator=(const HelpersUse&) = delete;
  ~HelpersUse();

private:
  Handle& handle_;
};

// Submits it to the poller of the scheduler that runs. False if it is finished.
//   Fails     what the system says, if there is no poller to be had
Result<bool> submit(Handle& handle, core::AwaitedOperation& operation) noexcept;

// Ends what was submitted and is pending. It is finished when this returns.
//   Blocks    the calling fiber as under a Shield, while the system still works at it
void withdraw(core::AwaitedOperation& operation, const char* what) noexcept;

// The system's numbers.
inline std::error_code system_error(int number) noexcept {
  return {number, std::system_category()};
}
inline std::error_code error_of(const os::Operation& operation) noexcept {
  return system_error(operation.error);
}

} // namespace cede::io

namespace cede::detail {

struct StreamAccess {
  static io::Handle* handle(const Stream& stream) noexcept { return stream.handle_; }
};

} // namespace cede::detail
