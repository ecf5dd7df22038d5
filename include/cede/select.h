// SPDX-License-Identifier: MIT
// select: the first of several things that can happen.
#pragma once

#include <cede/channel.h>
#include <cede/event.h>
#include <cede/fiber.h>
#include <cede/semaphore.h>
#include <cede/signal.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cede {

// Waits until one of its branches can go, lets that one go and no other, calls its function and
// returns its index:
//
//   cede::select(cede::on_receive(lines, [&](cede::Result<std::string> line) { ... }),
//                cede::on_send(answers, answer),
//                cede::on_deadline(cede::after(1s), [&] { ... }));
//
// Where several can go, each comes first in its turn. Nothing is taken from the branches that were
// not chosen, and no wait of theirs is left when the function is called; what it returns is
// dropped. A branch that can never go, since its channel is closed, say, is one that can go at
// once: its function is told the error. With `otherwise` it never waits.
//   Blocks    the calling fiber, until a branch can go
//   Gives     the branch's index; the number of branches if it is cancelled and must not throw
//   Throws    Cancelled; what the function throws; std::system_error(not_a_fiber) where it would
//             have to wait
//   Thread    of the scheduler whose fibers wait
template <class... Branches>
std::size_t select(Branches... branches);

namespace detail {
struct NoFunction {
  template <class... Args>
  void operator()(Args&&...) const noexcept {}
};
template <class T, class F>
class ReceiveBranch;
template <class T, class F>
class SendBranch;
template <class F>
class JoinBranch;
template <class Source, class F>
class SourceBranch;
template <class F>
class SemaphoreBranch;
template <class F>
class DeadlineBranch;
template <class F>
class OtherwiseBranch;
} // namespace detail

// Receives: `f` gets the Result<T>.
template <class T, class F>
detail::ReceiveBranch<T, F> on_receive(Channel<T>& channel, F f) {
  return {channel, std::move(f)};
}

// Sends `value`, which is moved from only if this is the branch and the value was accepted; `f`
// gets a Result<void>.
template <class T, class F = detail::NoFunction>
detail::SendBranch<T, F> on_send(Channel<T>& channel, std::type_identity_t<T>& value, F f = {}) {
  return {channel, value, std::move(f)};
}

// `fiber` has ended: `f` gets how, as AnyFiber::join(Deadline) says it.
template <class F = detail::NoFunction>
detail::JoinBranch<F> on_join(const AnyFiber& fiber, F f = {}) {
  return {fiber, std::move(f)};
}

// As the waits of an event, a signal and a semaphore: `f` gets a Result<void>.
template <class F = detail::NoFunction>
detail::SourceBranch<Event, F> on_event(Event& event, F f = {}) {
  return {event, std::move(f)};
}
template <class F = detail::NoFunction>
detail::SourceBranch<Signal, F> on_signal(Signal& signal, F f = {}) {
  return {signal, std::move(f)};
}
template <class F = detail::NoFunction>
detail::SemaphoreBranch<F> on_semaphore(Semaphore& semaphore, long units, F f = {}) {
  return {semaphore, units, std::move(f)};
}

// Nothing else could go until `deadline`; `f` gets nothing.
template <class F = detail::NoFunction>
detail::DeadlineBranch<F> on_deadline(Deadline deadline, F f = {}) {
  return {deadline, std::move(f)};
}

// Nothing else can go now; `f` gets nothing. One of them at most, anywhere among the branches.
template <class F = detail::NoFunction>
detail::OtherwiseBranch<F> otherwise(F f = {}) {
  return {std::move(f)};
}

// ---------------------------------------------------------------------------------------------

namespace detail {

// How a branch that waits for a fiber's end looks at it.
//   Fails     timed_out while it has not ended
Result<void> look_at_end(const AnyFiber& fiber) noexcept;
WaitList& list_of_joiners(const AnyFiber& fiber) noexcept;

// Throws not_a_fiber on a plain thread.
void require_fiber();

struct SelectAccess {
  using SemaphorePlace = Semaphore::Place;

  template <class T>
  static ChannelState& state(Channel<T>& channel) noexcept {
    return channel.state_;
  }
  template <class T>
  static bool put(Channel<T>& channel, T& value) noexcept {
    return channel.put(value);
  }
  template <class T>
  static bool has_value(const Channel<T>& channel) noexcept {
    return channel.has_value();
  }
  template <class T>
  static Result<T> take(Channel<T>& channel) noexcept {
    return channel.take();
  }
  template <class T>
  static Result<T> value_in(PlaceToReceive<T>& place) noexcept {
    return Channel<T>::value_in(place);
  }
  template <class Source>
  static WaitList& waiters(Source& source) noexcept {
    return source.waiters_;
  }
};

// Each branch has these:
//   try_now()        whether it can go; then it has gone
//   watch(waiter)    takes its place in the list of those who wait
//   place()          that place
//   set(reason)      it is the one, and its wait has ended so
//   call()           calls its function
// and, if it is in more than a list:
//   leave()          the wait is over

template <class T, class F>
class [[nodiscard]] ReceiveBranch {
public:
  ReceiveBranch(Channel<T>& channel, F f) : channel_(channel), f_(std::move(f)) {}

