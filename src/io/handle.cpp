// SPDX-License-Identifier: MIT
#include "handle.h"

#include "../core/check.h"
#include "../core/inbox.h"
#include "../core/poller_choice.h"
#include "../os/descriptor.h"
#include "../os/poller.h"

#include <cede/cancel.h>
#include <cede/detail/wait.h>

#include <algorithm>
#include <new>
#include <tuple>
#include <utility>

namespace cede::io {

using core::AwaitedOperation;
using core::SchedulerState;
using os::Direction;

namespace {

// Calls that don't have to wait, until one gives the others a turn.
constexpr std::uint32_t kCallsInTurn = 64;

void drop(Handle& handle) noexcept {
  if (--handle.references == 0)
    delete &handle;
}

// What is borrowed stays open, but not what was opened again for it.
int close_descriptor(const Handle& handle) noexcept {
  return handle.number != handle.borrowed ? os::close_descriptor(handle.number) : 0;
}

void check_thread(const Handle& handle) noexcept {
  const SchedulerState* scheduler = SchedulerState::driven();
  CEDE_CHECK(
      handle.home == nullptr || handle.home->is_closed() ||
          (scheduler != nullptr ? scheduler->inbox == handle.home : handle.home->is_its_thread()),
      "a stream is used outside the scheduler in which it waited: release() it there, and "
      "adopt it here");
}

// The poller that knows it from now on.
os::Poller& move_home(Handle& handle, SchedulerState& scheduler) noexcept {
  if (handle.home != scheduler.inbox) {
    check_thread(handle);
    if (handle.home != nullptr)
      handle.home->poller()->forget(handle);
    handle.home = scheduler.inbox;
  }
  return *scheduler.inbox->poller();
}

void leave_home(Handle& handle) noexcept {
  if (handle.home == nullptr)
    return;
  handle.home->poller()->forget(handle);
  handle.home = nullptr;
}

void close_side(Handle& handle, Direction direction) noexcept {
  auto* pending = static_cast<AwaitedOperation*>(handle.side(direction).pending);
  if (pending == nullptr || !handle.home->poller()->cancel(*pending))
    return;
  --pending->scheduler->operations;
  if (pending->bytes == 0 && pending->accepted < 0)
    pending->error = os::kCancelled; // whatever it was told on the way: an end, that it is ready
  pending->waiter->fire(WakeReason::closed, pending->place);
}

std::int64_t nanoseconds_until(Deadline deadline) noexcept {
  if (deadline.is_forever())
    return -1;
  return std::max<std::int64_t>((deadline.time() - now()).count(), 0);
}

// On a plain thread.
std::error_code block_thread(os::Operation& operation, Deadline deadline) noexcept {
  while (os::try_now(operation) == os::Tried::would_wait)
    if (!os::block_until_ready(operation.descriptor->number, os::direction_of(operation.action),
                               nanoseconds_until(deadline)) &&
        deadline.time() <= now())
      return Errc::timed_out;
  return error_of(operation);
}

} // namespace

Result<Handle*> make_handle(int number, detail::Place made) noexcept {
  auto* handle = new (std::nothrow) Handle;
  if (handle == nullptr)
    return Errc::no_memory;
  handle->made = made;
  int error = os::adopt(number, *handle);
  if (os::is_standard(number)) {
    handle->borrowed = number;
    const int again = error == 0 && handle->may_block ? os::open_again(number) : -1;
    if (again >= 0) {
      handle->may_block = false;
      error = os::adopt(again, *handle);
    }
  }
  if (error == 0)
    return handle;
  drop(*handle);
  return system_error(error);
}

Result<Handle*> own(int number, detail::Place made) noexcept {
  Result<Handle*> handle = make_handle(number, made);
  if (!handle)
    os::close_descriptor(number);
  return handle;
}

Result<void> close(Handle& handle) noexcept {
  check_thread(handle);
  close_side(handle, Direction::in);
  close_side(handle, Direction::out);
  leave_home(handle);
  handle.is_closed = true;
  const int error = handle.helpers == 0 ? close_descriptor(handle) : 0;
  drop(handle);
  if (error != 0)
    return system_error(error);
  return {};
}

Result<int> release(Handle& handle) noexcept {
  check_thread(handle);
  if (handle.is_taken[0] || handle.is_taken[1] || handle.helpers > 0)
    return Errc::busy;
  leave_home(handle);
  const int number = handle.borrowed >= 0 ? handle.borrowed : handle.number;
  if (handle.borrowed >= 0)
    close_descriptor(handle);
  handle.is_closed = true;
  drop(handle);
  return number;
}

HelpersUse::HelpersUse(Handle& handle) noexcept : handle_(handle) {
  ++handle_.references;
  ++handle_.helpers;
}

HelpersUse::~HelpersUse() {
  if (--handle_.helpers == 0 && handle_.is_closed)
    close_descriptor(handle_);
  drop(handle_);
}

Turn::Turn(Handle* handle, Direction direction) : handle_(nullptr), direction_(direction) {
  if (detail::has_to_look()) [[unlikely]]
    if (Result<void> met = detail::meet_request_on_entry(WhenUnwinding::report); !met) {
      error_ = met.error();
      return;
    }
  if (handle == nullptr) {
    error_ = Errc::closed;
  } else if (bool& is_taken = handle->is_taken[static_cast<int>(direction)]; is_taken) {
    error_ = Errc::busy;
  } else {
    is_taken = true;
    handle_ = handle;
    ++handle->references;
  }
}

Turn::~Turn() {
  if (handle_ == nullptr)
    return;
  handle_->is_taken[static_cast<int>(direction_)] = false;
  drop(*handle_);
}

std::error_code Turn::carry_out(AwaitedOperation& operation, const char* what, Deadline deadline) {
  SchedulerState* scheduler = SchedulerState::driven();
  if (!handle_->is_open())
    return Errc::closed;
  if (scheduler == nullptr) {
    operation.descriptor = handle_;
    return block_thread(operation, deadline);
  }
  CEDE_CHECK(!scheduler->runs_pump(),
             "a wait in what the scheduler itself calls: a post, a hook or a handler");
  if (++scheduler->operations_in_turn >= kCallsInTurn) {
    scheduler->operations_in_turn = 0;
    scheduler->call_pump();
    detail::yield_out_of_line();
    if (!handle_->is_open())
      return Errc::closed;
  }
  const Result<bool> is_pending = submit(*handle_, operation);
  if (!is_pending)
    return is_pending.error();
  if (!*is_pending)
    return error_of(operation);
  scheduler->operations_in_turn = 0;
  return wait(operation, what, deadline);
}

// The wait itself doesn't throw: what was done until the system has let go of the buffer counts.
std::error_code Turn::wait(AwaitedOperation& operation, const char* what, Deadline deadline) {
  WakeReason reason{};
  {
    const CancelByResult quietly;
    Waiter waiter(what);
    operation.waiter = &waiter;
    reason = waiter.wait(deadline);
  }
  // It may have finished after the wait had ended, and before this fiber's turn.
  const bool is_pending = handle_->side(direction_).pending == &operation;
  if (is_pending && (reason == WakeReason::timed_out || reason == WakeReason::cancelled))
    withdraw(operation, what);
  if (operation.error != os::kCancelled)
    return error_of(operation);
  if (!handle_->is_open())
    return Errc::closed;
  if (reason == WakeReason::timed_out)
    return Errc::timed_out;
  std::ignore = detail::meet_request_on_entry(WhenUnwinding::report); // throws, if it may
  return Errc::cancelled;
}

Result<bool> submit(Handle& handle, AwaitedOperation& operation) noexcept {
  SchedulerState& scheduler = *SchedulerState::driven();
  operation.descriptor = &handle;
  operation.scheduler = &scheduler;
  if (scheduler.inbox->poller() == nullptr)
    if (Result<void> chosen = core::choose_poller(scheduler); !chosen)
      return chosen.error();
  const bool is_pending = move_home(handle, scheduler).submit(operation);
  if (is_pending)
    ++scheduler.operations;
  return is_pending;
}

void withdraw(AwaitedOperation& operation, const char* what) noexcept {
  if (operation.scheduler->inbox->poller()->cancel(operation)) {
    --operation.scheduler->operations;
    return;
  }
  const Shield shield;
  Waiter waiter(what);
  operation.waiter = &waiter;
  waiter.wait();
}

} // namespace cede::io
