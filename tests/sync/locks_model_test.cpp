// SPDX-License-Identifier: MIT
// Rows: P-64
// Field reports: 46 51
// Mutexes of all kinds, and conditions, against a model that knows of no fiber.
#include "support/environment.h"
#include "support/workers.h"

#include <cede/condition.h>
#include <cede/fiber.h>
#include <cede/mutex.h>
#include <cede/scheduler.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace cede {
namespace {

using namespace std::chrono_literals;
using test::End;

constexpr std::size_t kWorkers = 6;
constexpr std::size_t kNobody = kWorkers;

// The locks; `readers` is the shared one, taken to read.
enum class Lock : std::uint8_t { one, two, recursive, writer, readers };
constexpr std::size_t kLocks = 5;
constexpr std::size_t index_of(Lock lock) {
  return static_cast<std::size_t>(lock);
}

class Model {
public:
  struct Wait {
    Lock lock = Lock::one;
    bool is_for_notification = false; // else for the lock
    std::optional<Deadline> deadline;
    std::optional<End> outcome; // of the condition, when it has the lock again
    std::uint64_t since = 0;
  };
  struct Worker {
    std::optional<Wait> wait;
    End end = End::none;
    bool is_doomed = false;           // cancelled: ends when what it does has ended
    std::array<int, kLocks> depths{}; // how often it has each lock
  };
  std::array<Worker, kWorkers> workers;

  // -- what a worker does when it runs -----------------------------------------------------------

  void lock(std::size_t at, Lock lock, std::optional<Deadline> deadline) {
    const std::size_t holder = holder_of(lock);
    if (lock == Lock::recursive && holder == at)
      return take(at, lock, End::went);
    if (is_free(lock))
      return take(at, lock, End::went);
    if (holder == at || (!deadline && leads_to(holder, at)))
      return end(at, End::deadlock);
    workers[at].wait = Wait{lock, false, deadline, {}, ++time_};
  }
  bool try_lock(std::size_t at, Lock lock) {
    const bool can = is_free(lock) || (lock == Lock::recursive && holder_of(lock) == at);
    if (can)
      ++depth(at, lock);
    return can;
  }
  void unlock(std::size_t at, Lock lock) {
    --depth(at, lock);
    admit(lock);
  }
  void wait_for_notification(std::size_t at, std::optional<Deadline> deadline) {
    workers[at].wait = Wait{Lock::one, true, deadline, {}, ++time_};
    unlock(at, Lock::one);
  }

  // -- what happens to those who wait ------------------------------------------------------------

  void notify() {
    if (const auto first = first_in(Lock::one, true))
      leave_condition(*first, End::went);
  }
  void cancel(std::size_t at, bool is_idle) {
    workers[at].is_doomed = true;
    const std::optional<Wait>& wait = workers[at].wait;
    if (is_idle)
      runs_.push_back({at, false});
    else if (wait && wait->is_for_notification)
      leave_condition(at, End::cancelled);
    else if (wait && !wait->outcome) // not while it takes the lock again
      end_wait(at, End::cancelled);
  }
  void expire(Deadline now) {
    for (;;) {
      std::optional<std::size_t> due;
      for (std::size_t at = 0; at < kWorkers; ++at)
        if (const auto& wait = workers[at].wait; wait && wait->deadline && *wait->deadline <= now)
          if (!due || std::pair(*wait->deadline, wait->since) <
                          std::pair(*workers[*due].wait->deadline, workers[*due].wait->since))
            due = at;
      if (!due)
        return;
      if (workers[*due].wait->is_for_notification)
        leave_condition(*due, End::timed_out);
      else
        end_wait(*due, End::timed_out);
    }
  }
  // Those who are ready now run, in turn; who becomes ready by that does so after them.
  void run_round() {
    for (std::size_t left = runs_.size(); left > 0; --left) {
      const auto [at, is_to_relock] = runs_.front();
      runs_.pop_front();
      if (is_to_relock)
        relock(at);
      else
        leave(at);
    }
  }
  void run() {
    while (has_ready())
      run_round();
  }
  bool has_ready() const { return !runs_.empty(); }

  std::size_t waiters(Lock lock, bool is_for_notification = false) const {
    std::size_t count = 0;
    for (const Worker& worker : workers)
      count += worker.wait && is_same(worker.wait->lock, lock) &&
                       worker.wait->is_for_notification == is_for_notification
                   ? 1
                   : 0;
    return count;
  }
  bool is_locked(Lock lock) const { return holder_of(lock) != kNobody; }
  int readers() const {
    int count = 0;
    for (const Worker& worker : workers)
      count += worker.depths[index_of(Lock::readers)];
    return count;
  }
  int& depth(std::size_t at, Lock lock) { return workers[at].depths[index_of(lock)]; }

private:
  struct Run {
    std::size_t at;
    bool is_to_relock;
  };

