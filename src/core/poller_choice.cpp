// SPDX-License-Identifier: MIT
#include "poller_choice.h"

#include "check.h"
#include "inbox.h"
#include "sanitizers.h"
#include "scheduler_state.h"

#include "../os/poller.h"

#include <cstdlib>
#include <string_view>

namespace cede::core {

namespace {

static_assert(static_cast<int>(Backend::io_uring) == static_cast<int>(os::PollerKind::io_uring));

Backend asked_for(Backend option) noexcept {
  const char* text = option == Backend::automatic ? std::getenv("CEDE_POLLER") : nullptr;
  const std::string_view name = text != nullptr ? text : "";
  if (name == "epoll")
    return Backend::epoll;
  if (name == "io_uring")
    return Backend::io_uring;
  CEDE_CHECK(name.empty(),
             "CEDE_POLLER names no poller: set it to epoll or io_uring, or to nothing");
  return option;
}

} // namespace

Result<void> choose_poller(SchedulerState& scheduler) noexcept {
  Backend asked = asked_for(scheduler.options.backend);
  if (runs_on_valgrind()) { // where a thread that waits in a ring stops all others
    if (asked == Backend::io_uring)
      return std::make_error_code(std::errc::function_not_supported);
    asked = Backend::epoll;
  }
  os::MadePoller made = os::make_poller(static_cast<os::PollerKind>(asked));
  if (made.poller == nullptr)
    return std::error_code(made.error, std::system_category());
  scheduler.inbox->set_poller(std::move(made.poller));
  return {};
}

} // namespace cede::core
