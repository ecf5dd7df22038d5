// SPDX-License-Identifier: MIT
// Groups: fibers that may not outlive a scope.
#pragma once

#include <cede/fiber.h>
#include <cede/result.h>
#include <cede/time.h>
#include <cede/waiter.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace cede {

class Group;

namespace core {
void leave_group(detail::FiberRecord& fiber) noexcept;
} // namespace core

// Fibers that end before the group does, and of which one that fails ends the others:
//
//   cede::Group group;
//   for (const Url& url : urls)
//     group.spawn([&] { fetch(url); });
//   group.join(); // throws what the first that failed threw
//
// Destroying it cancels the members that are left and waits for their end, shielded: the one
// destructor of this library that waits. A failure that no join has given goes to the scheduler's
// handler, unless the member's own handle is joined. That is also where later failures go: join
// gives the first alone. A member that was cancelled has not failed.
//   Thread    of the scheduler that its members run on; other threads fail a check. Wherever no
//             fiber runs it can be made, and destroyed once no member is left
class Group {
public:
  Group() noexcept = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  // As cede::spawn, also by a member. Once the group is ending, the new fiber is cancelled at
  // birth: its body never runs and is destroyed.
  //   Throws    as cede::spawn; std::system_error(invalid_argument) while members of another
  //             scheduler are left
  template <class F>
  auto spawn(F body, detail::Place place = CEDE_CALLER) -> Fiber<std::invoke_result_t<F&>> {
    return admit(detail::spawn_on(nullptr, nullptr, body, place));
  }
  template <class F>
  auto spawn(FiberOptions options, F body, detail::Place place = CEDE_CALLER)
      -> Fiber<std::invoke_result_t<F&>> {
    return admit(detail::spawn_on(nullptr, &options, body, place));
  }

  // Cancels the members, first spawned first, and all that are spawned later.
  void cancel() noexcept;

  // Whether it was cancelled, or a member has failed. It stays so.
  bool is_ending() const noexcept { return is_ending_; }

  // Members that have not ended.
  std::size_t size() const noexcept { return size_; }

  // Waits until no member is left, and throws what the first that failed threw, as often as asked.
  // Others may be spawned meanwhile, and are waited for.
  //   Blocks    the calling fiber
  //   Throws    what ended the member; Cancelled; std::system_error: no_memory if no stack could be
  //             had for a member, deadlock if the caller is one, not_a_fiber, invalid_argument in a
  //             fiber of another scheduler
  void join() { wait(kForever, WhenUnwinding::wait_on).value(); }

  // The same; a member that joins waits in vain until the deadline.
  //   Fails     timed_out, cancelled, no_memory, deadlock, not_a_fiber, invalid_argument
  //   Throws    what ended the member; Cancelled
  Result<void> join(Deadline deadline) { return wait(deadline, WhenUnwinding::report); }

private:
  friend void core::leave_group(detail::FiberRecord& fiber) noexcept;

  template <class R>
  Fiber<R> admit(Fiber<R> fiber) {
    link(*detail::FiberAccess::record(fiber));
    return fiber;
  }
  void link(detail::FiberRecord& fiber);
  void unlink(detail::FiberRecord& fiber) noexcept;
  void wake_joiners() noexcept;
  Result<void> wait(Deadline deadline, WhenUnwinding rule);

  detail::FiberRecord* first_ = nullptr; // members, in the order of their birth
  detail::FiberRecord* last_ = nullptr;
  detail::FiberRecord* failed_ = nullptr; // the first that did, with a reference
  WaitList joiners_;                      // each link is a JoinPlace
  std::size_t size_ = 0;
  bool is_ending_ = false;
};

} // namespace cede
