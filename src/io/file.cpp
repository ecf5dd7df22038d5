// SPDX-License-Identifier: MIT
#include <cede/file.h>

#include "files.h"
#include "handle.h"

#include "../os/descriptor.h"

#include <cede/blocking.h>
#include <cede/detail/wait.h>

#include <cerrno>
#include <utility>

namespace cede {

namespace io {

// A call that the kernel may take a disk's time for, on a helper's thread. What isn't waited for
// any more hasn't begun.
std::error_code carry_out(Handle& handle, Turn& turn, core::AwaitedOperation& operation,
                          const char* what, Deadline deadline) {
  if (handle.is_waitable)
    return turn.carry_out(operation, what, deadline);
  if (!handle.is_open())
    return Errc::closed;
  operation.descriptor = &handle;
  const HelpersUse use(handle);
  const Result<void> done = blocking(deadline, [&operation] { os::try_now(operation); });
  return done ? error_of(operation) : done.error();
}

} // namespace io

namespace {

Result<std::size_t> move_at(io::Handle* handle, os::Tried (*call)(os::Operation&, std::uint64_t),
                            std::uint64_t offset, std::span<const std::byte> bytes,
                            Deadline deadline) {
  if (handle == nullptr)
    return Errc::closed;
  const os::Buffer buffer{const_cast<std::byte*>(bytes.data()), bytes.size()};
  os::Operation operation;
  operation.descriptor = handle;
  operation.buffers = &buffer;
  operation.buffer_count = 1;
  const io::HelpersUse use(*handle);
  const Result<void> done =
      blocking(deadline, [&operation, call, offset] { call(operation, offset); });
  if (!done)
    return done.error();
  if (operation.error != 0)
    return io::error_of(operation);
  return operation.bytes;
}

} // namespace

Result<File> File::open(const std::string& path, OpenMode mode, unsigned permissions,
                        detail::Place made) {
  if (path.find('\0') != std::string::npos)
    return Errc::invalid_argument;
  const os::Opened opened = blocking(
      [&] { return os::open_file(path.c_str(), static_cast<os::OpenMode>(mode), permissions); });
  if (opened.error != 0)
    return io::system_error(opened.error);
  return own(opened.number, made);
}

Result<File> File::adopt(int number, detail::Place made) noexcept {
  Result<io::Handle*> handle = io::make_handle(number, made);
  if (!handle)
    return handle.error();
  return File(*handle);
}

Result<File> File::own(int number, detail::Place made) noexcept {
  Result<io::Handle*> handle = io::own(number, made);
  if (!handle)
    return handle.error();
  return File(*handle);
}

Result<std::size_t> File::read_at(std::uint64_t offset, std::span<std::byte> into,
                                  Deadline deadline) {
  return move_at(handle_, os::read_at, offset, into, deadline);
}

Result<std::size_t> File::write_at(std::uint64_t offset, std::span<const std::byte> bytes,
                                   Deadline deadline) {
  return move_at(handle_, os::write_at, offset, bytes, deadline);
}

Result<Pipe> Pipe::make(detail::Place made) noexcept {
  const os::OpenedPipe opened = os::open_pipe();
  if (opened.error != 0)
    return io::system_error(opened.error);
  Result<File> reader = File::own(opened.reader, made);
  Result<File> writer = File::own(opened.writer, made);
  if (!reader || !writer)
    return reader ? writer.error() : reader.error();
  return Pipe{std::move(*reader), std::move(*writer)};
}

Result<File> standard_input() noexcept {
  return File::adopt(0);
}

Result<File> standard_output() noexcept {
  return File::adopt(1);
}

Result<File> standard_error() noexcept {
  return File::adopt(2);
}

} // namespace cede
