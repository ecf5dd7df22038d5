// SPDX-License-Identifier: MIT
// Operations by trying, and waiting for readiness only where a try says so. Layer os.
//
// A direction of a descriptor is registered when the first of its operations has to wait, once, for
// changes only: no other wait costs a call of its own. What was learned since the last change
// decides whether the next operation is tried or waits first: one that would have waited, or a
// stream's that gave less than it could, leaves nothing to try until the next change.
#include "descriptor.h"
#include "poller.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <new>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cede::os {

namespace {

constexpr int kEventsAtOnce = 256;

class EpollPoller final : public Poller {
public:
  EpollPoller(int epoll, int call) noexcept : epoll_(epoll), call_(call) {}
  ~EpollPoller() override {
    close_descriptor(epoll_);
    close_descriptor(call_);
  }

  bool submit(Operation& operation) noexcept override {
    Descriptor& descriptor = *operation.descriptor;
    Descriptor::Side& side = descriptor.side(direction_of(operation.action));
    if (side.may_go && try_side(side, operation))
      return false;
    if (!side.is_registered && !add(descriptor, side)) {
      operation.error = errno;
      return false;
    }
    side.pending = &operation;
    return true;
  }

  bool cancel(Operation& operation) noexcept override {
    operation.descriptor->side(direction_of(operation.action)).pending = nullptr;
    operation.error = kCancelled;
    return true;
  }

  // Closing it is not enough: the system forgets it only when nobody has it any more, also under
  // another number or in another program.
  void forget(Descriptor& descriptor) noexcept override {
    if (!descriptor.is_registered())
      return;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor.number, nullptr);
    descriptor.has_more_to_say = false;
    for (Descriptor::Side& side : descriptor.sides)
      side = {};
  }

  Operation* wait(PollTime until) noexcept override {
    const int count = wait_for_events(until);
    Operation* first = nullptr;
    Operation** last = &first;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events_[i];
      if (event.data.ptr == nullptr) {
        // An exchange, so that what was posted before the wake is seen after the wait.
        is_called_.exchange(false);
        continue;
      }
      Descriptor& descriptor = *static_cast<Descriptor*>(event.data.ptr);
      constexpr std::uint32_t kEnds = EPOLLHUP | EPOLLERR;
      if ((event.events & (kEnds | EPOLLRDHUP | EPOLLPRI)) != 0)
        descriptor.has_more_to_say = true;
      if ((event.events & (EPOLLIN | EPOLLRDHUP | EPOLLPRI | kEnds)) != 0)
        go_on(descriptor.side(Direction::in), last);
      if ((event.events & (EPOLLOUT | kEnds)) != 0)
        go_on(descriptor.side(Direction::out), last);
    }
    return first;
  }

  // Nobody reads the counter: each write to it is a change.
  void wake() noexcept override {
    if (is_called_.exchange(true))
      return;
    const std::uint64_t one = 1;
    while (::write(call_, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  const char* name() const noexcept override { return "epoll"; }

private:
  // Whether it is finished.
  static bool try_side(Descriptor::Side& side, Operation& operation) noexcept {
    if (try_now(operation) == Tried::would_wait) {
      side.may_go = false;
      return false;
    }
    const Descriptor& descriptor = *operation.descriptor;
    const bool moves = operation.action == Action::read || operation.action == Action::write;
    if (moves && operation.error == 0 && operation.bytes > 0 && descriptor.is_stream &&
        !descriptor.has_more_to_say && operation.bytes < bytes_of(operation))
      side.may_go = false;
    return true;
  }

  bool add(Descriptor& descriptor, Descriptor::Side& side) noexcept {
    const int how = descriptor.is_registered() ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    side.is_registered = true;
    epoll_event event{};
    event.events = EPOLLET;
    if (descriptor.side(Direction::in).is_registered)
      event.events |= EPOLLIN | EPOLLRDHUP | EPOLLPRI;
    if (descriptor.side(Direction::out).is_registered)
      event.events |= EPOLLOUT;
    event.data.ptr = &descriptor;
    side.is_registered = epoll_ctl(epoll_, how, descriptor.number, &event) == 0;
    return side.is_registered;
  }

  // There was a change.
  static void go_on(Descriptor::Side& side, Operation**& last) noexcept {
    side.may_go = true;
    Operation* operation = side.pending;
    if (operation == nullptr || !try_side(side, *operation))
      return;
    side.pending = nullptr;
    operation->next = nullptr;
    *last = operation;
    last = &operation->next;
  }

  int wait_for_events(PollTime until) noexcept {
    constexpr std::int64_t kSecond = 1'000'000'000;
    if (until == PollTime::max())
      return epoll_wait(epoll_, events_, kEventsAtOnce, -1);
    if (until == PollTime::min())
      return epoll_wait(epoll_, events_, kEventsAtOnce, 0);
    const PollTime now = std::chrono::steady_clock::now();
    const std::int64_t left = until > now ? (until - now).count() : 0;
    if (has_exact_wait_) {
      const timespec time{static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
      const int count = static_cast<int>(
          syscall(SYS_epoll_pwait2, epoll_, events_, kEventsAtOnce, &time, nullptr, 0));
      if (count >= 0 || errno != ENOSYS)
        return count;
      has_exact_wait_ = false;
    }
    // Whole milliseconds, rounded up; at most a day, since the caller looks again anyway.
    constexpr std::int64_t kMillisecond = 1'000'000;
    constexpr std::int64_t kDay = 24 * 60 * 60 * 1000;
    const std::int64_t milliseconds = left / kMillisecond + (left % kMillisecond != 0 ? 1 : 0);
    return epoll_wait(epoll_, events_, kEventsAtOnce,
                      static_cast<int>(std::min(milliseconds, kDay)));
  }

  const int epoll_;
  const int call_; // an eventfd
  std::atomic<bool> is_called_{false};
  bool has_exact_wait_ = true;
  epoll_event events_[kEventsAtOnce];
};

} // namespace

MadePoller make_epoll_poller() noexcept {
  MadePoller made;
  const int epoll = not_standard(epoll_create1(EPOLL_CLOEXEC));
  const int call = epoll < 0 ? -1 : not_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (call < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, call, &event) != 0)
    made.error = errno;
  else if (made.poller.reset(new (std::nothrow) EpollPoller(epoll, call)); !made.poller)
    made.error = ENOMEM;
  if (made.error != 0) {
    close_descriptor(epoll);
    close_descriptor(call);
  }
  return made;
}

} // namespace cede::os
