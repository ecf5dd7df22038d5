// SPDX-License-Identifier: MIT
// Continuation<R(Args...)>: a function that keeps its place between calls.
#pragma once

#include <cede/detail/resumable.h>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cede {

// What happens when a continuation's body returns.
enum class AtEnd {
  stay,   // it is done: a further call throws std::system_error(Errc::closed)
  restart // what it returned was one more result, and the next call starts it over
};

template <class Signature>
class Continuation;

// Each call resumes the body where it yielded, with new arguments, and returns what it yields next;
// at the end, what it returns.
//
//   cede::Continuation<int(int)> sum([](auto& yield, int first) {
//     int total = first;
//     while (total < 100)
//       total += yield(total);
//     return total;
//   });
//   sum(40);   // 40
//   sum(70);   // 110, and sum.done()
//
// The body's parameters are the first call's arguments; yield returns those of the next: nothing,
// the one, or a std::tuple of several. A call of a continuation that is running throws
// std::system_error(Errc::busy). What leaves the body leaves the call that it ends.
//   Thread    one at a time
template <class R, class... Args>
class Continuation<R(Args...)> {
  static constexpr bool kIsVoid = std::is_void_v<R>;
  using Pointer = std::add_pointer_t<R>; // of a reference: to what it refers to
  using Arguments = std::tuple<Args...>;

  struct Nothing {};
  // Where a returned value outlives the body's stack.
  using Last = std::conditional_t<
      kIsVoid, Nothing,
      std::conditional_t<std::is_reference_v<R>, Pointer, std::optional<std::remove_cv_t<R>>>>;

  struct State : detail::Resumable {
    Arguments* arguments = nullptr; // the running call's, on its stack
    Pointer result = nullptr;
    Last last{};
  };

public:
  // What the body calls to yield.
  class Yield {
  public:
    template <class T = R>
    requires(!std::is_void_v<T>) CEDE_ALWAYS_INLINE decltype(auto)
    operator()(std::type_identity_t<T>&& result) const {
      state_.result = std::addressof(result);
      return take_arguments();
    }
    template <class T = R>
    requires(!std::is_reference_v<T> && std::is_copy_constructible_v<T>) CEDE_ALWAYS_INLINE
        decltype(auto)
        operator()(const std::type_identity_t<T>& result) const {
      std::remove_cv_t<T> copy(result);
      state_.result = std::addressof(copy);
      return take_arguments();
    }
    CEDE_ALWAYS_INLINE decltype(auto) operator()() const requires kIsVoid {
      return take_arguments();
    }

  private:
    friend class Continuation;
    explicit Yield(State& state) : state_(state) {}

    CEDE_ALWAYS_INLINE auto take_arguments() const {
      state_.suspend();
      if constexpr (sizeof...(Args) == 1)
        return std::get<0>(std::move(*state_.arguments));
      else if constexpr (sizeof...(Args) > 1)
        return std::move(*state_.arguments);
    }

    State& state_;
  };

  // `body(yield, args...)` runs on a stack that `options` describes, from the first call on.
  //   Throws    std::system_error with what newprocess() fails with
  template <class Body>
  requires std::is_invocable_r_v<R, Body&, Yield&, Args...>
  explicit Continuation(Body body, AtEnd at_end = AtEnd::stay, const StackOptions& options = {})
      : state_(std::make_unique<State>()) {
    state_->start(
        [state = state_.get(), body = std::move(body), at_end]() mutable {
          Yield yield(*state);
          for (;;) {
            run_once(*state, body, yield);
            if (at_end == AtEnd::stay)
              return;
            state->suspend();
          }
        },
        options);
  }

  CEDE_ALWAYS_INLINE R operator()(Args... args) {
    Arguments arguments(std::forward<Args>(args)...);
    state_->arguments = &arguments;
    state_->resume();
    if constexpr (std::is_reference_v<R>)
      return static_cast<R>(*state_->result);
    else if constexpr (!kIsVoid)
      return std::move(*state_->result);
  }

  // Whether the body has ended.
  bool done() const noexcept { return state_->is_done(); }

private:
  template <class Body>
  static void run_once(State& state, Body& body, Yield& yield) {
    auto call = [&](Args&... args) -> R { return body(yield, std::forward<Args>(args)...); };
    // The parameters are the body's own: the call's arguments are gone when it has returned.
    Arguments arguments(std::move(*state.arguments));
    if constexpr (kIsVoid) {
      std::apply(call, arguments);
    } else if constexpr (std::is_reference_v<R>) {
      R result = std::apply(call, arguments);
      state.result = std::addressof(result);
    } else {
      state.last.emplace(std::apply(call, arguments));
      state.result = std::addressof(*state.last);
    }
  }

  std::unique_ptr<State> state_;
};

} // namespace cede
