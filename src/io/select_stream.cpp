// SPDX-License-Identifier: MIT
#include <cede/select_stream.h>

#include "handle.h"

#include "../os/poller.h"

#include <memory>
#include <new>

namespace cede::detail {

namespace {

// What lies in a branch while it watches.
struct Watched {
  io::Turn turn;
  core::AwaitedOperation operation;
  io::Handle* handle; // kept by its turn

  Watched(io::Handle* of, os::Direction direction) : turn(of, direction), handle(of) {}
};

Watched& watched_in(std::byte* room) noexcept {
  return *std::launder(reinterpret_cast<Watched*>(room));
}

os::Direction direction_of(StreamSide side) noexcept {
  return side == StreamSide::in ? os::Direction::in : os::Direction::out;
}

} // namespace

// Asked of the system: a select that doesn't wait has to see what has come just now.
bool StreamWatch::try_now() noexcept {
  const io::Handle* handle = StreamAccess::handle(*stream_);
  const os::Direction direction = direction_of(side_);
  how_ = {};
  if (handle == nullptr)
    how_ = Errc::closed;
  else if (handle->is_taken[static_cast<int>(direction)])
    how_ = Errc::busy;
  return !how_ || os::is_ready(*handle, direction);
}

void StreamWatch::watch(Waiter& waiter) noexcept {
  static_assert(sizeof(Watched) <= kRoom);
  is_watching_ = true;
  const os::Direction direction = direction_of(side_);
  auto& watched = *::new (operation_) Watched(StreamAccess::handle(*stream_), direction);
  core::AwaitedOperation& operation = watched.operation;
  operation.action =
      direction == os::Direction::in ? os::Action::await_readable : os::Action::await_writable;
  operation.waiter = &waiter;
  operation.place = &place_;
  if (watched.turn.error()) {
    how_ = watched.turn.error();
  } else if (Result<bool> is_pending = io::submit(*watched.handle, operation); !is_pending) {
    how_ = is_pending.error();
  } else if (*is_pending) {
    return;
  } else if (operation.error != 0) {
    how_ = io::error_of(operation);
  }
  waiter.fire(WakeReason::woken, &place_);
}

void StreamWatch::leave() noexcept {
  if (!is_watching_)
    return;
  is_watching_ = false;
  Watched& watched = watched_in(operation_);
  core::AwaitedOperation& operation = watched.operation;
  if (operation.descriptor != nullptr &&
      watched.handle->side(direction_of(side_)).pending == &operation)
    io::withdraw(operation, "select");
  std::destroy_at(&watched);
}

void StreamWatch::set(WakeReason reason) noexcept {
  const core::AwaitedOperation& operation = watched_in(operation_).operation;
  if (reason != WakeReason::woken || operation.error == os::kCancelled)
    how_ = Errc::closed;
  else if (how_ && operation.error != 0)
    how_ = io::error_of(operation);
}

} // namespace cede::detail
