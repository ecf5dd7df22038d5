// SPDX-License-Identifier: MIT
// What a fiber has called whenever it stops running and goes on. Layer core.
#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"

#include <new>
#include <utility>

namespace cede {

namespace core {

// Innermost first.
void leave_hooks(detail::FiberRecord& fiber) noexcept {
  for (SwitchHooks* hooks = fiber.extras->hooks; hooks != nullptr; hooks = hooks->outer_)
    hooks->leave_();
}

namespace {

template <class Hooks, class Enter>
void from_the_outermost(Hooks* hooks, Hooks* Hooks::*outer, Enter enter) {
  if (hooks == nullptr)
    return;
  from_the_outermost(hooks->*outer, outer, enter);
  enter(*hooks);
}

} // namespace

void enter_hooks(detail::FiberRecord& fiber) noexcept {
  from_the_outermost(fiber.extras->hooks, &SwitchHooks::outer_,
                     [](SwitchHooks& hooks) { hooks.enter_(); });
}

} // namespace core

SwitchHooks::SwitchHooks(std::function<void()> enter, std::function<void()> leave)
    : fiber_(core::running_fiber()), outer_(nullptr), enter_(std::move(enter)),
      leave_(std::move(leave)) {
  CEDE_CHECK(fiber_ != nullptr, "hooks of a fiber outside fibers");
  if (enter_ == nullptr || leave_ == nullptr)
    detail::throw_error(Errc::invalid_argument);
  detail::FiberExtras* extras = core::extras_of(*fiber_);
  if (extras == nullptr)
    throw std::bad_alloc();
  outer_ = std::exchange(extras->hooks, this);
  fiber_->is_hooked = true;
  fiber_->scheduler->revoke_quick_yields();
  enter_();
}

SwitchHooks::~SwitchHooks() {
  CEDE_CHECK(fiber_ != nullptr && fiber_ == core::running_fiber() && fiber_->extras->hooks == this,
             "hooks of a fiber are destroyed in another order than they were made");
  leave_();
  fiber_->extras->hooks = outer_;
  fiber_->is_hooked = outer_ != nullptr;
}

} // namespace cede
