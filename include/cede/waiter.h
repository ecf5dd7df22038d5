// SPDX-License-Identifier: MIT
// The one mechanism by which fibers wait, open to code outside the library.
#pragma once

#include <cede/time.h>

#include <cstddef>
#include <cstdint>

namespace cede {

namespace detail {
struct FiberRecord;
struct Lender;
struct QuickWait;

// A wait for a particular call is told by the address of its name.
inline constexpr char kPark[] = "park";
} // namespace detail

namespace core {
class Deadlines;
struct SchedulerState;
} // namespace core

// Why a wait ended.
enum class WakeReason : std::uint8_t { woken, timed_out, cancelled, closed };

class Waiter;
class WaitList;
struct WaitLink;

// What whoever has a list of waits wants to know of them. Each member may be null; none of them may
// switch or throw.
struct WaitKind {
  // Called after a wait has ended otherwise than by the list: it timed out, was cancelled, or ended
  // for another list. Whoever is first in this one now may be able to go.
  void (*left)(WaitLink& link) noexcept = nullptr;
  // The fiber that alone can end the wait; null if that can't be said.
  detail::FiberRecord* (*awaited)(const WaitLink& link) noexcept = nullptr;
  // To what the waiting fiber lends its priority.
  detail::Lender* (*lender)(const WaitLink& link) noexcept = nullptr;
};

// A place of one waiter in one list. It lies where the waiter does, on the waiting fiber's stack.
struct WaitLink {
  Waiter* waiter = nullptr;       // null while it is in no list
  const WaitKind* kind = nullptr; // what else is to be done for it, or null
  WaitLink* next = nullptr;       // in the list, which is a circle
  WaitLink* prev = nullptr;
  WaitLink* sibling = nullptr; // the waiter's next place
  WaitList* list = nullptr;    // also after it has left it
};

// Those who wait for one thing, first come, first served. Destroying it wakes them with `closed`,
// and they never touch it again.
//   Thread    owner of the scheduler whose fibers wait
class WaitList {
public:
  WaitList() = default;
  WaitList(const WaitList&) = delete;
  WaitList& operator=(const WaitList&) = delete;
  ~WaitList() { wake_all(WakeReason::closed); }

  bool is_empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept;

  // The place that is next in turn; null if nobody waits.
  WaitLink* first() const noexcept { return first_; }

  // Ends the first one's wait. False if nobody waits.
  bool wake_one(WakeReason reason = WakeReason::woken) noexcept;
  // Ends all waits, in turn.
  void wake_all(WakeReason reason = WakeReason::woken) noexcept;

private:
  friend class Waiter;
  friend struct detail::QuickWait;
  void append(WaitLink& link) noexcept;
  void remove(WaitLink& link) noexcept;

  WaitLink* first_ = nullptr;
};

// What a wait does while its fiber is cancelled and unwinding, or in a CancelByResult.
enum class WhenUnwinding : std::uint8_t {
  report,  // end at once with WakeReason::cancelled, after one turn of the others
  wait_on, // go on as under a Shield: for forms that can report nothing
};

// One wait of the current fiber, for whatever happens first:
//
//   cede::Waiter waiter("for the printer");
//   cede::WaitLink place;
//   waiter.watch(printer_is_free, place); // a cede::WaitList
//   cede::WakeReason reason = waiter.wait(cede::after(5s));
//
// Whoever ends it calls the list's wake_one(), or fire() of a waiter that it knows. The first one
// wins; the waiter then stands on no list, and a later event finds nothing to wake.
//   Thread    its fiber makes it and waits; its scheduler's thread fires it
class Waiter {
public:
  // A wait of the fiber that runs; a thread that runs none fails a check. `what` is shown in dumps
  // and has to live as long.
  explicit Waiter(const char* what) noexcept;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() {
    if (stage_ != Stage::fired)
      leave(nullptr);
  }

  // Takes the last place in `list`. `link` belongs to this waiter alone and outlives it.
  void watch(WaitList& list, WaitLink& link) noexcept;

  // Waits until it is fired, and says why; at once if it was already. A deadline that has passed
  // loses to what has fired.
  //   Blocks    the calling fiber
  //   Throws    Cancelled
  WakeReason wait(Deadline deadline = kForever, WhenUnwinding rule = WhenUnwinding::report);

  // Ends the wait, or the one to come. False if it had been fired. Whoever does it for a list says
  // by which place in it.
  bool fire(WakeReason reason = WakeReason::woken, WaitLink* place = nullptr) noexcept;

  bool has_fired() const noexcept { return stage_ == Stage::fired; }
  bool has_deadline() const noexcept { return deadline_at_ != SIZE_MAX; }
  // Its only place; null if it has none or several.
  const WaitLink* place() const noexcept {
    return links_ != nullptr && links_->sibling == nullptr ? links_ : nullptr;
  }
  // By which place it was fired; null if otherwise.
  const WaitLink* fired_place() const noexcept { return has_fired() ? links_ : nullptr; }
  const char* what() const noexcept { return what_; }

private:
  friend class core::Deadlines;
  friend struct core::SchedulerState;
  friend struct detail::QuickWait;

  enum class Stage : std::uint8_t { made, waiting, fired };

  // One that waits already, in no list and without a deadline.
  Waiter(detail::FiberRecord& fiber, const char* what) noexcept
      : fiber_(&fiber), what_(what), stage_(Stage::waiting), is_interruptible_(true) {}

  // As watch(), the first and only one.
  void watch_first(WaitList& list, WaitLink& link) noexcept {
    link.waiter = this;
    link.sibling = nullptr;
    links_ = &link;
    list.append(link);
  }
  void leave(const WaitLink* fired) noexcept;
  void block(Deadline deadline);

  detail::FiberRecord* fiber_;
  const char* what_;
  WaitLink* links_ = nullptr;          // its places; once it was fired, the one by which it was
  std::size_t deadline_at_ = SIZE_MAX; // its place in the heap of deadlines
  Stage stage_ = Stage::made;
  WakeReason reason_ = WakeReason::woken;
  bool is_interruptible_ = false; // whether a cancellation ends it now
};

// ---------------------------------------------------------------------------------------------

inline void WaitList::append(WaitLink& link) noexcept {
  link.list = this;
  if (first_ == nullptr) {
    first_ = link.next = link.prev = &link;
    return;
  }
  link.next = first_;
  link.prev = first_->prev;
  link.prev->next = link.next->prev = &link;
}

inline void WaitList::remove(WaitLink& link) noexcept {
  if (link.next == &link) {
    first_ = nullptr;
  } else {
    link.prev->next = link.next;
    link.next->prev = link.prev;
    if (first_ == &link)
      first_ = link.next;
  }
  link.waiter = nullptr;
}

} // namespace cede
