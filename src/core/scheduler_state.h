// SPDX-License-Identifier: MIT
// A scheduler's state, and dispatch: who runs next, and the switch to it. Layer core.
//
// A wake-up, from the system to the fiber:
//   os::Poller::wait        poller_*.cpp       gives finished operations
//   core::wake_finished     pump.cpp           tells their waits; in serve() also posts and
//   deadlines Waiter::fire            waiter.cpp         ends the wait, in every list that it is in
//   ReadyQueue::push        ready_queue.cpp    the fiber is ready
//   SchedulerState::go      scheduler_state.cpp  it is its turn
//   cede_switch             arch/*/switch.S    it runs
//
// Invariants: exactly one of the pump and the fibers runs; `current` says which. The pump is
// whoever drives the scheduler, on the stack of the thread; it is on a ready ring only while a
// round is to end in it.
#pragma once

#include "check.h"
#include "deadlines.h"
#include "ready_queue.h"
#include "record_pool.h"

#include "../os/poller.h"

#include <cede/detail/dispatch.h>
#include <cede/scheduler.h>
#include <cede/waiter.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace cede::core {

class Heartbeat;
class Inbox;
class LockOrder;
struct SchedulerState;

// An operation that a fiber waits for.
struct AwaitedOperation : os::Operation {
  SchedulerState* scheduler = nullptr;
  Waiter* waiter = nullptr;
  WaitLink* place = nullptr; // by which it ends that wait, if it is one of several
};

// What another layer keeps for a scheduler, which destroys it.
struct Attachment {
  Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  virtual ~Attachment() = default;
};

struct SchedulerState : detail::Dispatch {
  explicit SchedulerState(const SchedulerOptions& given);
  ~SchedulerState();

  // The scheduler that is driven on this thread; null if none is.
  static SchedulerState* driven() noexcept {
    detail::Dispatch* dispatch = detail::thread().dispatch;
    return dispatch->current != nullptr ? static_cast<SchedulerState*>(dispatch) : nullptr;
  }
  bool is_on_its_thread() const noexcept { return owner == &detail::thread(); }
  bool runs_pump() const noexcept { return current == &pump; }

  TimePoint time() const noexcept;

  // -- changes of state, none of which switches --------------------------------------------------

  // A created fiber with its body in it: ready, behind its equals.
  void admit(detail::FiberRecord& fiber) noexcept;
  // The same, but ready only when it is released.
  void hold(detail::FiberRecord& fiber) noexcept;
  void release(detail::FiberRecord& fiber) noexcept;
  void make_ready(detail::FiberRecord& fiber) noexcept;
  void set_priority(detail::FiberRecord& fiber, int priority) noexcept;
  void request_cancel(detail::FiberRecord& fiber) noexcept;
  // A request was made that `fiber` is to meet: ends its wait, if that may be.
  void interrupt(detail::FiberRecord& fiber) noexcept;
  void suspend(detail::FiberRecord& fiber);
  void resume(detail::FiberRecord& fiber) noexcept;
  // The next yield goes out of line, where everything is looked at.
  void revoke_quick_yields() noexcept { catch_up(); }
  // The pump is to run soon, at the end of a round.
  void call_pump() noexcept;
  // At the end of the round of this priority that begins or goes on now.
  void end_round_with_pump(int priority) noexcept;
  // It has served.
  void reset_service() noexcept;

  // From now on each dispatch is told to `heart`, or to nobody if that is null.
  void watch_by(Heartbeat* heart) noexcept;

  // Whether something is to be done now.
  bool has_work() const noexcept;

  // -- what the running fiber does ---------------------------------------------------------------

  // Stays ready and lets the others go first.
  void yield(detail::FiberRecord& me);
  // Stays ready and lets `to`, which is ready, go first.
  void yield_to(detail::FiberRecord& me, detail::FiberRecord& to);
  // Leaves the ready ring and runs whoever is next; returns when `me` was made ready and its turn
  // has come.
  void block(detail::FiberRecord& me);
  // Ends `me`: on its own stack, which is not touched again after the departure.
  detail::Departure end(detail::FiberRecord& me) noexcept;

  // -- what the pump does ------------------------------------------------------------------------

  // Runs fibers until the pump's turn has come again.
  void run_fibers(detail::FiberRecord& first);
  // Who runs next, with a stack; null if nobody is ready.
  detail::FiberRecord* next_fiber() noexcept;
  // Nobody else can run any more, so no stack will be freed: ends the first of the starved. False
  // if there is none.
  bool end_starved() noexcept;

  // set at construction
  const detail::ThreadBlock* const owner;
  const std::uint64_t thread_number; // the owner's, as the system counts: for debuggers
  const SchedulerOptions options;
  std::shared_ptr<Inbox> inbox; // what other threads may reach

  // under stacks_mutex(): its neighbours on the list of all
  SchedulerState* older = nullptr;
  SchedulerState* newer = nullptr;

