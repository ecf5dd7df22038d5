// SPDX-License-Identifier: MIT
// What files, pipes and sockets have in common: bytes that are read and written.
#pragma once

#include <cede/detail/compiler.h>
#include <cede/detail/config.h>
#include <cede/fiber.h>
#include <cede/result.h>
#include <cede/time.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#if !CEDE_HAS_STREAMS
#error "cede has streams, files and sockets for Linux only: leave this header out"
#endif

namespace cede {

namespace io {
struct Handle;
} // namespace io

namespace detail {
struct StreamAccess;
} // namespace detail

// How far a call came, and the error that ended it there, if one did.
struct [[nodiscard]] IoCount {
  std::size_t bytes = 0;
  std::error_code error;

  explicit operator bool() const noexcept { return !error; }
};

// An open descriptor. Its calls wait as a thread's would, while the other fibers go on; each takes
// a deadline, by which it fails with timed_out if nothing could be done until then. One fiber may
// read while another writes; a second one of either fails with busy. A call that never has to wait
// gives the others a turn now and then.
//
// On a plain thread the calls block it. In a fiber it belongs to the scheduler in which it first
// waited, as long as that exists; before that, or after release() and adopt, to any.
//   Fails     each call: closed once it is closed, here or by another fiber while it waits; busy;
//             timed_out; cancelled; or what the system says, of std::system_category
//   Throws    each call: Cancelled
//   Thread    its scheduler's
class Stream {
public:
  Stream() noexcept = default; // closed
  Stream(Stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept;
  ~Stream(); // closes it

  bool is_open() const noexcept { return handle_ != nullptr; }

  // Reads what is there, at most `into.size()` bytes, and waits if there is nothing. 0 is the end.
  Result<std::size_t> read(std::span<std::byte> into, Deadline deadline = kForever);
  // The same into several, one after the other.
  Result<std::size_t> read(std::span<const std::span<std::byte>> into,
                           Deadline deadline = kForever);

  // Writes as much as there is room for, and waits if there is none.
  Result<std::size_t> write(std::span<const std::byte> bytes, Deadline deadline = kForever);
  Result<std::size_t> write(std::span<const std::span<const std::byte>> bytes,
                            Deadline deadline = kForever);

  // Writes everything; nobody else writes until it is done. It says how many bytes were written
  // also where it fails.
  IoCount write_all(std::span<const std::byte> bytes, Deadline deadline = kForever);
  IoCount write_all(std::string_view text, Deadline deadline = kForever) {
    return write_all(std::as_bytes(std::span(text.data(), text.size())), deadline);
  }

  // Waits until a read, a write would not wait: there are bytes, room, an end or an error.
  Result<void> readable(Deadline deadline = kForever);
  Result<void> writable(Deadline deadline = kForever);

  // Whoever waits fails with closed. A second one fails with that too. The descriptor is closed
  // whatever the error.
  Result<void> close() noexcept;

  // The system's number, which stays this one's; -1 if it is closed. Whether a call on it by others
  // would block isn't defined: sockets are told at each call.
  int native_handle() const noexcept;
  // Gives the number away; this is closed then. Fails with busy while somebody waits.
  Result<int> release() noexcept;

protected:
  explicit Stream(io::Handle* handle) noexcept : handle_(handle) {}
  friend struct detail::StreamAccess;

  io::Handle* handle_ = nullptr; // owned, with those who wait
};

} // namespace cede