  bool try_now() noexcept {
    if (SelectAccess::has_value(channel_))
      outcome_ = Outcome::now;
    else if (SelectAccess::state(channel_).is_closed)
      outcome_ = Outcome::closed;
    else
      return false;
    return true;
  }
  void watch(Waiter& waiter) noexcept {
    waiter.watch(SelectAccess::state(channel_).receivers, place_);
  }
  const WaitLink* place() const noexcept { return &place_; }
  void set(WakeReason reason) noexcept {
    outcome_ = reason == WakeReason::woken ? Outcome::handed_over : Outcome::closed;
  }
  void call() {
    switch (outcome_) {
    case Outcome::now:
      std::ignore = (f_(SelectAccess::take(channel_)), 0);
      break;
    case Outcome::handed_over:
      std::ignore = (f_(SelectAccess::value_in<T>(place_)), 0);
      break;
    default:
      std::ignore = (f_(Result<T>(Errc::closed)), 0);
    }
  }

private:
  enum class Outcome : std::uint8_t { closed, now, handed_over };

  Channel<T>& channel_;
  F f_;
  PlaceToReceive<T> place_;
  Outcome outcome_ = Outcome::closed;
};

template <class T, class F>
class [[nodiscard]] SendBranch {
public:
  SendBranch(Channel<T>& channel, T& value, F f)
      : channel_(channel), f_(std::move(f)), place_(value) {}

  bool try_now() noexcept {
    is_closed_ = SelectAccess::state(channel_).is_closed;
    return is_closed_ || SelectAccess::put(channel_, place_.value);
  }
  void watch(Waiter& waiter) noexcept {
    waiter.watch(SelectAccess::state(channel_).senders, place_);
  }
  const WaitLink* place() const noexcept { return &place_; }
  void set(WakeReason reason) noexcept { is_closed_ = reason != WakeReason::woken; }
  void call() { f_(is_closed_ ? Result<void>(Errc::closed) : Result<void>()); }

private:
  Channel<T>& channel_;
  F f_;
  PlaceToSend<T> place_;
  bool is_closed_ = false;
};

template <class F>
class [[nodiscard]] JoinBranch {
public:
  JoinBranch(AnyFiber fiber, F f) : fiber_(std::move(fiber)), f_(std::move(f)) {}

  bool try_now() noexcept {
    how_ = look_at_end(fiber_);
    return how_ || how_.error() != Errc::timed_out;
  }
  void watch(Waiter& waiter) noexcept { waiter.watch(list_of_joiners(fiber_), place_); }
  const WaitLink* place() const noexcept { return &place_; }
  void set(WakeReason) noexcept { how_ = look_at_end(fiber_); }
  void call() { f_(how_); }

private:
  AnyFiber fiber_;
  F f_;
  WaitLink place_;
  Result<void> how_;
};

// An event or a signal.
template <class Source, class F>
class [[nodiscard]] SourceBranch {
public:
  SourceBranch(Source& source, F f) : source_(source), f_(std::move(f)) {}

  bool try_now() noexcept { return source_.try_wait(); }
  void watch(Waiter& waiter) noexcept { waiter.watch(SelectAccess::waiters(source_), place_); }
  const WaitLink* place() const noexcept { return &place_; }
  void set(WakeReason reason) noexcept { reason_ = reason; }
  void call() { f_(result_of_wait(reason_)); }

private:
  Source& source_;
  F f_;
  WaitLink place_;
  WakeReason reason_ = WakeReason::woken;
};

template <class F>
class [[nodiscard]] SemaphoreBranch {
public:
  SemaphoreBranch(Semaphore& semaphore, long units, F f)
      : semaphore_(semaphore), f_(std::move(f)), place_(semaphore, units) {}

  bool try_now() noexcept {
    if (place_.units < 1)
      how_ = Errc::invalid_argument;
    return place_.units < 1 || semaphore_.try_acquire(place_.units);
  }
  void watch(Waiter& waiter) noexcept { waiter.watch(SelectAccess::waiters(semaphore_), place_); }
  const WaitLink* place() const noexcept { return &place_; }
  void set(WakeReason reason) noexcept { how_ = result_of_wait(reason); }
  void call() { f_(how_); }

private:
  Semaphore& semaphore_;
  F f_;
  SelectAccess::SemaphorePlace place_;
  Result<void> how_;
};

template <class F>
class [[nodiscard]] DeadlineBranch {
public:
  DeadlineBranch(Deadline deadline, F f) : deadline_(deadline), f_(std::move(f)) {}

  static bool try_now() noexcept { return false; }
  static void watch(Waiter&) noexcept {}
  static const WaitLink* place() noexcept { return nullptr; }
  static void set(WakeReason) noexcept {}
  void call() { f_(); }
  Deadline deadline() const noexcept { return deadline_; }

private:
  Deadline deadline_;
  F f_;
};

template <class F>
class [[nodiscard]] OtherwiseBranch {
public:
  OtherwiseBranch(F f) : f_(std::move(f)) {}

