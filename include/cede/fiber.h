// SPDX-License-Identifier: MIT
// Fibers: a scheduler's threads of control, and what the one that runs can do.
#pragma once

#include <cede/cancel.h>
#include <cede/detail/dispatch.h>
#include <cede/detail/fiber_body.h>
#include <cede/detail/fiber_record.h>
#include <cede/result.h>
#include <cede/stack.h>
#include <cede/time.h>
#include <cede/waiter.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace cede {

namespace core {
void leave_hooks(detail::FiberRecord& fiber) noexcept;
void enter_hooks(detail::FiberRecord& fiber) noexcept;
} // namespace core

inline constexpr int kPriorityMin = -4, kPriorityNormal = 0, kPriorityMax = 3;

struct FiberOptions {
  // Copied, up to 31 bytes: for reports and dumps.
  std::string_view name = {};
  // kPriorityMin to kPriorityMax. A higher one runs before a lower one, always.
  int priority = kPriorityNormal;
  StackOptions stack = {};
};

enum class FiberState : std::uint8_t { created, ready, running, waiting, finished };

template <class R>
class Fiber;

// A reference to a fiber, or to none. It may outlive the fiber and its scheduler: what it says then
// is that the fiber has finished.
//   Thread    owner of the fiber's scheduler; a Waker serves the others
class AnyFiber {
public:
  AnyFiber() noexcept = default;
  AnyFiber(const AnyFiber& other) noexcept : AnyFiber(other.record_) {}
  AnyFiber(AnyFiber&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  // Detaches: nobody can join for the result any more.
  template <class R>
  AnyFiber(Fiber<R>&& other) noexcept : AnyFiber(static_cast<const AnyFiber&>(other)) {
    other = {};
  }
  AnyFiber& operator=(AnyFiber other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~AnyFiber();

  explicit operator bool() const noexcept { return record_ != nullptr; }
  friend bool operator==(const AnyFiber& one, const AnyFiber& other) noexcept {
    return one.record_ == other.record_;
  }

  // Counts the fibers of its scheduler; never used again. 0 for no fiber.
  std::uint64_t id() const noexcept { return record_ != nullptr ? record_->id : 0; }
  // Empty if it was given none.
  std::string_view name() const noexcept;
  FiberState state() const noexcept;
  // What it was given; it may have more meanwhile, lent by those who wait for what it holds.
  int priority() const noexcept { return record_ != nullptr ? record_->own_priority : 0; }

  // Takes effect at once: a fiber that is ready goes behind its new equals.
  //   Throws    std::system_error(invalid_argument) for what is no priority
  void set_priority(int priority) const;

  // Asks it to end, at its next wait or the one that it is in. False if it has ended or was asked.
  bool cancel() const noexcept;
  bool is_cancelled() const noexcept { return record_ != nullptr && record_->is_cancelled; }

  // Ends its park(), or the next one. False if that was to be so already, or if it has ended.
  bool wake() const noexcept {
    return record_ != nullptr && (detail::QuickWait::wake(*record_) || wake_out_of_line());
  }

  // Ends its schedule(). False if it is in none.
  bool make_ready() const noexcept;

  // Throws `error` in it, once, at its next wait or the one that it is in; for the rest like a
  // cancellation. False if it has ended or another one is on its way.
  //   Throws    std::system_error: no_memory; invalid_argument for no exception
  bool raise(std::exception_ptr error) const;

  // Keeps it from running until resume(), whatever it waits for meanwhile; the caller itself leaves
  // at once. A cancellation resumes it. False if it was suspended or cancelled, or has ended.
  bool suspend() const;
  bool resume() const noexcept;
  bool is_suspended() const noexcept { return record_ != nullptr && record_->is_suspended; }

  // Calls `f` when it has ended, newest first, before those who join are woken, and says how it
  // ended: as join(Deadline). It runs between fibers and must not wait. False if it has ended
  // already.
  //   Throws    std::system_error: no_memory; invalid_argument for no function
  bool on_exit(std::function<void(Result<void> how)> f) const;

  // Waits until it has ended, and says how. It takes nothing from those who join for the result,
  // and an exception counts as nobody's.
  //   Blocks    the calling fiber
  //   Fails     cancelled, failed, no_memory: so it ended; timed_out; deadlock if it is the caller,
  //             waits for the caller's end, or there is no fiber; not_a_fiber
  //   Throws    Cancelled
  Result<void> join(Deadline deadline = kForever) const;

protected:
  friend struct detail::FiberAccess;
  explicit AnyFiber(detail::FiberRecord* record) noexcept : record_(record) {
    if (record_ != nullptr)
      ++record_->references;
  }

  detail::FiberRecord* record_ = nullptr;

private:
  bool wake_out_of_line() const noexcept;
};

// What spawn() gives: the fiber's result can be had by it. Dropping it detaches the fiber.
template <class R>
class Fiber : public AnyFiber {
public:
  Fiber() noexcept = default;
  Fiber(Fiber&& other) noexcept = default;
  Fiber& operator=(Fiber&& other) noexcept {
    detach();
    AnyFiber::operator=(static_cast<AnyFiber&&>(other));
    return *this;
  }
  ~Fiber() { detach(); }

  // Waits until it has ended, and returns a copy of its result, as often as asked; a result that
  // can only be moved is given once. Throws the exception that ended the body.
  //   Blocks    the calling fiber
  //   Throws    std::system_error: cancelled, no_memory, already_joined, deadlock, not_a_fiber;
  //             Cancelled
  R join();

  // The same; a reference is given as std::reference_wrapper.
  //   Fails     timed_out, cancelled, no_memory, already_joined, deadlock, not_a_fiber
  //   Throws    what ended the body; Cancelled
  using JoinResult =
      Result<std::conditional_t<std::is_reference_v<R>,
                                std::reference_wrapper<std::remove_reference_t<R>>, R>>;
  JoinResult join(Deadline deadline);

private:
  friend struct detail::FiberAccess;
  using AnyFiber::AnyFiber;
  void detach() noexcept;
};

// While one is in scope, its fiber must not stop running: a call that could let others run fails a
// check, whether or not it would have. For what has to be seen whole or not at all: between two
// waits nobody else runs, and this says where there must be none. The calls that can let others run
// are those whose comment says `Blocks`, yield(), yield_to(), schedule() and the sleeps.
//   Thread    its fiber; outside fibers it has no effect
class NoSuspend {
public:
  NoSuspend() noexcept;
  NoSuspend(const NoSuspend&) = delete;
  NoSuspend& operator=(const NoSuspend&) = delete;
  ~NoSuspend();

private:
  detail::FiberRecord* fiber_;
};

// While one is in scope, `leave` is called whenever its fiber stops running and `enter` whenever it
// goes on, for what belongs to a fiber and has to be in one place for all. `enter` is called at the
// beginning of the scope and `leave` at its end too. They must not wait nor throw. Fibers without
// one pay nothing.
//   Thread    its fiber; outside fibers a check fails
class SwitchHooks {
public:
  SwitchHooks(std::function<void()> enter, std::function<void()> leave);
  SwitchHooks(const SwitchHooks&) = delete;
  SwitchHooks& operator=(const SwitchHooks&) = delete;
  ~SwitchHooks();

private:
  friend void core::leave_hooks(detail::FiberRecord& fiber) noexcept;
  friend void core::enter_hooks(detail::FiberRecord& fiber) noexcept;

  detail::FiberRecord* fiber_;
  SwitchHooks* outer_; // in the same fiber
  std::function<void()> enter_, leave_;
};

// Makes a fiber of the scheduler that runs here, ready behind its equals. The body, `R body()`,
// runs when its turn comes, not before. Its exception goes to whoever joins, or to the scheduler's
// handler if nobody can any more.
//   Throws    std::system_error: no_memory, invalid_argument (no body, a name or priority that
//   can't
//             be), not_a_fiber if no scheduler runs here; what moving `body` throws
//   Thread    of the scheduler
template <class F>
auto spawn(FiberOptions options, F body, detail::Place place = CEDE_CALLER)
    -> Fiber<std::invoke_result_t<F&>>;
template <class F>
auto spawn(F body, detail::Place place = CEDE_CALLER) -> Fiber<std::invoke_result_t<F&>>;

// The fiber that runs; none on a plain thread.
AnyFiber current() noexcept;

// Lets the others of this priority run, and all higher ones. A thread without fibers yields.
//   Throws    Cancelled
CEDE_ALWAYS_INLINE void yield() {
  detail::yield_inline();
}

// Lets `fiber` run now, if it is ready, of this scheduler and not the caller; false if not. The
// caller stays ready.
//   Throws    Cancelled
bool yield_to(const AnyFiber& fiber);

// Leaves without being ready again: until make_ready().
//   Throws    Cancelled; std::system_error(not_a_fiber)
void schedule();

// Waits for that long; never shorter. No time, or less, is a yield(). wake() doesn't end it. A
// thread without fibers sleeps.
//   Throws    Cancelled
void sleep_until(Deadline deadline);
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> duration) {
  sleep_until(after(duration));
}

// Waits for a wake(), and takes the one that came before. Never ends without a reason.
//   Throws    Cancelled; std::system_error(not_a_fiber)
CEDE_ALWAYS_INLINE WakeReason park(Deadline deadline = kForever);

// Ends the fiber that runs, from any depth: destructors run, and `value` is its result. The type
// has to be the body's result type. It is a cancellation in all else: swallowed, the next wait
// throws it again. On a thread without fibers, or with another type, it fails a check.
[[noreturn]] void finish();
template <class R>
[[noreturn]] void finish(R value);

// ---------------------------------------------------------------------------------------------

namespace detail {

// A record of `scheduler`, or of the one that runs here if that is null, with the caller's
// reference; its kind and body are to be set.
//   Throws    std::system_error
FiberRecord& new_fiber(core::SchedulerState* scheduler, const FiberOptions* options, Place place);
// One that was not admitted, with its body if it has one.
void discard_new_fiber(FiberRecord& fiber) noexcept;
void admit_fiber(FiberRecord& fiber) noexcept;

void detach_fiber(FiberRecord& fiber) noexcept;
// Waits for the end. An error says that there is no result; what ended the body is thrown.
Result<void> join_for_result(FiberRecord* fiber, Deadline deadline, WhenUnwinding rule);
[[noreturn]] void finish_with(void* value, void (*destroy)(void*), const void* type);
template <class R>
inline constexpr auto kDeleteValue = [](void* value) { delete static_cast<R*>(value); };

// A copy of the result of a fiber that is done; or the result itself, once, if it can't be copied.
template <class R>
typename Fiber<R>::JoinResult result_of(FiberRecord& fiber) {
  using Joined = typename Fiber<R>::JoinResult;
  if constexpr (std::is_void_v<R>) {
    return {};
  } else if constexpr (std::is_reference_v<R>) {
    return Joined(std::in_place, **static_cast<std::remove_reference_t<R>**>(body_of(fiber)));
  } else {
    using Value = std::remove_cv_t<R>;
    Value& value = *static_cast<Value*>(body_of(fiber));
    if constexpr (std::is_copy_constructible_v<Value>) {
      return Joined(std::in_place, std::as_const(value));
    } else {
      if (fiber.is_result_taken)
        return Errc::already_joined;
      fiber.is_result_taken = true;
      return Joined(std::in_place, std::move(value));
    }
  }
}

struct FiberAccess {
  template <class R>
  static Fiber<R> adopt(FiberRecord& fiber) noexcept {
    Fiber<R> handle;
    handle.record_ = &fiber;
    return handle;
  }
  static AnyFiber reference(FiberRecord* fiber) noexcept { return AnyFiber(fiber); }
  static FiberRecord* record(const AnyFiber& fiber) noexcept { return fiber.record_; }
};

// A fiber with its body, to be admitted or discarded.
//   Throws    as spawn
template <class F>
FiberRecord& make_fiber(core::SchedulerState* scheduler, const FiberOptions* options, F& callable,
                        Place place) {
  using Body = F;
  using R = std::invoke_result_t<Body&>;
  using Stored = FiberBody<Body, R>;
  static_assert(!std::is_rvalue_reference_v<R>, "what this body returns would be gone at the join");
  if (is_null(callable))
    throw_error(Errc::invalid_argument);
  FiberRecord& fiber = new_fiber(scheduler, options, place);
  try {
    if constexpr (Stored::kIsInline()) {
      ::new (static_cast<void*>(fiber.storage)) Stored(std::move(callable));
    } else {
      constexpr auto kAlignment = std::align_val_t(alignof(Stored));
      void* memory = ::operator new(sizeof(Stored), kAlignment, std::nothrow);
      if (memory == nullptr)
        throw_error(Errc::no_memory);
      try {
        ::new (static_cast<void*>(fiber.storage)) void*(::new (memory) Stored(std::move(callable)));
      } catch (...) {
        ::operator delete(memory, kAlignment);
        throw;
      }
    }
  } catch (...) {
    discard_new_fiber(fiber);
    throw;
  }
  fiber.kind = &kFiberKind<Body, R>;
  return fiber;
}

template <class F>
auto spawn_on(core::SchedulerState* scheduler, const FiberOptions* options, F& callable,
              Place place) {
  FiberRecord& fiber = make_fiber(scheduler, options, callable, place);
  admit_fiber(fiber);
  return FiberAccess::adopt<std::invoke_result_t<F&>>(fiber);
}

} // namespace detail

template <class F>
auto spawn(FiberOptions options, F body, detail::Place place) -> Fiber<std::invoke_result_t<F&>> {
  return detail::spawn_on(nullptr, &options, body, place);
}

template <class F>
auto spawn(F body, detail::Place place) -> Fiber<std::invoke_result_t<F&>> {
  return detail::spawn_on(nullptr, nullptr, body, place);
}

namespace detail {
WakeReason park_out_of_line(Deadline deadline);
} // namespace detail

CEDE_ALWAYS_INLINE WakeReason park(Deadline deadline) {
  WakeReason reason{};
  if (deadline.is_forever() && detail::QuickWait::park(reason)) [[likely]]
    return reason;
  return detail::park_out_of_line(deadline);
}

template <class R>
void finish(R value) {
  detail::finish_with(new R(std::move(value)), detail::kDeleteValue<R>, &detail::kResultType<R>);
}

template <class R>
void Fiber<R>::detach() noexcept {
  if (record_ != nullptr)
    detail::detach_fiber(*record_);
}

template <class R>
R Fiber<R>::join() {
  detail::join_for_result(record_, kForever, WhenUnwinding::wait_on).value();
  return detail::result_of<R>(*record_).value();
}

template <class R>
typename Fiber<R>::JoinResult Fiber<R>::join(Deadline deadline) {
  Result<void> ended = detail::join_for_result(record_, deadline, WhenUnwinding::report);
  if (!ended)
    return ended.error();
  return detail::result_of<R>(*record_);
}

} // namespace cede
