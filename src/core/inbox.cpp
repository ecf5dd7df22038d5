// SPDX-License-Identifier: MIT
#include "inbox.h"

#include <new>
#include <utility>

namespace cede::core {

Inbox::Inbox(std::size_t post_limit)
    : post_limit_(post_limit), idle_poller_(os::make_waiting_poller()),
      poller_(idle_poller_.get()) {
  if (idle_poller_ == nullptr)
    throw std::bad_alloc();
}

Inbox::~Inbox() {
  close();
}

Message* Inbox::closed_mark() noexcept {
  static constinit Message mark;
  return &mark;
}

Sent Inbox::send(Message& message) noexcept {
  if (message.is_counted) {
    if (waiting_.fetch_add(1, std::memory_order_relaxed) >= post_limit_) {
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      refused_.fetch_add(1, std::memory_order_relaxed);
      return Sent::full;
    }
  }
  Message* head = head_.load(std::memory_order_relaxed);
  do {
    // Read after the head, whose store by close() comes after refuse_posts().
    if (head == closed_mark() ||
        (message.is_counted && refuses_posts_.load(std::memory_order_acquire))) {
      if (message.is_counted)
        waiting_.fetch_sub(1, std::memory_order_relaxed);
      return Sent::closed;
    }
    message.next = head;
    // Sequentially consistent, as is the read of is_asleep_: either this sees that the scheduler
    // sleeps, or that sees the message.
  } while (!head_.compare_exchange_weak(head, &message));
  wake_if_asleep();
  return Sent::accepted;
}

void Inbox::drop() noexcept {
  if (holders_.fetch_sub(1) == 1)
    poke();
}

void Inbox::wake_if_asleep() noexcept {
  if (is_asleep_.load() && is_asleep_.exchange(false))
    poke();
}

Message* Inbox::take() noexcept {
  if (taken_ == nullptr && !is_empty()) {
    Message* last = head_.exchange(nullptr, std::memory_order_acquire);
    while (last != nullptr) {
      Message* before = std::exchange(last->next, taken_);
      taken_ = last;
      last = before;
    }
  }
  Message* message = taken_;
  if (message != nullptr) {
    taken_ = message->next;
    if (message->is_counted)
      waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  return message;
}

bool Inbox::is_empty() const noexcept {
  const Message* head = head_.load(std::memory_order_acquire);
  return taken_ == nullptr && (head == nullptr || head == closed_mark());
}

os::Operation* Inbox::wait(os::PollTime until) noexcept {
  os::Operation* finished = nullptr;
  const bool had_holders = has_holders();
  // An exchange, and no store: emulators of AArch64 let a store of release be overtaken by a later
  // load.
  is_asleep_.exchange(true);
  if (head_.load() == nullptr && (holders_.load() > 0) == had_holders)
    finished = poller_.load(std::memory_order_relaxed)->wait(until);
  is_asleep_.store(false);
  return finished;
}

// A call to the one before may come later and is lost. Whoever makes it has changed before what the
// scheduler looks at after this and before it sleeps: sequentially consistent, as those changes
// are.
void Inbox::set_poller(std::unique_ptr<os::Poller> poller) noexcept {
  io_poller_ = std::move(poller);
  poller_.store(io_poller_.get());
}

void Inbox::close() noexcept {
  while (Message* message = take())
    message->discard(*message);
  Message* last = head_.exchange(closed_mark());
  while (last != nullptr && last != closed_mark()) {
    Message* before = last->next;
    last->discard(*last);
    last = before;
  }
}

} // namespace cede::core