  // owner thread only
  detail::FiberRecord pump{};
  ReadyQueue ready;
  Deadlines deadlines;
  RecordPool* records;                          // owned by the records in use and by this
  TimePoint served;                             // when the pump last looked at the clock
  TimePoint dispatched;                         // when the fiber that runs was, if slices are timed
  TimePoint test_time;                          // what a test clock shows
  std::int32_t granted_yields = 0;              // what quick_yields was when it was last set
  std::int32_t until_service = 0;               // dispatches until the pump is called
  bool is_pump_called = false;                  // it is on a ready ring
  bool is_stepping = false;                     // it runs after every dispatch
  const detail::FiberRecord* awaited = nullptr; // the pump runs straight after its end
  Deadline driven_until = kForever;             // when the pump has to run again
  std::size_t operations = 0;                   // that are pending
  std::size_t jobs = 0;                         // that helpers have
  std::uint32_t operations_in_turn = 0;         // since the last that gave others a turn
  bool is_closing = false;                      // fibers are cancelled at birth
  std::size_t alive = 0;                        // fibers that have not ended
  std::size_t stacks = 0;                       // of them, those with a stack
  detail::FiberRecord* starved =
      nullptr; // created fibers that no stack could be had for, first first
  detail::FiberRecord* failed = nullptr; // ended with an error that nobody can join: for the pump
  detail::Stack* graves = nullptr;       // stacks of ended fibers that the manager releases
  detail::WakerState* wakers = nullptr;  // of fibers that have not ended
  bool is_round_timed = false;           // since `served` nobody has slept
  bool is_each_dispatch_seen = false;    // no yield may be taken inline
  std::uint64_t switches = 0;
  Heartbeat* heartbeat = nullptr; // a watchdog's, if there is one
  SchedulerMetrics counted;       // those of them that stand nowhere else
  std::uint64_t last_id = 0;
  UnhandledError on_unhandled;
  std::size_t unhandled_errors = 0;
  IdleHook on_idle;
  std::unique_ptr<LockOrder> lock_order; // null unless it is checked
  std::unique_ptr<Attachment> helpers;   // null until there is something to do for them

private:
  // Dispatches `to`; returns when `from` is dispatched again.
  void go(detail::FiberRecord& from, detail::FiberRecord& to);
  // `to` is about to run.
  void set_current(detail::FiberRecord& to) noexcept {
    ++switches;
    current = &to;
    if (is_each_dispatch_seen) [[unlikely]]
      see_dispatch(to);
    const bool is_quick = &to != &pump && !is_stepping && !is_each_dispatch_seen &&
                          ready.order() != ReadyOrder::at_random && !ready.has_before(to);
    granted_yields = quick_yields = is_quick && until_service > 0 ? until_service : 0;
  }
  void see_dispatch(const detail::FiberRecord& to) noexcept;
  // `me`, which ran, is about to leave, if only to go on.
  void end_slice(const detail::FiberRecord& me) noexcept {
    if (options.times_slices) [[unlikely]]
      note_end_of_slice(me);
  }
  void note_end_of_slice(const detail::FiberRecord& me) noexcept;
  // The head of the running fiber's ring, and what it has spent.
  void catch_up() noexcept {
    const std::int32_t spent = granted_yields - quick_yields;
    granted_yields = quick_yields = 0;
    until_service -= spent;
    switches += static_cast<std::uint64_t>(spent);
    if (spent > 0 || !runs_pump())
      ready.follow(*current);
  }
  void count_dispatch(const detail::FiberRecord& me) noexcept;
  static bool can_inherit(const detail::FiberRecord& next, const detail::Stack& stack) noexcept;
  bool start(detail::FiberRecord& fiber, detail::Stack* inherited) noexcept;
  void end_unrun(detail::FiberRecord& fiber, detail::Outcome outcome) noexcept;
  void publish_end(detail::FiberRecord& fiber) noexcept;
  void bury(detail::Stack& stack) noexcept;
};

// The fiber that runs; null on a plain thread and in the pump.
inline detail::FiberRecord* running_fiber() noexcept {
  SchedulerState* scheduler = SchedulerState::driven();
  return scheduler == nullptr || scheduler->runs_pump() ? nullptr : scheduler->current;
}

// Whom a fiber waits for: who is joined, or holds the mutex; null if that can't be said.
detail::FiberRecord* counterpart_of(const detail::FiberRecord& fiber) noexcept;
// The same, if nobody and nothing else can end the wait.
detail::FiberRecord* awaited_by(const detail::FiberRecord& fiber) noexcept;
// Whether a wait of `me` for `target` would close a circle of those.
bool closes_circle(const detail::FiberRecord& me, const detail::FiberRecord& target) noexcept;

// Fails a check on another thread than that of the fiber's scheduler.
inline void check_thread(const detail::FiberRecord& fiber) noexcept {
  CEDE_CHECK(fiber.scheduler == nullptr || fiber.scheduler->is_on_its_thread(),
             "a fiber is used on another thread than its scheduler's: use a Waker or a Remote");
}

// What a wait of `me` would do about a cancellation.
enum class Interruption : std::uint8_t { none, throws, reports };
inline void check_may_suspend(const detail::FiberRecord* me) noexcept {
  CEDE_CHECK(me == nullptr || me->no_suspends == 0, "a wait inside a NoSuspend scope");
}

// Whether a wait of `me` has to report rather than throw, cancelled or not.
inline bool has_to_report(const detail::FiberRecord& me) noexcept {
  return me.by_result > 0 || detail::thread().exceptions->uncaught > 0;
}

// Whether it was asked for something that its waits have to throw.
inline bool has_request(const detail::FiberRecord& me) noexcept {
  return me.is_cancelled || me.is_raised;
}

inline Interruption interruption_of(const detail::FiberRecord& me) noexcept {
  if (!has_request(me) || me.shields > 0)
    return Interruption::none;
  return has_to_report(me) ? Interruption::reports : Interruption::throws;
}

// Throws what `me` was asked for.
[[noreturn]] void throw_request(detail::FiberRecord& me);

// Drops one reference; the last one gives the record back.
void release_record(detail::FiberRecord& fiber) noexcept;

} // namespace cede::core
