// SPDX-License-Identifier: MIT
// What other threads send to a scheduler: the only part of it that they touch. Layer core.
//
// Invariants: `head_` is the last message sent, which leads to the ones before; or the mark that
// the inbox is closed, after which none is accepted. So acceptance and closing have one order, and
// each message accepted is taken exactly once.
#pragma once

#include "../os/poller.h"

#include <cede/detail/message.h>

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
  void poke() noexcept { poller_->wake(); }

  // -- the scheduler's thread --------------------------------------------------------------------

  bool has_holders() const noexcept { return holders_.load(std::memory_order_acquire) > 0; }

  // The next in turn, which no longer counts; null if there is none.
  Message* take() noexcept;
  bool is_empty() const noexcept;

  // Waits until `until`, a message or a drop.
  void wait(os::PollTime until) noexcept;

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
  const std::unique_ptr<os::Poller> poller_;
  // the scheduler's thread only
  Message* taken_ = nullptr; // taken from head_, in turn
};

} // namespace cede::core
