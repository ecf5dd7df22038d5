// SPDX-License-Identifier: MIT
// Waits that a std::stop_token ends.
#pragma once

#include <cede/event.h>

#include <optional>
#include <stop_token>

namespace cede {

namespace detail {
struct StopState;
struct StopCallback {
  StopState* state;
  void operator()() const noexcept;
};
} // namespace detail

// A manual event that is set once a stop is requested, by whatever thread. With a select it ends
// any wait:
//
//   cede::StopEvent stop(token);
//   cede::select(cede::on_receive(lines, handle), cede::on_event(stop, [&](auto) { ... }));
//
// While one exists whose stop may still be requested, a wait may be ended from outside: nobody
// speaks of a deadlock, and a test clock doesn't go on by itself.
//   Thread    of the scheduler whose fibers wait; the stop may be requested by any
class StopEvent : public Event {
public:
  //   Throws    std::system_error: not_a_fiber if no scheduler runs here, no_memory
  explicit StopEvent(const std::stop_token& token);
  StopEvent(const StopEvent&) = delete;
  StopEvent& operator=(const StopEvent&) = delete;
  ~StopEvent();

private:
  detail::StopState* state_ = nullptr; // if a stop may still be requested
  std::optional<std::stop_callback<detail::StopCallback>> callback_;
};

} // namespace cede