  static bool is_same(Lock lock, Lock other) {
    const auto base = [](Lock l) { return l == Lock::readers ? Lock::writer : l; };
    return base(lock) == base(other);
  }
  // Readers are not known as holders.
  std::size_t holder_of(Lock lock) const {
    const Lock exclusive = lock == Lock::readers ? Lock::writer : lock;
    for (std::size_t at = 0; at < kWorkers; ++at)
      if (workers[at].depths[index_of(exclusive)] > 0)
        return at;
    return kNobody;
  }
  bool can_hold(Lock lock) const {
    return !is_locked(lock) && (lock != Lock::writer || readers() == 0);
  }
  bool is_free(Lock lock) const { return can_hold(lock) && waiters(lock) == 0; }
  // Whether `from` waits for `to`, if by way of others, with no deadline anywhere.
  bool leads_to(std::size_t from, std::size_t to) const {
    while (from != kNobody && from != to) {
      const auto& wait = workers[from].wait;
      from =
          wait && !wait->is_for_notification && !wait->deadline ? holder_of(wait->lock) : kNobody;
    }
    return from == to;
  }
  std::optional<std::size_t> first_in(Lock lock, bool is_for_notification) const {
    std::optional<std::size_t> first;
    for (std::size_t at = 0; at < kWorkers; ++at)
      if (const auto& wait = workers[at].wait;
          wait && is_same(wait->lock, lock) && wait->is_for_notification == is_for_notification)
        if (!first || wait->since < workers[*first].wait->since)
          first = at;
    return first;
  }

  void take(std::size_t at, Lock lock, End how) {
    ++depth(at, lock);
    end(at, how);
  }
  void end(std::size_t at, End how) {
    workers[at].wait.reset();
    workers[at].end = how;
    if (workers[at].is_doomed)
      runs_.push_back({at, false});
  }
  void end_wait(std::size_t at, End how) {
    const Lock lock = workers[at].wait->lock;
    end(at, how);
    admit(lock);
  }
  void admit(Lock lock) {
    while (const auto first = first_in(lock, false)) {
      const Wait& wait = *workers[*first].wait;
      if (!can_hold(wait.lock))
        return;
      take(*first, wait.lock, wait.outcome.value_or(End::went));
    }
  }
  void leave_condition(std::size_t at, End how) {
    workers[at].wait.reset();
    workers[at].end = how;
    runs_.push_back({at, true});
  }
  void relock(std::size_t at) {
    const End how = std::exchange(workers[at].end, End::none);
    if (is_free(Lock::one))
      take(at, Lock::one, how);
    else
      workers[at].wait = Wait{Lock::one, false, {}, how, ++time_};
  }
  // It was cancelled and ends: gives back all it has.
  void leave(std::size_t at) {
    for (std::size_t i = 0; i < kLocks; ++i)
      while (workers[at].depths[i] > 0)
        unlock(at, static_cast<Lock>(i));
    workers[at].is_doomed = false;
  }

  std::uint64_t time_ = 0;
  std::deque<Run> runs_; // those who are ready and will do something to others
};

// ---------------------------------------------------------------------------------------------

class Trial {
public:
  explicit Trial(std::uint32_t seed) : random_(seed) {}

  void step() {
    for (unsigned more = below(2); more > 0; --more)
      disturb();
    if (const std::size_t at = below(kWorkers);
        below(4) > 0 && workers_.is_idle(at) && !model_.workers[at].is_doomed)
      command(at);
    else
      sleep_for(below(3) * 1ms);
    model_.run();
    model_.expire(now());
    model_.run();
    workers_.turn();
    compare();
  }
  std::array<long, 6> ends{};

private:
  unsigned below(std::size_t limit) { return static_cast<unsigned>(random_() % limit); }

  void command(std::size_t at) {
    const auto lock = static_cast<Lock>(below(kLocks));
    std::optional<Deadline> deadline;
    // One that has passed would end either before or after what the others who are ready do.
    if (below(2) == 0)
      deadline = after((static_cast<int>(below(5)) - 1 + (model_.has_ready() ? 2 : 0)) * 1ms);
    const bool has_only_one = model_.workers[at].depths == std::array<int, kLocks>{1};
    if (has_only_one && below(2) == 0) {
      workers_.command(at, [=, this] { return wait_for_notification(at, deadline); });
      model_.run_round();
      model_.wait_for_notification(at, deadline);
    } else if (model_.depth(at, lock) > 0 && below(4) > 0) {
      workers_.command(at, [=, this] { return unlock(at, lock), Result<void>(); });
      model_.run_round();
      model_.unlock(at, lock);
      model_.workers[at].end = End::went;
    } else if (below(5) == 0) {
      workers_.command(at, [=, this] { return counted(at, lock, try_lock(lock)); });
      model_.run_round();
      model_.workers[at].end = model_.try_lock(at, lock) ? End::went : End::timed_out;
    } else {
      workers_.command(at, [=, this] { return counted(at, lock, take(lock, deadline)); });
      model_.run_round();
      model_.lock(at, lock, deadline);
    }
    workers_.turn();
  }

