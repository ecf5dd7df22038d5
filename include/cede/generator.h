// SPDX-License-Identifier: MIT
// Generator<T>: a sequence that a function with a stack of its own produces one value at a time.
#pragma once

#include <cede/detail/resumable.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

namespace cede {

// A single-pass view of the values that a body yields, from any call depth.
//
//   cede::Generator<int> squares([](auto& yield) {
//     for (int i = 0; i < 3; ++i)
//       yield(i * i);
//   });
//   for (int square : squares) ...
//
// The body starts at begin() and ends with the loop; dropped unfinished, it is unwound. Advancing a
// generator that is running (from its own body, or from what it called) throws
// std::system_error(Errc::busy). What leaves the body leaves the advance that it ends.
//   Thread    one at a time
template <class T>
class Generator : public std::ranges::view_base {
  using Value = std::remove_reference_t<T>;

  struct State : detail::Resumable {
    Value* value = nullptr;
  };

public:
  // What the body calls to yield.
  class Yield {
  public:
    // The consumer sees the argument itself, which lives until the body goes on.
    CEDE_ALWAYS_INLINE void operator()(Value&& value) const
        requires(!std::is_lvalue_reference_v<T>) {
      give(value);
    }
    CEDE_ALWAYS_INLINE void operator()(Value& value) const requires(std::is_lvalue_reference_v<T>) {
      give(value);
    }
    // The consumer sees a copy.
    CEDE_ALWAYS_INLINE void operator()(const Value& value) const
        requires(!std::is_reference_v<T> && std::is_copy_constructible_v<Value>) {
      std::remove_const_t<Value> copy(value);
      give(copy);
    }

  private:
    friend class Generator;
    explicit Yield(State& state) : state_(state) {}

    CEDE_ALWAYS_INLINE void give(Value& value) const {
      state_.value = std::addressof(value);
      state_.suspend();
    }

    State& state_;
  };

  class Iterator {
  public:
    using value_type = std::remove_cv_t<Value>;
    using difference_type = std::ptrdiff_t;

    CEDE_ALWAYS_INLINE std::conditional_t<std::is_reference_v<T>, T, Value&> operator*() const {
      return static_cast<std::conditional_t<std::is_reference_v<T>, T, Value&>>(*state_->value);
    }
    CEDE_ALWAYS_INLINE Iterator& operator++() {
      state_->resume();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) {
      return iterator.state_->is_done();
    }

  private:
    friend class Generator;
    explicit Iterator(State& state) : state_(&state) {}
    State* state_;
  };

  // `body(yield)` runs on a stack that `options` describes.
  //   Throws    std::system_error with what newprocess() fails with
  template <class Body>
  requires std::is_invocable_v<Body&, Yield&>
  explicit Generator(Body body, const StackOptions& options = {})
      : state_(std::make_unique<State>()) {
    state_->start(
        [state = state_.get(), body = std::move(body)]() mutable {
          Yield yield(*state);
          body(yield);
        },
        options);
  }

  // Runs to the first value. Call it once.
  Iterator begin() {
    if (state_->value == nullptr && !state_->is_done())
      state_->resume();
    return Iterator(*state_);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

private:
  std::unique_ptr<State> state_;
};

} // namespace cede
