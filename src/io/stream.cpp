// SPDX-License-Identifier: MIT
#include <cede/stream.h>

#include "files.h"
#include "handle.h"

#include <array>
#include <cstring>
#include <utility>

namespace cede {

using io::Turn;
using os::Action;
using os::Direction;

namespace {

// The system takes no more of them at once, nor does anybody gain by more.
constexpr std::size_t kBuffersAtOnce = 64;

constexpr const char* kRead = "read";
constexpr const char* kWrite = "write";

os::Buffer buffer_of(std::span<const std::byte> bytes) noexcept {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

// Those that aren't empty.
template <class Byte>
std::size_t fill(std::array<os::Buffer, kBuffersAtOnce>& buffers,
                 std::span<const std::span<Byte>> spans) noexcept {
  std::size_t count = 0;
  for (const std::span<Byte>& span : spans)
    if (!span.empty() && count < kBuffersAtOnce)
      buffers[count++] = buffer_of(span);
  return count;
}

Result<std::size_t> move(io::Handle* handle, Action action, const os::Buffer* buffers,
                         std::size_t count, Deadline deadline) {
  Turn turn(handle, os::direction_of(action));
  if (turn.error())
    return turn.error();
  if (count == 0)
    return 0;
  core::AwaitedOperation operation;
  operation.action = action;
  operation.buffers = buffers;
  operation.buffer_count = count;
  const char* what = action == Action::read ? kRead : kWrite;
  if (const std::error_code error = io::carry_out(*handle, turn, operation, what, deadline))
    return error;
  return operation.bytes;
}

Result<void> await(io::Handle* handle, Action action, const char* what, Deadline deadline) {
  Turn turn(handle, os::direction_of(action));
  if (turn.error())
    return turn.error();
  core::AwaitedOperation operation;
  operation.action = action;
  if (const std::error_code error = turn.carry_out(operation, what, deadline))
    return error;
  return {};
}

} // namespace

Stream& Stream::operator=(Stream&& other) noexcept {
  io::Handle* handle = std::exchange(other.handle_, nullptr);
  if (handle_ != nullptr)
    std::ignore = close();
  handle_ = handle;
  return *this;
}

Stream::~Stream() {
  if (handle_ != nullptr)
    std::ignore = close();
}

Result<std::size_t> Stream::read(std::span<std::byte> into, Deadline deadline) {
  const os::Buffer buffer = buffer_of(into);
  return move(handle_, Action::read, &buffer, into.empty() ? 0 : 1, deadline);
}

Result<std::size_t> Stream::read(std::span<const std::span<std::byte>> into, Deadline deadline) {
  std::array<os::Buffer, kBuffersAtOnce> buffers;
  return move(handle_, Action::read, buffers.data(), fill(buffers, into), deadline);
}

Result<std::size_t> Stream::write(std::span<const std::byte> bytes, Deadline deadline) {
  const os::Buffer buffer = buffer_of(bytes);
  return move(handle_, Action::write, &buffer, bytes.empty() ? 0 : 1, deadline);
}

Result<std::size_t> Stream::write(std::span<const std::span<const std::byte>> bytes,
                                  Deadline deadline) {
  std::array<os::Buffer, kBuffersAtOnce> buffers;
  return move(handle_, Action::write, buffers.data(), fill(buffers, bytes), deadline);
}

IoCount Stream::write_all(std::span<const std::byte> bytes, Deadline deadline) {
  io::Handle* handle = handle_; // this may be closed, and gone, while it waits
  Turn turn(handle, Direction::out);
  IoCount count{0, turn.error()};
  while (!count.error && count.bytes < bytes.size()) {
    const os::Buffer buffer = buffer_of(bytes.subspan(count.bytes));
    core::AwaitedOperation operation;
    operation.action = Action::write;
    operation.buffers = &buffer;
    operation.buffer_count = 1;
    count.error = io::carry_out(*handle, turn, operation, kWrite, deadline);
    count.bytes += operation.bytes;
  }
  return count;
}

Result<void> Stream::readable(Deadline deadline) {
  return await(handle_, Action::await_readable, "readable", deadline);
}

Result<void> Stream::writable(Deadline deadline) {
  return await(handle_, Action::await_writable, "writable", deadline);
}

Result<void> Stream::close() noexcept {
  if (handle_ == nullptr)
    return Errc::closed;
  return io::close(*std::exchange(handle_, nullptr));
}

int Stream::native_handle() const noexcept {
  if (handle_ == nullptr)
    return -1;
  return handle_->borrowed >= 0 ? handle_->borrowed : handle_->number;
}

Result<int> Stream::release() noexcept {
  if (handle_ == nullptr)
    return Errc::closed;
  Result<int> number = io::release(*handle_);
  if (number)
    handle_ = nullptr;
  return number;
}

} // namespace cede
