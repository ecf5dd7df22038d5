// SPDX-License-Identifier: MIT
// What is asked of the system with a descriptor, and the descriptor as the pollers see it. Layer
// os.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cede::os {

struct Operation;

// What a descriptor can be waited for: what comes in, and room for what goes out.
enum class Direction : std::uint8_t { in, out };

// One open descriptor. It belongs to the layers above; the poller that it is used with keeps here
// what it knows of it.
struct Descriptor {
  // What one of a direction waits for, and whether it is worth trying.
  struct Side {
    Operation* pending = nullptr; // submitted, and not finished
    bool may_go = true;         // since the last event nothing has said that it would have to wait
    bool is_registered = false; // the poller is told of its events
  };

  bool is_registered() const noexcept { return sides[0].is_registered || sides[1].is_registered; }
  Side& side(Direction direction) noexcept { return sides[static_cast<std::size_t>(direction)]; }

  int number = -1;
  bool is_socket = false;
  bool is_stream = false;       // a short count says that there is no more for now
  bool is_waitable = true;      // the system can tell when it is ready; a file on a disk always is
  bool may_wait_inside = false; // a socket that is not set not to block: calls are told to
  bool may_block = false;       // it is another's, and can't be told not to block
  bool has_more_to_say = false; // the poller has seen an end, an error or urgent data: try always
  Side sides[2];
};

enum class Action : std::uint8_t {
  read,
  write,
  receive_from,
  send_to,
  accept,
  connect,
  await_readable,
  await_writable,
};

constexpr Direction direction_of(Action action) noexcept {
  switch (action) {
  case Action::read:
  case Action::receive_from:
  case Action::accept:
  case Action::await_readable:
    return Direction::in;
  default:
    return Direction::out;
  }
}

// As the system's own pair of an address and a size.
struct Buffer {
  std::byte* data;
  std::size_t bytes;
};

// Owned by whoever submitted it; it must stay until it is finished.
struct Operation {
  // set before it is submitted
  Descriptor* descriptor = nullptr;
  Action action = Action::read;
  const Buffer* buffers = nullptr; // of reads and writes
  std::size_t buffer_count = 0;
  void* address = nullptr;         // a socket's: to connect or send to, or where the sender's goes
  std::uint32_t address_bytes = 0; // of it, or the room for it; then what it has

  // the result
  int error = 0;         // 0, or the system's number
  std::size_t bytes = 0; // done, also if there is an error
  int accepted = -1;     // a new descriptor

  // the poller's
  Operation* next = nullptr; // on the list of finished ones
  bool has_begun = false;    // a connection is on its way
};

enum class Tried : std::uint8_t { done, would_wait };

// What its buffers hold together.
inline std::size_t bytes_of(const Operation& operation) noexcept {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < operation.buffer_count; ++i)
    sum += operation.buffers[i].bytes;
  return sum;
}

// Does it now if that doesn't block, and says whether its result stands in it.
Tried try_now(Operation& operation) noexcept;

// Whether the descriptor is ready now; true if the system can't tell.
bool is_ready(const Descriptor& descriptor, Direction direction) noexcept;

} // namespace cede::os
