// SPDX-License-Identifier: MIT
// Calls that block a thread, made so that they block none that runs fibers.
#pragma once

#include <cede/result.h>
#include <cede/time.h>
#include <cede/waiter.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace cede {

namespace detail {
template <class F>
class BlockingCall;
template <class F>
using BlockingResult = typename BlockingCall<F>::Value;
// In a Result a reference is a std::reference_wrapper.
template <class F>
using BlockingOutcome =
    std::conditional_t<std::is_reference_v<BlockingResult<F>>,
                       std::reference_wrapper<std::remove_reference_t<BlockingResult<F>>>,
                       BlockingResult<F>>;
} // namespace detail

// Calls `f` on a helper's thread, and returns what it returned or throws what it threw, while the
// other fibers of this thread go on: for what computes for long, or blocks and can't be told not
// to.
//
//   int answer = cede::blocking([&] { return ask_the_database(question); });
//
// A scheduler has SchedulerOptions::helpers of them at most, which it starts as they are needed;
// further calls wait in turn. On a plain thread `f` is called there and then.
//
// It never returns while `f` runs, which may therefore use what lies on the fiber's stack. If the
// fiber is cancelled, a call that has not begun never does. One that runs is waited for: if `f`
// takes a std::stop_token, that asks it to stop; what it returns counts, and the next wait throws.
//   Blocks    the calling fiber
//   Throws    Cancelled, before `f` has begun; what `f` throws; std::system_error: again if
//             SchedulerOptions::helper_queue calls wait already, or no thread can be had
template <class F>
detail::BlockingResult<F> blocking(F f);

// The same, and the deadline is met as a cancellation is.
//   Fails     timed_out, cancelled: `f` has not begun and never will. again
template <class F>
Result<detail::BlockingOutcome<F>> blocking(Deadline deadline, F f);

// ---------------------------------------------------------------------------------------------

namespace detail {

// A call for a helper. The fiber that waits has it on its stack.
struct HelperCall {
  void (*work)(HelperCall& call) noexcept;
  void (*stop)(HelperCall& call) noexcept;
};

// Has a helper do it; it has been done when this returns without an error.
//   Fails     again, timed_out, cancelled: it has not begun
//   Throws    Cancelled, before it has begun
Result<void> call_helper(HelperCall& call, Deadline deadline, WhenUnwinding rule);

template <class F>
class BlockingCall : public HelperCall {
  static constexpr bool kTakesToken = std::is_invocable_v<F&, std::stop_token>;
  struct NoSource {};

public:
  using Value = typename std::conditional_t<kTakesToken, std::invoke_result<F&, std::stop_token>,
                                            std::invoke_result<F&>>::type;

  explicit BlockingCall(F& f) : HelperCall{run, ask_to_stop}, f_(f) {}

  Value take() {
    if (error_)
      std::rethrow_exception(std::move(error_));
    if constexpr (std::is_reference_v<Value>)
      return static_cast<Value>(**value_);
    else if constexpr (!std::is_void_v<Value>)
      return std::move(*value_);
  }

private:
  struct Nothing {};
  using Kept = std::conditional_t<
      std::is_void_v<Value>, Nothing,
      std::conditional_t<std::is_reference_v<Value>,
                         std::add_pointer_t<std::remove_reference_t<Value>>, Value>>;

  decltype(auto) call() {
    if constexpr (kTakesToken)
      return std::invoke(f_, source_.get_token());
    else
      return std::invoke(f_);
  }

  static void run(HelperCall& base) noexcept {
    auto& me = static_cast<BlockingCall&>(base);
    try {
      if constexpr (std::is_void_v<Value>)
        me.call();
      else if constexpr (std::is_reference_v<Value>)
        me.value_.emplace(std::addressof(me.call()));
      else
        me.value_.emplace(me.call());
    } catch (...) {
      me.error_ = std::current_exception();
    }
  }

  static void ask_to_stop([[maybe_unused]] HelperCall& base) noexcept {
    if constexpr (kTakesToken)
      static_cast<BlockingCall&>(base).source_.request_stop();
  }

  F& f_;
  [[no_unique_address]] std::conditional_t<kTakesToken, std::stop_source, NoSource> source_;
  std::optional<Kept> value_;
  std::exception_ptr error_;
};

} // namespace detail

template <class F>
detail::BlockingResult<F> blocking(F f) {
  detail::BlockingCall<F> call(f);
  detail::call_helper(call, kForever, WhenUnwinding::wait_on).value();
  return call.take();
}

template <class F>
Result<detail::BlockingOutcome<F>> blocking(Deadline deadline, F f) {
  detail::BlockingCall<F> call(f);
  if (Result<void> done = detail::call_helper(call, deadline, WhenUnwinding::report); !done)
    return done.error();
  if constexpr (std::is_void_v<detail::BlockingResult<F>>) {
    call.take();
    return {};
  } else {
    return Result<detail::BlockingOutcome<F>>(std::in_place, call.take());
  }
}

} // namespace cede
