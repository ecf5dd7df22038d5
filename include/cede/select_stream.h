// SPDX-License-Identifier: MIT
// select's branches for streams.
#pragma once

#include <cede/select.h>
#include <cede/stream.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace cede {

namespace detail {
template <class F>
class StreamBranch;
enum class StreamSide : std::uint8_t { in, out };
} // namespace detail

// A read, a write of the stream would not wait, as Stream::readable and writable: `f` gets a
// Result<void>, which fails as theirs.
template <class F = detail::NoFunction>
detail::StreamBranch<F> on_readable(Stream& stream, F f = {}) {
  return {stream, detail::StreamSide::in, std::move(f)};
}
template <class F = detail::NoFunction>
detail::StreamBranch<F> on_writable(Stream& stream, F f = {}) {
  return {stream, detail::StreamSide::out, std::move(f)};
}

// ---------------------------------------------------------------------------------------------

namespace detail {

// What a branch waits for, where the stream's handle is known.
class StreamWatch {
public:
  StreamWatch(Stream& stream, StreamSide side) noexcept : stream_(&stream), side_(side) {}
  // Only before it watches.
  StreamWatch(const StreamWatch& other) noexcept
      : stream_(other.stream_), side_(other.side_), how_(other.how_) {}
  StreamWatch& operator=(const StreamWatch&) = delete;
  ~StreamWatch() { leave(); }

  bool try_now() noexcept;
  void watch(Waiter& waiter) noexcept;
  // It is over, whichever branch was the one.
  //   Blocks    the calling fiber as under a Shield, while the system still works at it
  void leave() noexcept;
  const WaitLink* place() const noexcept { return &place_; }
  void set(WakeReason reason) noexcept;
  const Result<void>& how() const noexcept { return how_; }

private:
  static constexpr std::size_t kRoom = 160;

  Stream* stream_;
  StreamSide side_;
  bool is_watching_ = false;
  Result<void> how_;
  WaitLink place_;
  alignas(std::max_align_t) std::byte operation_[kRoom];
};

template <class F>
class [[nodiscard]] StreamBranch {
public:
  StreamBranch(Stream& stream, StreamSide side, F f) : watch_(stream, side), f_(std::move(f)) {}

  bool try_now() noexcept { return watch_.try_now(); }
  void watch(Waiter& waiter) noexcept { watch_.watch(waiter); }
  void leave() noexcept { watch_.leave(); }
  const WaitLink* place() const noexcept { return watch_.place(); }
  void set(WakeReason reason) noexcept { watch_.set(reason); }
  void call() { f_(watch_.how()); }

private:
  StreamWatch watch_;
  F f_;
};

} // namespace detail

} // namespace cede
