// SPDX-License-Identifier: MIT
// Channels: values that go from fiber to fiber.
#pragma once

#include <cede/detail/wait.h>
#include <cede/result.h>
#include <cede/time.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace cede {

namespace detail {

// What doesn't depend on what a channel carries.
//
// Invariants: who waits to send finds the channel open and full, who waits to receive finds it open
// and empty; so only one of both lists has somebody in it, unless all of them are in select calls.
struct ChannelState {
  explicit ChannelState(std::size_t most) noexcept : capacity(most) {}
  void close() noexcept;

  const std::size_t capacity; // of the buffer; a rendezvous has none
  std::size_t size = 0;       // values in the buffer
  std::size_t first = 0;      // the oldest of them
  bool is_closed = false;
  WaitList senders;   // of places that know their value
  WaitList receivers; // of places that have room for one
};

// Where one waits to send.
template <class T>
struct PlaceToSend : WaitLink {
  T& value;
  explicit PlaceToSend(T& sent) noexcept : value(sent) {}
};

// Where one waits to receive. Who was woken has a value in it.
template <class T>
struct PlaceToReceive : WaitLink {
  union {
    T value;
  };
  PlaceToReceive() noexcept {}
  ~PlaceToReceive() {}
};

} // namespace detail

// Carries values, each to one receiver, in the order in which they were sent. Without a capacity it
// is a rendezvous: a send ends when its value has been received. With one, so many values may lie
// in it that nobody has received yet.
//
//   cede::Channel<std::string> lines(16);
//   cede::spawn([&] { for (std::string& line : lines) print(line); });
//   lines.send("hello").value();
//   lines.close();
//
// Any number may send and receive; both are served first come, first served. A value belongs to its
// sender until it is accepted, whatever ends the send. Destroying the channel wakes those who wait
// with `closed` and destroys what lies in it.
//   Thread    of the scheduler whose fibers wait
template <class T>
class Channel {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>);
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                "a channel moves its values between fibers, where an exception would be nobody's: "
                "send a std::unique_ptr of them");

public:
  using value_type = T;

  //   Throws    std::bad_alloc, std::bad_array_new_length
  explicit Channel(std::size_t capacity = 0);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  // Sends `value`, which is moved from only if it is accepted; a copy is made before anything else.
  //   Blocks    the calling fiber, while nobody receives and nothing more fits in
  //   Fails     closed, timed_out, cancelled, not_a_fiber
  //   Throws    Cancelled; what copying a T throws
  CEDE_ALWAYS_INLINE Result<void> send(T&& value, Deadline deadline = kForever);
  Result<void> send(const T& value,
                    Deadline deadline = kForever) requires std::is_copy_constructible_v<T> {
    T copy(value);
    return send(std::move(copy), deadline);
  }

  // The same without waiting.
  //   Fails     again, closed
  //   Throws    what copying a T throws
  Result<void> try_send(T&& value);
  Result<void> try_send(const T& value) requires std::is_copy_constructible_v<T> {
    T copy(value);
    return try_send(std::move(copy));
  }

  // Receives the next value. What was accepted before a close is still received.
  //   Blocks    the calling fiber, while nobody sends
  //   Fails     closed once nothing is left, timed_out, cancelled, not_a_fiber
  //   Throws    Cancelled
  CEDE_ALWAYS_INLINE Result<T> receive(Deadline deadline = kForever);

  // The same without waiting.
  //   Fails     again, closed
  Result<T> try_receive();

  // Nothing is accepted from now on. Who waits to send keeps the value.
  void close() noexcept { state_.close(); }
  bool is_closed() const noexcept { return state_.is_closed; }

  std::size_t capacity() const noexcept { return state_.capacity; }
  // Values that were accepted and not received yet.
  std::size_t size() const noexcept { return state_.size; }
  // Those who wait to send, and to receive.
  std::size_t senders() const noexcept { return state_.senders.size(); }
  std::size_t receivers() const noexcept { return state_.receivers.size(); }

  // A range of what is received, until the channel is closed and nothing is left. It ends also
  // where a receive fails with `cancelled`.
  //   Blocks    the calling fiber, in begin() and at each step
  //   Throws    Cancelled; std::system_error(not_a_fiber)
  class iterator;
  iterator begin() { return iterator(*this); }
  static std::default_sentinel_t end() noexcept { return {}; }

