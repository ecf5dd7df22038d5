// SPDX-License-Identifier: MIT
// The system's descriptors: making, asking and closing them. All are closed on exec; none blocks,
// but for sockets, which are told not to at each call; and none of those made here is one of the
// standard streams' numbers. Layer os.
#pragma once

#include "operation.h"

#include <cstddef>
#include <cstdint>

namespace cede::os {

// A new descriptor, or -1 and the system's number of the error.
struct Opened {
  int number = -1;
  int error = 0;
};

// The same file under a number that no standard stream has. -1 and errno if that fails, and if
// `number` was that.
int not_standard(int number) noexcept;
constexpr bool is_standard(int number) noexcept {
  return number >= 0 && number <= 2;
}

enum class OpenMode : std::uint8_t { read, write, append, read_write, create_new };
Opened open_file(const char* path, OpenMode mode, unsigned permissions) noexcept;

struct OpenedPipe {
  int reader = -1;
  int writer = -1;
  int error = 0;
};
OpenedPipe open_pipe() noexcept;

// What a descriptor is: fills in `descriptor` and makes it not block, unless it is a socket; those
// of the standard streams, which other programs share, are left as they are. The system's number of
// the error, 0 if there is none.
int adopt(int number, Descriptor& descriptor) noexcept;

// From now on a connected socket is not set not to block, so that a call may wait inside the
// system.
void let_wait_inside(Descriptor& descriptor) noexcept;

// A new descriptor for what is open as `number`, a standard stream, which doesn't block whatever
// the others that share it want; -1 if it can't be had.
int open_again(int number) noexcept;

// 0, or the system's number of the error; the descriptor is closed in either case.
int close_descriptor(int number) noexcept;

// Blocks the thread until it is ready or that many nanoseconds have passed; negative for ever.
// False if the time has passed.
bool block_until_ready(int number, Direction direction, std::int64_t nanoseconds) noexcept;

// At a place of a file, which may block for as long as a disk takes.
Tried read_at(Operation& operation, std::uint64_t offset) noexcept;
Tried write_at(Operation& operation, std::uint64_t offset) noexcept;

} // namespace cede::os