  Result<void> take(Lock lock, std::optional<Deadline> given) {
    const Deadline deadline = given.value_or(kForever);
    switch (lock) {
    case Lock::one:
      return one_.lock(deadline);
    case Lock::two:
      return two_.lock(deadline);
    case Lock::recursive:
      return recursive_.lock(deadline);
    case Lock::writer:
      return shared_.lock(deadline);
    default:
      return shared_.lock_shared(deadline);
    }
  }
  Result<void> try_lock(Lock lock) {
    const auto try_it = [&] {
      switch (lock) {
      case Lock::one:
        return one_.try_lock();
      case Lock::two:
        return two_.try_lock();
      case Lock::recursive:
        return recursive_.try_lock();
      case Lock::writer:
        return shared_.try_lock();
      default:
        return shared_.try_lock_shared();
      }
    };
    return try_it() ? Result<void>() : Result<void>(Errc::timed_out);
  }
  Result<void> counted(std::size_t at, Lock lock, Result<void> had) {
    had_[at][index_of(lock)] += had ? 1 : 0;
    return had;
  }
  void unlock(std::size_t at, Lock lock) {
    --had_[at][index_of(lock)];
    switch (lock) {
    case Lock::one:
      return one_.unlock();
    case Lock::two:
      return two_.unlock();
    case Lock::recursive:
      return recursive_.unlock();
    case Lock::writer:
      return shared_.unlock();
    default:
      return shared_.unlock_shared();
    }
  }
  Result<void> wait_for_notification(std::size_t at, std::optional<Deadline> deadline) {
    struct Again { // whatever happens
      int& had;
      explicit Again(int& count) : had(count) { --had; }
      ~Again() { ++had; }
    } again{had_[at][index_of(Lock::one)]};
    if (deadline)
      return condition_.wait_until(one_, *deadline) == std::cv_status::timeout
                 ? Result<void>(Errc::timed_out)
                 : Result<void>();
    condition_.wait(one_);
    return {};
  }
  // Gives back what it has when it is cancelled.
  void leave(std::size_t at) {
    for (std::size_t i = 0; i < kLocks; ++i)
      while (had_[at][i] > 0)
        unlock(at, static_cast<Lock>(i));
  }

  void disturb() {
    switch (below(6)) {
    case 0:
    case 1:
      condition_.notify_one();
      model_.notify();
      break;
    case 2:
      condition_.notify_all();
      while (model_.waiters(Lock::one, true) > 0)
        model_.notify();
      break;
    default: {
      const std::size_t who = below(kWorkers);
      if (below(8) > 0 || model_.workers[who].is_doomed)
        return;
      model_.cancel(who, workers_.is_idle(who));
      workers_.cancel(who);
    }
    }
  }

  void compare() {
    for (std::size_t i = 0; i < kWorkers; ++i) {
      Model::Worker& worker = model_.workers[i];
      const End expected = worker.wait ? End::none : std::exchange(worker.end, End::none);
      if (worker.wait || expected != End::none) {
        ASSERT_EQ(workers_.end(i), expected) << "worker " << i;
        ++ends[static_cast<std::size_t>(expected)];
      }
      ASSERT_EQ(had_[i], worker.depths) << "worker " << i;
    }
    ASSERT_EQ(one_.is_locked(), model_.is_locked(Lock::one));
    ASSERT_EQ(one_.waiters(), model_.waiters(Lock::one));
    ASSERT_EQ(two_.is_locked(), model_.is_locked(Lock::two));
    ASSERT_EQ(two_.waiters(), model_.waiters(Lock::two));
    ASSERT_EQ(recursive_.is_locked(), model_.is_locked(Lock::recursive));
    ASSERT_EQ(recursive_.waiters(), model_.waiters(Lock::recursive));
    ASSERT_EQ(shared_.is_locked(), model_.is_locked(Lock::writer));
    ASSERT_EQ(shared_.readers(), static_cast<std::size_t>(model_.readers()));
    ASSERT_EQ(shared_.waiters(), model_.waiters(Lock::writer));
    ASSERT_EQ(condition_.waiters(), model_.waiters(Lock::one, true));
  }

  std::mt19937 random_;
  Model model_;
  Mutex one_, two_;
  RecursiveMutex recursive_;
  SharedMutex shared_;
  ConditionVariable condition_;
  std::array<std::array<int, kLocks>, kWorkers> had_{};
  test::Workers<kWorkers> workers_{[this](std::size_t at) { leave(at); }};
};

TEST(LocksModel, everything_happens_as_the_model_says) {
  const int steps = test::scaled(test::kEmulated ? 100'000 : 1'000'000, 20'000);
  for (const std::uint32_t seed : {1u, 2u})
    run(SchedulerOptions{.has_test_clock = true}, [&] {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Trial trial(seed);
      for (int i = 0; i < steps / 2 && !testing::Test::HasFatalFailure(); ++i) {
        SCOPED_TRACE(i);
        trial.step();
      }
      for (const End end : {End::went, End::timed_out, End::cancelled, End::deadlock})
        EXPECT_GT(trial.ends[static_cast<std::size_t>(end)], steps / 10'000);
    });
}

} // namespace
} // namespace cede
