// SPDX-License-Identifier: MIT
// A fiber from its first instruction to its last, inside the library. Layer core.
#pragma once

#include <cede/detail/execution.h>
#include <cede/detail/fiber_record.h>
#include <cede/fiber.h>

#include <exception>
#include <functional>
#include <string_view>
#include <vector>

namespace cede {
class Group;
}

namespace cede::core {
struct LimitState;
}

namespace cede::detail {

struct FiberValues;
struct WakerState;

// What few fibers have; made when the first of it is asked for.
struct FiberExtras {
  char name[32] = {};
  StackOptions stack; // its name is the fiber's
  // A finish() value while it unwinds.
  void* finish_value = nullptr;
  void (*destroy_finish_value)(void*) = nullptr;
  // What raise() was given.
  std::exception_ptr raised;
  // To be called at its end, oldest first.
  std::vector<std::function<void(Result<void>)>> exits;
  // The innermost of its hooks.
  SwitchHooks* hooks = nullptr;
  // Shared with its Wakers, until it ends.
  WakerState* waker = nullptr;
  // The group that it is a member of until it ends, and its neighbours there.
  Group* group = nullptr;
  FiberRecord* previous_member = nullptr;
  FiberRecord* next_member = nullptr;
  // The limit that it is a member of until it ends, and its neighbours in the queue there.
  core::LimitState* limit = nullptr;
  FiberRecord* previous_queued = nullptr;
  FiberRecord* next_queued = nullptr;
  bool is_let_in = false; // it counts as running there
  // Its FiberLocals, until its body has ended.
  FiberValues* values = nullptr;
};

} // namespace cede::detail

namespace cede::core {

// What a started fiber runs: its body, then its end.
detail::Departure run_fiber(detail::EntryHead* head, void* word);

// Null without memory.
detail::FiberExtras* extras_of(detail::FiberRecord& fiber) noexcept;

// How it ended, as join() says it.
Result<void> how_it_ended(const detail::FiberRecord& fiber) noexcept;

// Calls what on_exit() was given. No fiber runs meanwhile.
void call_exits(detail::FiberRecord& fiber) noexcept;

// A wait for a particular call is told by the address of its name.
inline constexpr char kSchedule[] = "schedule";
inline bool waits_in(const detail::FiberRecord& fiber, const char* call) noexcept {
  return fiber.waiter != nullptr && fiber.waiter->what() == call && !fiber.waiter->has_fired();
}

// Whether it is in park().
bool is_parked(const detail::FiberRecord& fiber) noexcept;

// Its Wakers wake nobody any more.
void forget_wakers(detail::FiberRecord& fiber) noexcept;

StackOptions stack_options_of(const detail::FiberRecord& fiber) noexcept;
std::string_view name_of(const detail::FiberRecord& fiber) noexcept;

// Whether an exception ended it and nobody is left who could join.
bool has_lost_error(const detail::FiberRecord& fiber) noexcept;

// One that has ended, and that somebody could join until now: if its exception is lost, the
// scheduler's handler gets it.
void hand_over_lost_error(detail::FiberRecord& fiber) noexcept;

// Its body has ended: destroys its FiberLocals, in it. Defined by them.
void destroy_values(detail::FiberRecord& fiber) noexcept;

// It has ended: its group, if it has one, doesn't count it any more. Defined by the group.
void leave_group(detail::FiberRecord& fiber) noexcept;

// The same of its limit, where the next one's turn has come. Defined by the limit.
void leave_limit(detail::FiberRecord& fiber) noexcept;

// It was cancelled while its limit held it: it is ready, to be ended. Defined by the limit.
void leave_queue(detail::FiberRecord& fiber) noexcept;

} // namespace cede::core
