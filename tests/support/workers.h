// SPDX-License-Identifier: MIT
// Fibers that do what they are told, for tests that compare with a model: at each step somebody is
// told something, all run until they wait, and what can be seen is compared.
#pragma once

#include <cede/fiber.h>
#include <cede/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

namespace cede::test {

enum class End : std::uint8_t { none, went, closed, timed_out, cancelled, deadlock };

inline End end_of(const Result<void>& result) {
  if (result)
    return End::went;
  if (result.error() == Errc::closed)
    return End::closed;
  return result.error() == Errc::deadlock ? End::deadlock : End::timed_out;
}

// Made by a fiber of the lowest priority, so that all workers go first.
template <std::size_t kCount>
class Workers {
public:
  using Order = std::function<Result<void>()>;

  // `leave` is called by a worker that was cancelled, at its end.
  explicit Workers(std::function<void(std::size_t)> leave = nullptr) : leave_(std::move(leave)) {
    current().set_priority(kPriorityMin);
    for (std::size_t i = 0; i < kCount; ++i)
      start(i);
    turn();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    for (Worker& worker : workers_)
      worker.fiber.cancel();
    for (Worker& worker : workers_)
      std::ignore = worker.fiber.join(kForever);
  }

  // It waits for an order, whatever others have been told meanwhile.
  bool is_idle(std::size_t at) const {
    return workers_[at].is_idle && workers_[at].fiber.state() == FiberState::waiting;
  }
  void command(std::size_t at, Order order) {
    workers_[at].order = std::move(order);
    workers_[at].end = End::none;
    workers_[at].fiber.wake();
  }
  void cancel(std::size_t at) { workers_[at].fiber.cancel(); }
  const AnyFiber& fiber(std::size_t at) const { return workers_[at].fiber; }
  // How its last order has ended.
  End end(std::size_t at) const { return workers_[at].end; }

  // All that can run do. Those who were cancelled are followed by others.
  void turn() {
    for (int i = 0; i < 3; ++i)
      yield();
    for (std::size_t i = 0; i < kCount; ++i)
      if (workers_[i].fiber.state() == FiberState::finished) {
        start(i);
        yield();
      }
  }

private:
  struct Worker {
    Fiber<void> fiber;
    Order order;
    End end = End::none;
    bool is_idle = false;
  };

  void start(std::size_t at) {
    workers_[at].fiber = spawn([this, at] { work(at); });
  }
  void work(std::size_t at) {
    Worker& me = workers_[at];
    struct Leave {
      Workers& workers;
      std::size_t at;
      ~Leave() {
        if (workers.workers_[at].end == End::none)
          workers.workers_[at].end = End::cancelled;
        if (workers.leave_)
          workers.leave_(at);
      }
    } leave{*this, at};
    for (;;) {
      me.is_idle = true;
      park();
      me.is_idle = false;
      me.end = end_of(me.order());
    }
  }

  const std::function<void(std::size_t)> leave_;
  std::array<Worker, kCount> workers_;
};

} // namespace cede::test