  static bool try_now() noexcept { return false; }
  static void watch(Waiter&) noexcept {}
  static const WaitLink* place() noexcept { return nullptr; }
  static void set(WakeReason) noexcept {}
  void call() { f_(); }

private:
  F f_;
};

template <class Branch>
inline constexpr bool kIsOtherwise = false;
template <class F>
inline constexpr bool kIsOtherwise<OtherwiseBranch<F>> = true;

// Where a select of `count` branches begins to look. The turns go round by the golden ratio of all,
// so that whatever pattern several selects are called in, each begins everywhere equally often.
inline std::size_t first_in_turn(std::size_t count) noexcept {
  std::uint32_t& turn = thread().select_turn;
  turn += 0x9E3779B9u;
  return static_cast<std::size_t>(std::uint64_t{turn} * count >> 32);
}

// A select on its way. Indices are those of the branches.
template <class... Branches>
class Selection {
public:
  static constexpr std::size_t kCount = sizeof...(Branches);
  static constexpr bool kWaits = !(kIsOtherwise<Branches> || ...);
  static_assert((kIsOtherwise<Branches> + ... + 0) <= 1, "a select with two `otherwise`");

  explicit Selection(Branches&... branches) noexcept : branches_(branches...) {}

  // The first that can go and has gone now; `kCount` if none can.
  std::size_t try_now() noexcept {
    const std::size_t begin = first_in_turn(kCount);
    std::size_t chosen = kCount;
    const auto try_one = [&](std::size_t at, auto& branch) {
      if (!branch.try_now())
        return false;
      chosen = at;
      return true;
    };
    const auto try_all = [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
      std::ignore = ((kAt >= begin && try_one(kAt, std::get<kAt>(branches_))) || ...) ||
                    ((kAt < begin && try_one(kAt, std::get<kAt>(branches_))) || ...);
    };
    try_all(kIndices);
    return chosen;
  }

  // The first that can go from now on; `kCount` if the wait was cancelled.
  std::size_t wait() {
    require_fiber();
    Waiter waiter("select");
    const Leaving leaving{*this};
    std::apply([&](auto&... branch) { (branch.watch(waiter), ...); }, branches_);
    std::size_t first_due = kCount;
    const Deadline deadline = earliest(first_due);
    const WakeReason reason = waiter.wait(deadline);
    if (reason == WakeReason::cancelled)
      return kCount;
    if (reason == WakeReason::timed_out)
      return first_due;
    return with_place(waiter.fired_place(), reason);
  }

  void call(std::size_t chosen) {
    for_each([&](std::size_t at, auto& branch) {
      if (at == chosen)
        branch.call();
    });
  }

  static constexpr std::size_t otherwise() noexcept {
    constexpr bool kAre[] = {kIsOtherwise<Branches>...};
    return static_cast<std::size_t>(std::find(std::begin(kAre), std::end(kAre), true) -
                                    std::begin(kAre));
  }

private:
  static constexpr auto kIndices = std::index_sequence_for<Branches...>();

  // Of those that aren't only in lists, which the waiter leaves.
  struct Leaving {
    Selection& selection;
    ~Leaving() {
      selection.for_each([](std::size_t, auto& branch) {
        if constexpr (requires { branch.leave(); })
          branch.leave();
      });
    }
  };

  template <class F>
  void for_each(F f) {
    [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
      (f(kAt, std::get<kAt>(branches_)), ...);
    }
    (kIndices);
  }

  Deadline earliest(std::size_t& whose) {
    Deadline deadline = kForever;
    for_each([&](std::size_t at, auto& branch) {
      if constexpr (requires { branch.deadline(); })
        if (branch.deadline() < deadline) {
          deadline = branch.deadline();
          whose = at;
        }
    });
    return deadline;
  }

  std::size_t with_place(const WaitLink* place, WakeReason reason) {
    std::size_t chosen = kCount;
    for_each([&](std::size_t at, auto& branch) {
      if (branch.place() == place) {
        branch.set(reason);
        chosen = at;
      }
    });
    return chosen;
  }

  std::tuple<Branches&...> branches_;
};

} // namespace detail

template <class... Branches>
std::size_t select(Branches... branches) {
  using Selection = detail::Selection<Branches...>;
  static_assert(sizeof...(Branches) > 0, "a select without branches would wait for ever");
  Selection selection(branches...);
  if constexpr (Selection::kWaits)
    if (detail::has_to_look()) [[unlikely]]
      if (!detail::meet_request_on_entry(WhenUnwinding::report))
        return Selection::kCount;
  std::size_t chosen = selection.try_now();
  if (chosen == Selection::kCount) {
    if constexpr (Selection::kWaits)
      chosen = selection.wait();
    else
      chosen = Selection::otherwise();
  }
  if (chosen < Selection::kCount)
    selection.call(chosen);
  return chosen;
}

} // namespace cede
