// SPDX-License-Identifier: MIT
// Waiting by a futex, whose time is an absolute one of the monotonic clock: it needs no descriptor.
// Layer os.
#include "poller.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <new>
#include <sys/syscall.h>
#include <unistd.h>

namespace cede::os {

namespace {

class WaitingPoller final : public Poller {
public:
  bool submit(Operation& operation) noexcept override {
    operation.error = ENOSYS;
    return false;
  }
  bool cancel(Operation&) noexcept override { return true; }
  void forget(Descriptor&) noexcept override {}

  Operation* wait(PollTime until) noexcept override {
    // An exchange, so that what was posted before the wake is seen after the wait.
    if (woken_.exchange(0) == 0) {
      const auto left = until.time_since_epoch().count();
      const bool has_end = until != PollTime::max();
      const timespec time{static_cast<time_t>(left / 1'000'000'000),
                          static_cast<long>(left % 1'000'000'000)};
      if (!has_end || left > 0)
        syscall(SYS_futex, &woken_, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
                has_end ? &time : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
      woken_.exchange(0);
    }
    return nullptr;
  }

  void wake() noexcept override {
    if (woken_.exchange(1) == 0)
      syscall(SYS_futex, &woken_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
  }

  const char* name() const noexcept override { return "futex"; }

private:
  std::atomic<std::uint32_t> woken_{0};
};

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

} // namespace

std::unique_ptr<Poller> make_waiting_poller() noexcept {
  return std::unique_ptr<Poller>(new (std::nothrow) WaitingPoller);
}

} // namespace cede::os
