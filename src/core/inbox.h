// SPDX-License-Identifier: MIT
// What other threads send to a scheduler: the only part of it that they touch. Layer core.
//
// Invariants: `head_` is the last message sent, which leads to the ones before; or the mark that
// the inbox is closed, after which none is accepted. So acceptance and closing have one order, and
// each message accepted is taken exactly once.
#pragma once

#include "../os/poller.h"

#include <cede/detail/message.h>
#include <cede/detail/thread.h>

#include <atomic>
#include <cstddef>
#include <memory>

namespace cede::core {

using detail::Message;

enum class Sent : unsigned char { accepted, full, closed };

class Inbox {
public:
  // Throws    std::bad_alloc
  explicit Inbox(std::size_t post_limit);
  ~Inbox();

  // -- any thread --------------------------------------------------------------------------------

  // First in, first out. A counted message is refused when as many wait as may.
  Sent send(Message& message) noexcept;

  std::size_t posts_waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  std::size_t posts_refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

  // Those who may still send: while there are any, a wait may end from outside.
  void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept;
  // The scheduler looks again whether somebody can.
  void poke() noexcept { poller_.load()->wake(); }

  // Whether the scheduler is gone.
  bool is_closed() const noexcept { return head_.load(std::memory_order_acquire) == closed_mark(); }
  bool is_its_thread() const noexcept { return owner_ == &detail::thread(); }

  // -- the scheduler's thread --------------------------------------------------------------------

  bool has_holders() const noexcept { return holders_.load(std::memory_order_acquire) > 0; }

  // The next in turn, which no longer counts; null if there is none.
  Message* take() noexcept;
  bool is_empty() const noexcept;

  // Waits until `until`, a message, a drop, or the end of operations, which it gives.
  os::Operation* wait(os::PollTime until) noexcept;
  // Those that have ended by now.
  os::Operation* poll() noexcept { return poller_.load()->wait(os::PollTime::min()); }

  // The poller that operations are submitted to; null until there is one.
  os::Poller* poller() const noexcept { return io_poller_.get(); }
  // From now on it waits with this one.
  void set_poller(std::unique_ptr<os::Poller> poller) noexcept;

  // Refuses counted messages from now on.
  void refuse_posts() noexcept { refuses_posts_.store(true, std::memory_order_release); }
  // Refuses everything, and discards what has not been taken.
  void close() noexcept;

private:
  static Message* closed_mark() noexcept;
  void wake_if_asleep() noexcept;

  // any thread
  std::atomic<Message*> head_{nullptr};
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> refuses_posts_{false};
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::size_t> refused_{0};
  std::atomic<std::size_t> holders_{0};
  // set at construction
  const std::size_t post_limit_;
  const detail::ThreadBlock* const owner_ = &detail::thread();
  const std::unique_ptr<os::Poller> idle_poller_;
  // the owner's to change, once; any thread's to call
  std::unique_ptr<os::Poller> io_poller_;
  std::atomic<os::Poller*> poller_; // one of the two
  // the scheduler's thread only
  Message* taken_ = nullptr; // taken from head_, in turn
};

} // namespace cede::core