private:
  friend struct detail::SelectAccess;

  using Sender = detail::PlaceToSend<T>;
  using Receiver = detail::PlaceToReceive<T>;

  // Takes the value out.
  static Result<T> value_in(Receiver& place) noexcept {
    Result<T> value(std::in_place, std::move(place.value));
    std::destroy_at(&place.value);
    return value;
  }

  // Accepts `value` into the hands of who waits for it, or into the buffer.
  CEDE_ALWAYS_INLINE bool put(T& value) noexcept;
  bool has_value() const noexcept { return state_.size > 0 || !state_.senders.is_empty(); }
  // Takes the oldest value out of the buffer, or out of the hands of who waits to send it.
  CEDE_ALWAYS_INLINE Result<T> take() noexcept;
  std::size_t wrapped(std::size_t at) const noexcept {
    return at < state_.capacity ? at : at - state_.capacity;
  }

  detail::ChannelState state_;
  T* const buffer_; // memory for `capacity` values
};

template <class T>
class Channel<T>::iterator {
public:
  using iterator_concept = std::input_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = T;

  T& operator*() const noexcept { return *value_; }
  T* operator->() const noexcept { return &*value_; }
  CEDE_ALWAYS_INLINE iterator& operator++() {
    step();
    return *this;
  }
  void operator++(int) { step(); }
  friend bool operator==(const iterator& at, std::default_sentinel_t) noexcept {
    return !at.value_.has_value();
  }

private:
  friend class Channel;
  explicit iterator(Channel& channel) : channel_(&channel) { step(); }
  CEDE_ALWAYS_INLINE void step() {
    value_.reset();
    if (Result<T> received = channel_->receive())
      value_.emplace(*std::move(received));
    else if (received.error() != Errc::closed && received.error() != Errc::cancelled)
      received.value();
  }

  Channel* channel_;
  mutable std::optional<T> value_; // none at the end
};

// ---------------------------------------------------------------------------------------------

template <class T>
Channel<T>::Channel(std::size_t capacity)
    : state_(capacity), buffer_(capacity > 0 ? std::allocator<T>().allocate(capacity) : nullptr) {}

template <class T>
Channel<T>::~Channel() {
  for (; state_.size > 0; --state_.size) {
    std::destroy_at(buffer_ + state_.first);
    state_.first = wrapped(state_.first + 1);
  }
  if (buffer_ != nullptr)
    std::allocator<T>().deallocate(buffer_, state_.capacity);
}

template <class T>
bool Channel<T>::put(T& value) noexcept {
  if (!state_.receivers.is_empty()) {
    auto& place = static_cast<Receiver&>(*state_.receivers.first());
    std::construct_at(&place.value, std::move(value));
    detail::quick_wake_one(state_.receivers);
    return true;
  }
  if (state_.size == state_.capacity)
    return false;
  std::construct_at(buffer_ + wrapped(state_.first + state_.size), std::move(value));
  ++state_.size;
  return true;
}

template <class T>
Result<T> Channel<T>::take() noexcept {
  if (state_.size == 0) {
    auto& place = static_cast<Sender&>(*state_.senders.first());
    Result<T> value(std::in_place, std::move(place.value));
    detail::quick_wake_one(state_.senders);
    return value;
  }
  Result<T> value(std::in_place, std::move(buffer_[state_.first]));
  std::destroy_at(buffer_ + state_.first);
  if (state_.senders.is_empty()) [[likely]] {
    --state_.size;
  } else { // it is full: the next value goes where the oldest was
    std::construct_at(buffer_ + state_.first,
                      std::move(static_cast<Sender&>(*state_.senders.first()).value));
    detail::quick_wake_one(state_.senders);
  }
  state_.first = wrapped(state_.first + 1);
  return value;
}

template <class T>
Result<void> Channel<T>::send(T&& value, Deadline deadline) {
  if (detail::has_to_look()) [[unlikely]]
    if (Result<void> met = detail::meet_request_on_entry(WhenUnwinding::report); !met)
      return met;
  if (state_.is_closed) [[unlikely]]
    return Errc::closed;
  if (put(value))
    return {};
  Sender place(value);
  return detail::quick_wait_in(state_.senders, place, "a channel to send to", deadline,
                               WhenUnwinding::report);
}

template <class T>
Result<void> Channel<T>::try_send(T&& value) {
  if (state_.is_closed)
    return Errc::closed;
  if (put(value))
    return {};
  return Errc::again;
}

template <class T>
Result<T> Channel<T>::receive(Deadline deadline) {
  if (detail::has_to_look()) [[unlikely]]
    if (Result<void> met = detail::meet_request_on_entry(WhenUnwinding::report); !met)
      return met.error();
  if (has_value())
    return take();
  if (state_.is_closed)
    return Errc::closed;
  Receiver place;
  if (Result<void> received = detail::quick_wait_in(
          state_.receivers, place, "a channel to receive from", deadline, WhenUnwinding::report);
      !received) [[unlikely]]
    return received.error();
  return value_in(place);
}

template <class T>
Result<T> Channel<T>::try_receive() {
  if (has_value())
    return take();
  return state_.is_closed ? Errc::closed : Errc::again;
}

} // namespace cede
