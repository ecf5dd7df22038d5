// SPDX-License-Identifier: MIT
// Waiting by an event object that resets itself. Layer os.
#include "poller.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <windows.h>

namespace cede::os {

namespace {

class WaitingPoller final : public Poller {
public:
  explicit WaitingPoller(HANDLE event) : event_(event) {}
  ~WaitingPoller() override { CloseHandle(event_); }

  bool submit(Operation& operation) noexcept override {
    operation.error = ENOSYS;
    return false;
  }
  bool cancel(Operation&) noexcept override { return true; }
  void forget(Descriptor&) noexcept override {}

  // Whole milliseconds, rounded up; at most a day at a time, since the caller looks again anyway.
  Operation* wait(PollTime until) noexcept override {
    constexpr long long kMostMilliseconds = 24 * 60 * 60 * 1000;
    DWORD milliseconds = INFINITE;
    if (until != PollTime::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          until -
          std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now()));
      milliseconds = static_cast<DWORD>(std::clamp<long long>(left.count(), 0, kMostMilliseconds));
    }
    WaitForSingleObject(event_, milliseconds);
    return nullptr;
  }

  void wake() noexcept override { SetEvent(event_); }

  const char* name() const noexcept override { return "event"; }

private:
  HANDLE event_;
};

} // namespace

MadePoller make_poller(PollerKind) noexcept {
  return {nullptr, ENOSYS};
}

std::unique_ptr<Poller> make_waiting_poller() noexcept {
  HANDLE event = CreateEventW(nullptr, FALSE, FALSE, nullptr);
  if (event == nullptr)
    return nullptr;
  std::unique_ptr<Poller> poller(new (std::nothrow) WaitingPoller(event));
  if (poller == nullptr)
    CloseHandle(event);
  return poller;
}

} // namespace cede::os
