// SPDX-License-Identifier: MIT
// Operations that the kernel carries out by itself, through a ring. Layer os.
//
// What a socket receives is asked for in the ring, and so is readiness where a try says that it has
// to be waited for; what can be done at once is done by a call. All that was asked for since the
// last wait is handed over with it, in one call.
//
// Invariants: of each pending operation exactly one request is in the ring, whose data is the
// operation; no request is left of one that is not pending. Data of none is a call from another
// thread's, or of no interest.
#include "descriptor.h"
#include "poller.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <liburing.h>
#include <new>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cede::os {

namespace {

constexpr unsigned kRequests = 256;
constexpr unsigned kCompletions = 4096;
constexpr unsigned kNeeded = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;

// Data of the request that a call from another thread answers.
constexpr std::uint64_t kCall = 1;
constexpr std::uint64_t kNobody = 0;

class UringPoller final : public Poller {
public:
  // The ring's, once begin() has succeeded.
  UringPoller() = default;
  ~UringPoller() override {
    if (has_ring_)
      io_uring_queue_exit(&ring_);
    close_descriptor(call_);
  }

  // The system's number of the error.
  int begin() noexcept {
    call_ = not_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (call_ < 0)
      return errno;
    // What has come is told when this thread asks for it, which interrupts nothing.
    constexpr unsigned kQuiet = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    constexpr unsigned kOlder = IORING_SETUP_COOP_TASKRUN;
    for (const unsigned flags :
         {kQuiet | IORING_SETUP_TASKRUN_FLAG, kOlder | IORING_SETUP_TASKRUN_FLAG, 0u}) {
      io_uring_params parameters{};
      parameters.flags = flags | IORING_SETUP_CQSIZE;
      parameters.cq_entries = kCompletions;
      const int error = -io_uring_queue_init_params(kRequests, &ring_, &parameters);
      if (error == EINVAL)
        continue;
      if (error != 0)
        return error;
      has_ring_ = true;
      ring_.ring_fd = ring_.enter_ring_fd = not_standard(ring_.ring_fd);
      if (ring_.ring_fd < 0)
        return errno;
      if ((parameters.features & kNeeded) != kNeeded)
        return ENOSYS;
      ask_for_calls();
      return 0;
    }
    return ENOSYS;
  }

  bool submit(Operation& operation) noexcept override {
    Descriptor::Side& side = operation.descriptor->side(direction_of(operation.action));
    if (side.may_go && !is_sent_by_ring(operation) && try_side(side, operation))
      return false;
    side.pending = &operation;
    ask(operation);
    return true;
  }

  // Such a request ends at once, unless the system is in the middle of it. What else has come on
  // the way is kept for the next wait.
  bool cancel(Operation& operation) noexcept override {
    io_uring_sqe& request = new_request();
    io_uring_prep_cancel64(&request, reinterpret_cast<std::uint64_t>(&operation), 0);
    io_uring_sqe_set_data64(&request, kNobody);
    const Descriptor::Side& side = operation.descriptor->side(direction_of(operation.action));
    cancelled_ = &operation;
    io_uring_submit_and_get_events(&ring_);
    take_completions();
    cancelled_ = nullptr;
    return side.pending != &operation;
  }

  // What is pending all the same, since it didn't end at once, holds the file until it does.
  void forget(Descriptor& descriptor) noexcept override {
    for (Descriptor::Side& side : descriptor.sides)
      side.may_go = true;
  }

  Operation* wait(PollTime until) noexcept override {
    if (first_ != nullptr)
      until = PollTime::min();
    enter(until);
    take_completions();
    Operation* finished = first_;
    first_ = nullptr;
    last_ = &first_;
    return finished;
  }

