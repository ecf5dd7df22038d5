// SPDX-License-Identifier: MIT
// Operations by calls that don't block. Layer os.
#include "operation.h"

#include "descriptor.h"
#include "poller.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace cede::os {

const int kCancelled = ECANCELED;

namespace {

// A buffer is handed to the system as it is.
static_assert(sizeof(Buffer) == sizeof(iovec));
static_assert(offsetof(Buffer, data) == offsetof(iovec, iov_base));
static_assert(offsetof(Buffer, bytes) == offsetof(iovec, iov_len));

iovec* vectors_of(const Operation& operation) noexcept {
  return reinterpret_cast<iovec*>(const_cast<Buffer*>(operation.buffers));
}

int count_of(const Operation& operation) noexcept {
  return static_cast<int>(std::min<std::size_t>(operation.buffer_count, IOV_MAX));
}

// A write to a pipe that nobody reads any more raises a signal, which would end the program. Only
// sockets can be told not to; elsewhere the signal is kept from this thread and, if it was not
// waiting before, taken away again.
class WithoutPipeSignal {
public:
  WithoutPipeSignal() noexcept {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&only_);
    sigaddset(&only_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;
  ~WithoutPipeSignal() {
    const int error = errno;
    if (is_raised && !was_pending_) {
      const timespec at_once{};
      while (sigtimedwait(&only_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }

  bool is_raised = false;

private:
  sigset_t only_;
  sigset_t before_;
  bool was_pending_;
};

// Newer kernels have a flag for the same. Zero where they don't.
constexpr int kNoSignal = 0x100; // RWF_NOSIGNAL

ssize_t write_to_pipe(int number, const iovec* vectors, int count) noexcept {
  static bool has_flag = true; // any thread may find out, with the same result
  if (__atomic_load_n(&has_flag, __ATOMIC_RELAXED)) {
    const ssize_t done = pwritev2(number, vectors, count, -1, kNoSignal);
    if (done >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL))
      return done;
    __atomic_store_n(&has_flag, false, __ATOMIC_RELAXED);
  }
  WithoutPipeSignal scope;
  const ssize_t done = writev(number, vectors, count);
  scope.is_raised = done < 0 && errno == EPIPE;
  return done;
}

ssize_t send_now(const Operation& operation) noexcept {
  const int number = operation.descriptor->number;
  if (operation.buffer_count == 1 && operation.address == nullptr)
    return ::send(number, operation.buffers->data, operation.buffers->bytes,
                  MSG_DONTWAIT | MSG_NOSIGNAL);
  msghdr message{};
  message.msg_name = operation.address;
  message.msg_namelen = operation.address_bytes;
  message.msg_iov = vectors_of(operation);
  message.msg_iovlen = static_cast<std::size_t>(count_of(operation));
  return sendmsg(number, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t receive_now(Operation& operation) noexcept {
  const int number = operation.descriptor->number;
  if (operation.buffer_count == 1 && operation.address == nullptr)
    return recv(number, operation.buffers->data, operation.buffers->bytes, MSG_DONTWAIT);
  msghdr message{};
  message.msg_name = operation.address;
  message.msg_namelen = operation.address_bytes;
  message.msg_iov = vectors_of(operation);
  message.msg_iovlen = static_cast<std::size_t>(count_of(operation));
  const ssize_t done = recvmsg(number, &message, MSG_DONTWAIT);
  operation.address_bytes = message.msg_namelen;
  return done;
}

// Of what may block only as much is written as a pipe that is ready takes without.
ssize_t write_now(const Operation& operation) noexcept {
  const Descriptor& descriptor = *operation.descriptor;
  if (descriptor.is_socket)
    return send_now(operation);
  if (!descriptor.may_block)
    return write_to_pipe(descriptor.number, vectors_of(operation), count_of(operation));
  const iovec part{operation.buffers->data,
                   std::min<std::size_t>(operation.buffers->bytes, PIPE_BUF)};
  return write_to_pipe(descriptor.number, &part, 1);
}

ssize_t read_now(Operation& operation) noexcept {
  if (operation.descriptor->is_socket)
    return receive_now(operation);
  return readv(operation.descriptor->number, vectors_of(operation), count_of(operation));
}

int accept_now(const Operation& operation) noexcept {
  return not_standard(accept4(operation.descriptor->number, nullptr, nullptr, SOCK_CLOEXEC));
}

// The first call begins it; when the socket has become writable its error says how it went.
int connect_now(Operation& operation) noexcept {
  const int number = operation.descriptor->number;
  if (!operation.has_begun) {
    operation.has_begun = true;
    const int done =
        ::connect(number, static_cast<const sockaddr*>(operation.address), operation.address_bytes);
    if (done < 0 && (errno == EINPROGRESS || errno == EINTR))
      errno = EAGAIN; // it goes on in either case
    else if (done < 0 && errno == EAGAIN)
      errno = ENOBUFS; // a local listener's queue is full, and nothing says when it isn't
    return done;
  }
  if (!is_ready(*operation.descriptor, Direction::out)) {
    errno = EAGAIN;
    return -1;
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
    return -1;
  errno = error;
  return error == 0 ? 0 : -1;
}

ssize_t call(Operation& operation) noexcept {
  switch (operation.action) {
  case Action::read:
  case Action::receive_from:
    return read_now(operation);
  case Action::write:
  case Action::send_to:
    return write_now(operation);
  case Action::accept:
    return operation.accepted = accept_now(operation);
  case Action::connect:
    return connect_now(operation);
  default:
    errno = EAGAIN;
    return is_ready(*operation.descriptor, direction_of(operation.action)) ? 0 : -1;
  }
}

bool moves_bytes(Action action) noexcept {
  return action != Action::accept && action != Action::connect;
}

} // namespace

bool is_ready(const Descriptor& descriptor, Direction direction) noexcept {
  pollfd asked{descriptor.number,
               static_cast<short>(direction == Direction::in ? POLLIN | POLLRDHUP : POLLOUT), 0};
  return poll(&asked, 1, 0) != 0;
}

Tried try_now(Operation& operation) noexcept {
  const Descriptor& descriptor = *operation.descriptor;
  if (descriptor.may_block && !is_ready(descriptor, direction_of(operation.action)))
    return Tried::would_wait;
  ssize_t done = 0;
  do
    done = call(operation);
  while (done < 0 && errno == EINTR);
  if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return Tried::would_wait;
  operation.error = done < 0 ? errno : 0;
  operation.bytes = done > 0 && moves_bytes(operation.action) ? static_cast<std::size_t>(done) : 0;
  return Tried::done;
}

} // namespace cede::os
