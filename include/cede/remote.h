// SPDX-License-Identifier: MIT
// What other threads use to reach a scheduler and its fibers. Both may outlive the scheduler.
#pragma once

#include <cede/detail/message.h>
#include <cede/fiber.h>
#include <cede/result.h>
#include <cede/time.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace cede {

namespace detail {
struct CallState;
struct WakerState;
} // namespace detail

// Reaches a scheduler from any thread. While one exists that isn't unref'ed, a wait may be ended
// from outside, so nobody speaks of a deadlock; it doesn't keep run() from returning when no fiber
// and no post is left.
//   Thread    any
class Remote {
public:
  Remote() noexcept = default; // of no scheduler: everything is closed
  Remote(const Remote& other) noexcept;
  Remote(Remote&& other) noexcept;
  Remote& operator=(Remote other) noexcept;
  ~Remote();

  // Has `f` called on the scheduler's thread, between fibers: it must not wait, but may spawn.
  // Posts of one thread run in the order they were made; each that was accepted runs once, or is
  // destroyed with the scheduler. `f` is left as it was if it is refused. An exception that leaves
  // it goes to the scheduler's handler of unhandled errors, as of no fiber.
  //   Fails     again (the limit is reached), closed, no_memory, invalid_argument
  template <class F>
  Result<void> post(F&& f) const;

  // The same, and gives what `f` returned or throws what it threw. A fiber that calls waits, also
  // one of the same scheduler; a plain thread blocks.
  //   Blocks    the calling fiber, or thread
  //   Fails     as post; timed_out, cancelled: `f` may still run; closed also if the scheduler
  //   ended
  //             first; deadlock where its own thread would block
  //   Throws    what `f` threw; Cancelled
  template <class F>
  auto call(F f, Deadline deadline = kForever) const -> Result<std::invoke_result_t<F&>>;

  // From now on this copy doesn't count as somebody who may end a wait.
  void unref() noexcept;

private:
  friend class Scheduler;
  friend Remote remote();
  explicit Remote(std::shared_ptr<core::Inbox> inbox) noexcept;

  std::shared_ptr<core::Inbox> inbox_;
  bool counts_ = false;
};

// What reaches the scheduler that runs here.
//   Throws    std::system_error(not_a_fiber) if none does
Remote remote();

