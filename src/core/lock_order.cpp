// SPDX-License-Identifier: MIT
#include "lock_order.h"

#include "../os/fault.h"
#include "fiber.h"
#include "scheduler_list.h"
#include "scheduler_state.h"
#include "slab.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

namespace cede::core {

using detail::FiberRecord;
using detail::Lender;

namespace {

std::string text_of(const FiberRecord& fiber) {
  const std::string name(name_of(fiber));
  return "fiber " + std::to_string(fiber.id) + (name.empty() ? "" : " (" + name + ")");
}

std::string text_of(const Lender* lock) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", static_cast<const void*>(lock));
  return text;
}

} // namespace

// Those that it still holds: unlocking one that has one holder is told by nobody.
std::vector<LockOrder::Held>& LockOrder::held_by(const FiberRecord& me) {
  std::vector<Held>& held = held_[&me];
  std::erase_if(
      held, [&](const Held& it) { return it.kind == Kind::exclusive && it.lock->holder != &me; });
  return held;
}

void LockOrder::note_locking(const FiberRecord& me, const Lender& lock) {
  for (const Held& held : held_by(me))
    if (held.lock != &lock)
      add(me, {held.lock, &lock});
}

void LockOrder::note_locked(const FiberRecord& me, const Lender& lock, Kind kind) {
  held_by(me).push_back({&lock, kind});
}

void LockOrder::note_unlocked_shared(const FiberRecord& me, const Lender& lock) {
  std::vector<Held>& held = held_by(me);
  const auto last = std::find_if(held.rbegin(), held.rend(), [&](const Held& it) {
    return it.lock == &lock && it.kind == Kind::shared;
  });
  if (last != held.rend())
    held.erase(std::next(last).base());
  if (held.empty())
    held_.erase(&me);
}

void LockOrder::add(const FiberRecord& me, const Edge& edge) {
  if (edges_.contains(edge) || reported_.contains(edge) || edges_.size() >= kMostEdges)
    return;
  std::vector<Edge> back;
  if (!find_path(edge.second, edge.first, back)) {
    edges_.emplace(edge, text_of(me));
    return;
  }
  reported_.insert(edge);
  report(me, edge, back);
}

// Without recursion: a path may be long, and a fiber's stack isn't.
bool LockOrder::find_path(const Lender* from, const Lender* to, std::vector<Edge>& path) const {
  std::map<const Lender*, const Lender*> reached_from{{from, nullptr}};
  std::vector<const Lender*> open{from};
  while (!open.empty()) {
    const Lender* at = open.back();
    open.pop_back();
    for (auto edge = edges_.lower_bound({at, nullptr});
         edge != edges_.end() && edge->first.first == at; ++edge)
      if (reached_from.emplace(edge->first.second, at).second)
        open.push_back(edge->first.second);
  }
  if (!reached_from.contains(to))
    return false;
  for (const Lender* at = to; at != from; at = reached_from[at])
    path.insert(path.begin(), {reached_from[at], at});
  return true;
}

void LockOrder::report(const FiberRecord& me, const Edge& edge, const std::vector<Edge>& back) {
  std::string text = "cede: lock order: " + text_of(me) + " locks " + text_of(edge.second) +
                     " while it holds " + text_of(edge.first) + ", but";
  for (const Edge& other : back)
    text += (&other == back.data() ? " " : ", and ") + edges_[other] + " has locked " +
            text_of(other.second) + " while it held " + text_of(other.first);
  text += ": at another time they wait for each other for ever\n";
  if (handler_)
    handler_(text);
  else
    os::write_error(text.data(), text.size());
}

void LockOrder::forget(const Lender& lock) noexcept {
  const auto is_of = [&](const Edge& edge) { return edge.first == &lock || edge.second == &lock; };
  std::erase_if(edges_, [&](const auto& entry) { return is_of(entry.first); });
  std::erase_if(reported_, is_of);
  for (auto& [fiber, held] : held_)
    std::erase_if(held, [&](const Held& it) { return it.lock == &lock; });
}

LockOrder* lock_order_of(const FiberRecord* me) noexcept {
  return me != nullptr && me->scheduler != nullptr ? me->scheduler->lock_order.get() : nullptr;
}

void forget_lock(const Lender& lock) noexcept {
  const std::lock_guard guard(
      stacks_mutex()); // of the list; what it leads to here is this thread's
  for (SchedulerState* it = schedulers; it != nullptr; it = it->older)
    if (it->is_on_its_thread() && it->lock_order != nullptr)
      it->lock_order->forget(lock);
}

} // namespace cede::core
