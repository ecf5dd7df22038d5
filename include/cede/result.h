// SPDX-License-Identifier: MIT
// Result<T>: a value or the reason why there is none, and the reasons that cede gives.
#pragma once

#include <cede/detail/compiler.h>

#include <exception>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace cede {

enum class Errc {
  no_memory = 1,    // the system has no memory or address space left
  mapping_limit,    // the kernel's limit on memory mappings is reached: raise vm.max_map_count
  invalid_argument, // a size or an option that can never work
  busy,             // it is in use already
  closed,           // it has ended, or its other side has
  timed_out,        // the deadline has passed
  cancelled,        // whoever waited was asked to end, or who was waited for was
  again,            // there is no room now: try later
  not_a_fiber,      // only a fiber can wait for this, and a thread called
  failed,           // an exception ended it
  already_joined,   // the result was moved out by an earlier join
  deadlock,         // nobody could ever end this wait
};

const std::error_category& category() noexcept;

inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), category()};
}

namespace detail {

[[noreturn]] CEDE_NOINLINE inline void throw_error(Errc error) {
  throw std::system_error(make_error_code(error));
}

} // namespace detail

// A value, or a std::error_code that says why there is none; std::expected's member names. Like
// std::expected it may be looked at only for what it holds: `*r` and `r->` without a value, and
// `error()` with one, are undefined; `value()` throws std::system_error instead.
template <class T>
class [[nodiscard]] Result {
public:
  using value_type = T;
  using error_type = std::error_code;

  Result() requires std::is_default_constructible_v<T> : state_(std::in_place_index<0>) {}
  template <class U = T>
  requires(std::is_constructible_v<T, U> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, std::error_code> &&
           !std::is_same_v<std::remove_cvref_t<U>, Errc>) Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  // A value made from `args`, also where T is itself a kind of error.
  template <class... Args>
  explicit Result(std::in_place_t, Args&&... args)
      : state_(std::in_place_index<0>, std::forward<Args>(args)...) {}
  Result(std::error_code error) : state_(std::in_place_index<1>, error) {}
  Result(Errc error) : Result(make_error_code(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  T& value() & { return require(), **this; }
  const T& value() const& { return require(), **this; }
  T&& value() && { return require(), std::move(**this); }
  const std::error_code& error() const noexcept { return *std::get_if<1>(&state_); }

  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return has_value() ? std::move(**this) : static_cast<T>(std::forward<U>(other));
  }

  template <class F>
  auto and_then(F&& f) && -> std::invoke_result_t<F, T&&> {
    if (!has_value())
      return error();
    return std::forward<F>(f)(std::move(**this));
  }
  template <class F>
  auto transform(F&& f) && -> Result<std::remove_cv_t<std::invoke_result_t<F, T&&>>> {
    if (!has_value())
      return error();
    return std::forward<F>(f)(std::move(**this));
  }
  template <class F>
  Result or_else(F&& f) && {
    return has_value() ? std::move(*this) : std::forward<F>(f)(error());
  }

private:
  void require() const {
    if (!has_value())
      throw std::system_error(error());
  }

  std::variant<T, std::error_code> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
  using value_type = void;
  using error_type = std::error_code;

  Result() noexcept {} // makes no error code, which would be a call into the standard library
  Result(std::error_code error) noexcept : error_(error), failed_(true) {}
  Result(Errc error) noexcept : Result(make_error_code(error)) {}

  bool has_value() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return has_value(); }
  void operator*() const noexcept {}
  void value() const {
    if (failed_)
      throw std::system_error(error_);
  }
  const std::error_code& error() const noexcept { return error_; }

  template <class F>
  auto and_then(F&& f) && -> std::invoke_result_t<F> {
    if (failed_)
      return error_;
    return std::forward<F>(f)();
  }
  template <class F>
  Result or_else(F&& f) && {
    return failed_ ? std::forward<F>(f)(error_) : *this;
  }

private:
  union {
    std::error_code error_; // if it failed
  };
  bool failed_ = false;
};

} // namespace cede

template <>
struct std::is_error_code_enum<cede::Errc> : std::true_type {};
