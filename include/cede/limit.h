// SPDX-License-Identifier: MIT
// Limits: fibers of which only so many run at a time.
#pragma once

#include <cede/fiber.h>
#include <cede/result.h>
#include <cede/time.h>
#include <cede/waiter.h>

#include <cstddef>
#include <type_traits>

namespace cede {

namespace core {
struct LimitState;
} // namespace core

// Fibers that are queued until fewer than a number of them run, first come, first served, whatever
// their priorities. A queued one holds no stack:
//
//   cede::Limit limit(8);
//   for (const Url& url : urls)
//     limit.spawn([&] { fetch(url); });
//   limit.wait();
//
// However a member ends, the next one's turn comes, before those who join it are woken. What a
// member throws is its handle's or goes to the scheduler's handler, as with any fiber. Destroying
// the limit wakes those who wait with `closed`; the members don't need it: those that run go on,
// and those that are queued start in their turn, as many at a time as before.
//   Thread    of the scheduler that its members run on; other threads fail a check. Wherever no
//             member is left it can be made, waited for and destroyed
class Limit {
public:
  // A whole number of fibers.
  //   Throws    std::system_error(invalid_argument) for less than one; std::bad_alloc
  template <class Count>
  requires(std::is_integral_v<Count> && !std::is_same_v<Count, bool>) explicit Limit(Count max)
      : state_(make_state(max < 1 ? 0 : static_cast<std::size_t>(max))) {}
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit();

  // As cede::spawn, also by a member. The fiber is there at once, but becomes ready only when fewer
  // than max() run. Until then it is `created`, and only a cancellation changes that: it ends then
  // without having run. So does all that is spawned when the scheduler is closed.
  //   Throws    as cede::spawn; std::system_error(invalid_argument) while members of another
  //             scheduler are left
  template <class F>
  auto spawn(F body, detail::Place place = CEDE_CALLER) -> Fiber<std::invoke_result_t<F&>> {
    return spawn_member(nullptr, body, place);
  }
  template <class F>
  auto spawn(FiberOptions options, F body, detail::Place place = CEDE_CALLER)
      -> Fiber<std::invoke_result_t<F&>> {
    return spawn_member(&options, body, place);
  }

  // Waits until no member is left. Others may be spawned meanwhile, and are waited for; those that
  // are spawned by who was woken are not.
  //   Blocks    the calling fiber
  //   Throws    Cancelled; std::system_error: deadlock if the caller is a member, closed,
  //             not_a_fiber, invalid_argument in a fiber of another scheduler
  void wait() { wait(kForever, WhenUnwinding::wait_on).value(); }

  // The same; a member waits in vain until the deadline.
  //   Fails     timed_out, cancelled, deadlock, closed, not_a_fiber, invalid_argument
  //   Throws    Cancelled
  Result<void> wait(Deadline deadline) { return wait(deadline, WhenUnwinding::report); }

  // It is a member no longer: cancelled if it is queued, and else let go on uncounted. False if it
  // was none.
  bool forget(const AnyFiber& fiber) noexcept;

  std::size_t max() const noexcept;
  // Members whose turn has come and that have not ended; they need not have a stack yet.
  std::size_t running() const noexcept;
  // The other members: queued, or cancelled there and not ended yet.
  std::size_t queued() const noexcept;

private:
  template <class F>
  auto spawn_member(const FiberOptions* options, F& body, detail::Place place)
      -> Fiber<std::invoke_result_t<F&>> {
    detail::FiberRecord& fiber = detail::make_fiber(nullptr, options, body, place);
    admit(fiber);
    return detail::FiberAccess::adopt<std::invoke_result_t<F&>>(fiber);
  }
  static core::LimitState* make_state(std::size_t max);
  // Or discards it and throws.
  void admit(detail::FiberRecord& fiber);
  Result<void> wait(Deadline deadline, WhenUnwinding rule);

  core::LimitState* state_; // shared with the members: gone with the last of them all
};

} // namespace cede