// Wakes one fiber from any thread, as AnyFiber::wake() does. When the fiber has ended it does
// nothing. While one exists, its fiber's park() may end from outside.
//   Thread    any
class Waker {
public:
  Waker() noexcept = default; // of nobody
  Waker(const Waker& other) noexcept;
  Waker(Waker&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Waker& operator=(Waker other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Waker();

  // Never fails and never blocks; several before the fiber has run are one. The posts that this
  // thread made before have run when the fiber does.
  void wake() const noexcept;

private:
  friend Waker waker(const AnyFiber& fiber);
  explicit Waker(detail::WakerState* state) noexcept;

  detail::WakerState* state_ = nullptr;
};

// A Waker of `fiber`, or of the one that runs.
//   Throws    std::system_error: no_memory; not_a_fiber if there is none
//   Thread    of the fiber's scheduler
Waker waker(const AnyFiber& fiber);
Waker waker();

// ---------------------------------------------------------------------------------------------

namespace detail {

// Whether `inbox` has taken it.
Result<void> send_message(core::Inbox* inbox, Message& message) noexcept;

// Handed to the scheduler's handler of unhandled errors.
void report_post_error(core::SchedulerState& scheduler, const std::exception_ptr& error) noexcept;

template <class F>
struct Post : Message {
  F f;

  explicit Post(F&& callable)
      : Message{nullptr, run_post, discard_post, true}, f(std::move(callable)) {}

  static void run_post(Message& message, core::SchedulerState& scheduler) {
    std::unique_ptr<Post> self(static_cast<Post*>(&message));
    try {
      self->f();
    } catch (...) {
      report_post_error(scheduler, std::current_exception());
    }
  }
  static void discard_post(Message& message) noexcept { delete static_cast<Post*>(&message); }
};

// A call under way, shared by who waits and by the message. It is itself the message that tells a
// waiting fiber of the end, so that this can't fail.
struct CallState : Message {
  CallState() : Message{nullptr, run_reply, discard_reply, false} {}
  CallState(const CallState&) = delete;
  CallState& operator=(const CallState&) = delete;
  std::mutex mutex;
  std::condition_variable ended_for_thread;
  bool has_ended = false;
  bool is_closed = false;
  std::exception_ptr error;
  // Of a fiber that waits.
  std::shared_ptr<core::Inbox> home;
  Waiter* waiter = nullptr;        // changed on that fiber's thread only
  std::shared_ptr<CallState> sent; // keeps it while it is on its way

  static void run_reply(Message& message, core::SchedulerState&);
  static void discard_reply(Message& message) noexcept;
};

// Says that it has ended to whoever waits.
void end_call(const std::shared_ptr<CallState>& call) noexcept;
// Waits for that.
Result<void> wait_for_call(core::Inbox* inbox, const std::shared_ptr<CallState>& call,
                           Deadline deadline);
// Fails if the caller can't wait for `inbox`'s scheduler.
Result<void> prepare_call(core::Inbox* inbox, CallState& call) noexcept;

template <class F, class R>
struct Call : CallState {
  F f;
  std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>> value;

  explicit Call(F&& callable) : f(std::move(callable)) {}

  void run() noexcept {
    try {
      if constexpr (std::is_void_v<R>)
        f();
      else
        value.emplace(f());
    } catch (...) {
      error = std::current_exception();
    }
  }
};

// Ends the call as closed if it never ran.
template <class C>
struct CallRun {
  std::shared_ptr<C> call;
  bool has_run = false;

  explicit CallRun(std::shared_ptr<C> state) : call(std::move(state)) {}
  CallRun(CallRun&& other) noexcept = default;
  ~CallRun() {
    if (call == nullptr)
      return;
    call->is_closed = !has_run;
    end_call(call);
  }
  void operator()() {
    call->run();
    has_run = true;
  }
};

} // namespace detail

template <class F>
Result<void> Remote::post(F&& f) const {
  using Callable = std::decay_t<F>;
  if (detail::is_null(f))
    return Errc::invalid_argument;
  std::unique_ptr<detail::Post<Callable>> message;
  try {
    if constexpr (std::is_lvalue_reference_v<F>)
      message.reset(new detail::Post<Callable>(Callable(f)));
    else
      message.reset(new detail::Post<Callable>(std::forward<F>(f)));
  } catch (const std::bad_alloc&) {
    return Errc::no_memory;
  }
  Result<void> sent = detail::send_message(inbox_.get(), *message);
  if (sent)
    message.release();
  else if constexpr (!std::is_lvalue_reference_v<F>) {
    std::destroy_at(&f);
    std::construct_at(&f, std::move(message->f));
  }
  return sent;
}

template <class F>
auto Remote::call(F f, Deadline deadline) const -> Result<std::invoke_result_t<F&>> {
  using R = std::invoke_result_t<F&>;
  static_assert(!std::is_reference_v<R>,
                "what this call returns belongs to another thread: copy it");
  if (detail::is_null(f))
    return Errc::invalid_argument;
  std::shared_ptr<detail::Call<F, R>> state;
  try {
    state = std::make_shared<detail::Call<F, R>>(std::move(f));
  } catch (const std::bad_alloc&) {
    return Errc::no_memory;
  }
  if (Result<void> ready = detail::prepare_call(inbox_.get(), *state); !ready)
    return ready.error();
  detail::CallRun<detail::Call<F, R>> run(state);
  if (Result<void> sent = post(std::move(run)); !sent) {
    run.call = nullptr;
    return sent.error();
  }
  if (Result<void> ended = detail::wait_for_call(inbox_.get(), state, deadline); !ended)
    return ended.error();
  if (state->error != nullptr)
    std::rethrow_exception(state->error);
  if constexpr (std::is_void_v<R>)
    return {};
  else
    return std::move(*state->value);
}

} // namespace cede
