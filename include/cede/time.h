// SPDX-License-Identifier: MIT
// The one clock of cede, and the points in time until which its functions wait.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace cede {

using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// The time by which this thread's scheduler goes: std::chrono::steady_clock's, or what a test clock
// shows. It doesn't count time during which the system was suspended where steady_clock doesn't.
//   Thread    any
TimePoint now() noexcept;

namespace detail {

inline constexpr std::int64_t kLastNanosecond = std::numeric_limits<std::int64_t>::max();

// A duration in nanoseconds, rounded up, at most and at least what 64 bits hold. No number is no
// time at all.
template <class Rep, class Period>
constexpr std::int64_t nanoseconds_of(std::chrono::duration<Rep, Period> duration) noexcept {
  if constexpr (std::is_integral_v<Rep> && std::nano::den % Period::den == 0) {
    constexpr std::int64_t kEach = Period::num * (std::nano::den / Period::den);
    if (std::cmp_greater(duration.count(), kLastNanosecond / kEach))
      return kLastNanosecond;
    if (std::cmp_less(duration.count(), -kLastNanosecond / kEach))
      return -kLastNanosecond;
    return static_cast<std::int64_t>(duration.count()) * kEach;
  } else {
    constexpr auto kLimit = static_cast<long double>(kLastNanosecond);
    const long double exact = std::chrono::duration<long double, std::nano>(duration).count();
    if (exact != exact)
      return 0;
    if (exact >= kLimit)
      return kLastNanosecond;
    if (exact <= -kLimit)
      return -kLastNanosecond;
    const auto whole = static_cast<std::int64_t>(exact);
    return static_cast<long double>(whole) < exact ? whole + 1 : whole;
  }
}

constexpr std::int64_t add_saturated(std::int64_t point, std::int64_t duration) noexcept {
  if (duration > 0 && point > kLastNanosecond - duration)
    return kLastNanosecond;
  if (duration < 0 && point < -kLastNanosecond - duration)
    return -kLastNanosecond;
  return point + duration;
}

} // namespace detail

// A point in time at which a wait ends, or never. Built from a time point of std::chrono's
// steady_clock, by after(), or as kForever.
class Deadline {
public:
  template <class Duration>
  constexpr Deadline(std::chrono::time_point<std::chrono::steady_clock, Duration> point) noexcept
      : nanoseconds_(detail::nanoseconds_of(point.time_since_epoch())) {}

  static constexpr Deadline from_nanoseconds(std::int64_t nanoseconds) noexcept {
    return Deadline(TimePoint(std::chrono::nanoseconds(nanoseconds)));
  }

  // Since the clock's epoch.
  constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }
  constexpr TimePoint time() const noexcept {
    return TimePoint(std::chrono::nanoseconds(nanoseconds_));
  }
  constexpr bool is_forever() const noexcept { return nanoseconds_ == detail::kLastNanosecond; }

  // NOLINTNEXTLINE(modernize-use-nullptr): it takes the comparison with 0 for one of a pointer
  friend constexpr auto operator<=>(const Deadline&, const Deadline&) noexcept = default;

private:
  std::int64_t nanoseconds_;
};

// Never.
inline constexpr Deadline kForever = Deadline::from_nanoseconds(detail::kLastNanosecond);

// `duration` from now, never early: rounded up to nanoseconds. What is too long for the clock is
// kForever; a negative duration and one that is not a number have passed already.
template <class Rep, class Period>
Deadline after(std::chrono::duration<Rep, Period> duration) noexcept {
  return Deadline::from_nanoseconds(
      detail::add_saturated(now().time_since_epoch().count(), detail::nanoseconds_of(duration)));
}

} // namespace cede