  // Nobody reads the counter: each write to it is told.
  void wake() noexcept override {
    if (is_called_.exchange(true))
      return;
    const std::uint64_t one = 1;
    while (::write(call_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  const char* name() const noexcept override { return "io_uring"; }

private:
  // Whether it is finished.
  static bool try_side(Descriptor::Side& side, Operation& operation) noexcept {
    if (try_now(operation) == Tried::would_wait) {
      side.may_go = false;
      return false;
    }
    note_count(side, operation);
    return true;
  }

  // The ring carries it out itself. What is sent goes with all others' in one call.
  static bool is_by_ring(const Operation& operation) noexcept {
    return operation.descriptor->may_wait_inside && operation.buffer_count == 1;
  }
  static bool is_sent_by_ring(const Operation& operation) noexcept {
    return operation.action == Action::write && is_by_ring(operation);
  }
  static bool is_received_by_ring(const Operation& operation) noexcept {
    return operation.action == Action::read && is_by_ring(operation);
  }

  // A stream that gave less than it could has no more for now.
  static void note_count(Descriptor::Side& side, const Operation& operation) noexcept {
    const bool moves = operation.action == Action::read || operation.action == Action::write;
    side.may_go = !(moves && operation.error == 0 && operation.bytes > 0 &&
                    operation.descriptor->is_stream && operation.bytes < bytes_of(operation));
  }

  // Handed over with the others, or now if there are too many.
  io_uring_sqe& new_request() noexcept {
    io_uring_sqe* request = io_uring_get_sqe(&ring_);
    while (request == nullptr) {
      io_uring_submit(&ring_);
      request = io_uring_get_sqe(&ring_);
    }
    return *request;
  }

  void ask_for_calls() noexcept {
    io_uring_sqe& request = new_request();
    io_uring_prep_poll_multishot(&request, call_, POLLIN);
    io_uring_sqe_set_data64(&request, kCall);
  }

  // That it be done, where a call on the descriptor may wait inside the system; else to be told
  // when to try.
  void ask(Operation& operation) noexcept {
    const Descriptor& descriptor = *operation.descriptor;
    io_uring_sqe& request = new_request();
    if (is_sent_by_ring(operation)) {
      io_uring_prep_send(&request, descriptor.number, operation.buffers->data,
                         operation.buffers->bytes, MSG_NOSIGNAL);
    } else if (is_received_by_ring(operation)) {
      io_uring_prep_recv(&request, descriptor.number, operation.buffers->data,
                         operation.buffers->bytes, 0);
      request.ioprio |= IORING_RECVSEND_POLL_FIRST;
    } else {
      const bool is_in = direction_of(operation.action) == Direction::in;
      io_uring_prep_poll_add(&request, descriptor.number,
                             is_in ? POLLIN | POLLRDHUP | POLLPRI : POLLOUT);
    }
    io_uring_sqe_set_data(&request, &operation);
  }

  void enter(PollTime until) noexcept {
    io_uring_cqe* completion = nullptr;
    if (until == PollTime::min()) {
      if (io_uring_sq_ready(&ring_) > 0)
        io_uring_submit_and_get_events(&ring_);
      else if (io_uring_cq_ready(&ring_) == 0)
        io_uring_get_events(&ring_);
    } else if (until == PollTime::max()) {
      io_uring_submit_and_wait(&ring_, 1);
    } else {
      constexpr std::int64_t kSecond = 1'000'000'000;
      const PollTime now = std::chrono::steady_clock::now();
      const std::int64_t left = until > now ? (until - now).count() : 0;
      __kernel_timespec time{left / kSecond, left % kSecond};
      io_uring_submit_and_wait_timeout(&ring_, &completion, 1, &time, nullptr);
    }
  }

  void take_completions() noexcept {
    io_uring_cqe* completion = nullptr;
    unsigned head = 0;
    unsigned count = 0;
    io_uring_for_each_cqe(&ring_, head, completion) {
      ++count;
      const std::uint64_t data = io_uring_cqe_get_data64(completion);
      if (data == kCall)
        note_call(*completion);
      else if (data != kNobody)
        complete(*reinterpret_cast<Operation*>(data), completion->res);
    }
    io_uring_cq_advance(&ring_, count);
  }

  void note_call(const io_uring_cqe& completion) noexcept {
    // An exchange, so that what was posted before the wake is seen after the wait.
    is_called_.exchange(false);
    if ((completion.flags & IORING_CQE_F_MORE) == 0)
      ask_for_calls();
  }

  void complete(Operation& operation, int result) noexcept {
    Descriptor::Side& side = operation.descriptor->side(direction_of(operation.action));
    const bool was_done = is_sent_by_ring(operation) || is_received_by_ring(operation);
    if (result == -ECANCELED) {
      operation.error = kCancelled;
    } else if (was_done && result != -EINTR && result != -EAGAIN) {
      operation.error = result < 0 ? -result : 0;
      operation.bytes = result < 0 ? 0 : static_cast<std::size_t>(result);
      note_count(side, operation);
    } else {
      side.may_go = true;
      if (!try_side(side, operation)) {
        if (&operation != cancelled_) {
          ask(operation);
          return;
        }
        operation.error = kCancelled;
      }
    }
    side.pending = nullptr;
    if (&operation == cancelled_)
      return;
    operation.next = nullptr;
    *last_ = &operation;
    last_ = &operation.next;
  }

  io_uring ring_{};
  bool has_ring_ = false;
  int call_ = -1; // an eventfd
  std::atomic<bool> is_called_{false};
  Operation* cancelled_ = nullptr; // which is being cancelled: not to be given by wait()
  Operation* first_ = nullptr;     // finished, in turn
  Operation** last_ = &first_;
};

} // namespace

MadePoller make_uring_poller() noexcept {
  std::unique_ptr<UringPoller> poller(new (std::nothrow) UringPoller);
  if (poller == nullptr)
    return {nullptr, ENOMEM};
  if (const int error = poller->begin(); error != 0)
    return {nullptr, error};
  return {std::move(poller), 0};
}

} // namespace cede::os
