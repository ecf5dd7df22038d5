// SPDX-License-Identifier: MIT
// In which orders the fibers of a scheduler lock: whether two of them could ever wait for each
// other, though they never did. Layer core.
//
// Invariants: an edge leads from a lock to one that was locked while it was held, and there is no
// circle of edges: the one that would close it is reported and not kept. What lies here of a lock
// goes when the lock does.
#pragma once

#include <cede/detail/fiber_record.h>
#include <cede/detail/lender.h>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cede::core {

class LockOrder {
public:
  using Handler = std::function<void(const std::string& report)>;

  void set_handler(Handler handler) { handler_ = std::move(handler); }

  // `me` is about to lock it by a form that may wait.
  void note_locking(const detail::FiberRecord& me, const detail::Lender& lock);
  // It has it. A shared one's holders are known only here.
  enum class Kind : unsigned char { exclusive, shared };
  void note_locked(const detail::FiberRecord& me, const detail::Lender& lock, Kind kind);
  void note_unlocked_shared(const detail::FiberRecord& me, const detail::Lender& lock);
  // It ends.
  void forget(const detail::Lender& lock) noexcept;

private:
  // More orders than anybody could read are not kept.
  static constexpr std::size_t kMostEdges = 1 << 16;

  struct Held {
    const detail::Lender* lock;
    Kind kind;
  };
  using Edge = std::pair<const detail::Lender*, const detail::Lender*>;

  std::vector<Held>& held_by(const detail::FiberRecord& me);
  void add(const detail::FiberRecord& me, const Edge& edge);
  bool find_path(const detail::Lender* from, const detail::Lender* to,
                 std::vector<Edge>& path) const;
  void report(const detail::FiberRecord& me, const Edge& edge, const std::vector<Edge>& back);

  std::map<const detail::FiberRecord*, std::vector<Held>> held_;
  std::map<Edge, std::string> edges_; // and who locked so first
  std::set<Edge> reported_;
  Handler handler_;
};

// That of the scheduler of the fiber that runs; null if it keeps none.
LockOrder* lock_order_of(const detail::FiberRecord* me) noexcept;

// A lock that may stand in a table of this thread's schedulers ends.
void forget_lock(const detail::Lender& lock) noexcept;

} // namespace cede::core
