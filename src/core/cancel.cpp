// SPDX-License-Identifier: MIT
#include <cede/cancel.h>

#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"

#include <exception>
#include <utility>

namespace cede {

namespace core {

namespace {
constexpr std::uint16_t kMostThrows = 1000;
} // namespace

void throw_request(detail::FiberRecord& me) {
  me.yields_quietly = false;
  if (me.is_raised) {
    me.is_raised = false;
    if (me.is_cancelled)
      me.scheduler->revoke_quick_yields();
    std::rethrow_exception(std::exchange(me.extras->raised, nullptr));
  }
  CEDE_CHECK(++me.throws < kMostThrows, "a cancelled fiber swallows the exception and waits on");
  me.scheduler->revoke_quick_yields();
  throw Cancelled{};
}

} // namespace core

namespace detail {

void throw_cancelled() {
  core::throw_request(*core::running_fiber());
}

} // namespace detail

bool cancel_requested() noexcept {
  const detail::FiberRecord* me = core::running_fiber();
  return me != nullptr && me->is_cancelled;
}

Shield::Shield() noexcept : fiber_(core::running_fiber()) {
  if (fiber_ != nullptr)
    ++fiber_->shields;
}

Shield::~Shield() {
  if (fiber_ == nullptr)
    return;
  --fiber_->shields;
  if (core::has_request(*fiber_))
    fiber_->scheduler->revoke_quick_yields();
}

CancelByResult::CancelByResult() noexcept : fiber_(core::running_fiber()) {
  if (fiber_ == nullptr)
    return;
  ++fiber_->by_result;
  CEDE_CHECK(fiber_->by_result > 0, "more than 255 scopes of CancelByResult inside each other");
}

CancelByResult::~CancelByResult() {
  if (fiber_ == nullptr)
    return;
  --fiber_->by_result;
  if (core::has_request(*fiber_))
    fiber_->scheduler->revoke_quick_yields();
}

} // namespace cede
