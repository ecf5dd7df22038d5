// SPDX-License-Identifier: MIT
#include "descriptor.h"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace cede::os {

namespace {

Opened opened(int number) noexcept {
  number = not_standard(number);
  return {number, number < 0 ? errno : 0};
}

// A short count doesn't say that a stream is drained where messages end it: a terminal's lines, a
// pipe of packets, descriptors that come along through a local socket.
bool is_stream(int number, mode_t mode, bool is_socket, int flags) noexcept {
  if (!is_socket)
    return S_ISFIFO(mode) && (flags & O_DIRECT) == 0;
  int type = 0;
  int domain = 0;
  socklen_t size = sizeof type;
  if (getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
      getsockopt(number, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0)
    return false;
  return type == SOCK_STREAM && (domain == AF_INET || domain == AF_INET6);
}

} // namespace

int not_standard(int number) noexcept {
  if (!is_standard(number))
    return number;
  const int moved = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(number);
  errno = error;
  return moved;
}

Opened open_file(const char* path, OpenMode mode, unsigned permissions) noexcept {
  constexpr int kAlways = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int flags = O_RDONLY;
  switch (mode) {
  case OpenMode::read:
    break;
  case OpenMode::write:
    flags = O_WRONLY | O_CREAT | O_TRUNC;
    break;
  case OpenMode::append:
    flags = O_WRONLY | O_CREAT | O_APPEND;
    break;
  case OpenMode::read_write:
    flags = O_RDWR;
    break;
  case OpenMode::create_new:
    flags = O_RDWR | O_CREAT | O_EXCL;
    break;
  }
  int number = -1;
  do
    number = open(path, flags | kAlways, permissions);
  while (number < 0 && errno == EINTR);
  return opened(number);
}

OpenedPipe open_pipe() noexcept {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return {-1, -1, errno};
  const Opened reader = opened(ends[0]);
  const Opened writer = opened(ends[1]);
  if (reader.error == 0 && writer.error == 0)
    return {reader.number, writer.number, 0};
  close_descriptor(reader.number);
  close_descriptor(writer.number);
  return {-1, -1, reader.error != 0 ? reader.error : writer.error};
}

int adopt(int number, Descriptor& descriptor) noexcept {
  struct stat status {};
  const int flags = fcntl(number, F_GETFL);
  if (flags < 0 || fstat(number, &status) != 0)
    return errno;
  const mode_t mode = status.st_mode;
  descriptor.number = number;
  descriptor.is_socket = S_ISSOCK(mode);
  descriptor.is_waitable = !S_ISREG(mode) && !S_ISBLK(mode) && !S_ISDIR(mode);
  descriptor.is_stream = is_stream(number, mode, descriptor.is_socket, flags);
  const bool blocks = (flags & O_NONBLOCK) == 0;
  descriptor.may_wait_inside = descriptor.is_socket && blocks;
  if (descriptor.is_socket || !blocks)
    return 0;
  if (is_standard(number))
    descriptor.may_block = descriptor.is_waitable;
  else if (fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0)
    return errno;
  return 0;
}

void let_wait_inside(Descriptor& descriptor) noexcept {
  const int flags = fcntl(descriptor.number, F_GETFL);
  descriptor.may_wait_inside =
      flags >= 0 && fcntl(descriptor.number, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

int open_again(int number) noexcept {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", number);
  const int mode = fcntl(number, F_GETFL) & O_ACCMODE;
  return not_standard(open(path, mode | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

// Linux has closed it also where it says that it was interrupted.
int close_descriptor(int number) noexcept {
  if (number < 0 || close(number) == 0 || errno == EINTR)
    return 0;
  return errno;
}

bool block_until_ready(int number, Direction direction, std::int64_t nanoseconds) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  pollfd asked{number,
               static_cast<short>(direction == Direction::in ? POLLIN | POLLRDHUP : POLLOUT), 0};
  const timespec time{static_cast<time_t>(nanoseconds / kSecond),
                      static_cast<long>(nanoseconds % kSecond)};
  return ppoll(&asked, 1, nanoseconds < 0 ? nullptr : &time, nullptr) != 0;
}

namespace {

template <class Call>
Tried at_offset(Operation& operation, Call call) noexcept {
  ssize_t done = 0;
  do
    done = call(operation.descriptor->number, reinterpret_cast<const iovec*>(operation.buffers),
                static_cast<int>(operation.buffer_count));
  while (done < 0 && errno == EINTR);
  operation.error = done < 0 ? errno : 0;
  operation.bytes = done < 0 ? 0 : static_cast<std::size_t>(done);
  return Tried::done;
}

} // namespace

Tried read_at(Operation& operation, std::uint64_t offset) noexcept {
  return at_offset(operation, [offset](int number, const iovec* vectors, int count) {
    return preadv(number, vectors, count, static_cast<off_t>(offset));
  });
}

Tried write_at(Operation& operation, std::uint64_t offset) noexcept {
  return at_offset(operation, [offset](int number, const iovec* vectors, int count) {
    return pwritev(number, vectors, count, static_cast<off_t>(offset));
  });
}

} // namespace cede::os
