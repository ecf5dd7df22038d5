// SPDX-License-Identifier: MIT
// Rows: X-21 P-65
// Field reports: 46 49 51
// Events, latches, wait groups, barriers and sets of semaphores against a model that knows of no
// fiber.
#include "support/environment.h"
#include "support/workers.h"

#include <cede/barrier.h>
#include <cede/event.h>
#include <cede/fiber.h>
#include <cede/scheduler.h>
#include <cede/semaphore.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace cede {
namespace {

using namespace std::chrono_literals;
using test::End;

constexpr std::size_t kWorkers = 6;
constexpr std::ptrdiff_t kParties = 3;
constexpr long kUnits = 2; // of each key

enum class Gate : std::uint8_t { automatic, manual, latch, group, barrier, key0, key1 };
constexpr std::size_t kGates = 7;

struct Wait {
  Gate gate = Gate::automatic;
  long units = 0;
  std::optional<Deadline> deadline;
  std::uint64_t since = 0;
};

class Model {
public:
  bool automatic = false, manual = false;
  std::ptrdiff_t latch = 0, group = 0, missing = kParties;
  std::array<long, 2> units{kUnits, kUnits};
  std::array<std::optional<Wait>, kWorkers> waits;
  std::array<End, kWorkers> ends{};

  std::size_t waiters(Gate gate) const {
    return static_cast<std::size_t>(std::count_if(
        waits.begin(), waits.end(), [&](const auto& wait) { return wait && wait->gate == gate; }));
  }

  // Whether it goes at once; then it has gone.
  bool goes(const Wait& wait) {
    switch (wait.gate) {
    case Gate::automatic:
      return std::exchange(automatic, false);
    case Gate::manual:
      return manual;
    case Gate::latch:
      return latch == 0;
    case Gate::group:
      return group == 0;
    case Gate::barrier:
      return arrive();
    default:
      if (waiters(wait.gate) > 0 || units_of(wait.gate) < wait.units)
        return false;
      units_of(wait.gate) -= wait.units;
      return true;
    }
  }
  void begin(std::size_t at, Wait wait) {
    wait.since = ++time_;
    waits[at] = wait;
  }
  void finish(std::size_t at, End end) {
    ends[at] = end;
    const Gate gate = std::exchange(waits[at], std::nullopt)->gate;
    if (gate >= Gate::key0)
      hand_over(gate); // it may have been in the way of others
  }
  void let_all_go(Gate gate, End end = End::went) {
    while (const auto first = first_of(gate))
      finish(*first, end);
  }

  void set_automatic() {
    if (const auto first = first_of(Gate::automatic))
      finish(*first, End::went);
    else
      automatic = true;
  }
  void set_manual() {
    manual = true;
    let_all_go(Gate::manual);
  }
  void count_down() {
    if (--latch == 0)
      let_all_go(Gate::latch);
  }
  void add(std::ptrdiff_t more) {
    group += more;
    if (group == 0)
      let_all_go(Gate::group);
  }
  bool arrive() {
    if (--missing > 0)
      return false;
    missing = kParties;
    let_all_go(Gate::barrier);
    return true;
  }
  void release(Gate key, long more) {
    units_of(key) += more;
    hand_over(key);
  }
  void expire(Deadline now) {
    for (;;) {
      std::optional<std::size_t> due;
      for (std::size_t at = 0; at < kWorkers; ++at)
        if (waits[at] && waits[at]->deadline && *waits[at]->deadline <= now &&
            (!due || std::pair(*waits[at]->deadline, waits[at]->since) <
                         std::pair(*waits[*due]->deadline, waits[*due]->since)))
          due = at;
      if (!due)
        return;
      finish(*due, End::timed_out);
    }
  }
  long& units_of(Gate key) { return units[key == Gate::key0 ? 0 : 1]; }

private:
  std::optional<std::size_t> first_of(Gate gate) const {
    std::optional<std::size_t> first;
    for (std::size_t at = 0; at < kWorkers; ++at)
      if (waits[at] && waits[at]->gate == gate &&
          (!first || waits[at]->since < waits[*first]->since))
        first = at;
    return first;
  }
  void hand_over(Gate key) {
    while (const auto first = first_of(key)) {
      if (waits[*first]->units > units_of(key))
        return;
      units_of(key) -= waits[*first]->units;
      finish(*first, End::went);
    }
  }

  std::uint64_t time_ = 0;
};

class Trial {
public:
  explicit Trial(std::uint32_t seed) : random_(seed) {
    for (std::size_t i = 0; i < kGates; ++i)
      renew(static_cast<Gate>(i));
  }

  void step() {
    for (unsigned more = below(3); more > 0; --more)
      disturb();
    if (const std::size_t at = below(kWorkers); below(4) > 0 && workers_.is_idle(at)) {
      command(at);
    } else {
      sleep_for(below(3) * 1ms);
    }
    model_.expire(now());
    workers_.turn();
    compare();
  }
  std::array<long, 6> ends{};

private:
  unsigned below(std::size_t limit) { return static_cast<unsigned>(random_() % limit); }

  void command(std::size_t at) {
    Wait wait{static_cast<Gate>(below(kGates)), 1 + static_cast<long>(below(kUnits)), {}, 0};
    if (below(2) == 0)
      wait.deadline = after((static_cast<int>(below(5)) - 1) * 1ms);
    workers_.command(at, [this, wait] { return call(wait); });
    if (model_.goes(wait))
      model_.ends[at] = End::went;
    else
      model_.begin(at, wait);
    workers_.turn();
  }

  Result<void> call(const Wait& wait) {
    const Deadline deadline = wait.deadline.value_or(kForever);
    switch (wait.gate) {
    case Gate::automatic:
      return automatic_->wait(deadline);
    case Gate::manual:
      return manual_->wait(deadline);
    case Gate::latch:
      return latch_->wait(deadline);
    case Gate::group:
      return group_->wait(deadline);
    case Gate::barrier: {
      const Barrier::Arrival arrival = barrier_->arrive();
      return barrier_->wait(arrival, deadline);
    }
    default:
      return keys_.acquire(wait.gate, wait.units, deadline);
    }
  }

  void disturb() {
    switch (below(12)) {
    case 0:
      automatic_->set();
      model_.set_automatic();
      break;
    case 1:
      automatic_->reset();
      model_.automatic = false;
      break;
    case 2:
      manual_->set();
      model_.set_manual();
      break;
    case 3:
      manual_->reset();
      model_.manual = false;
      break;
    case 4:
      if (model_.latch == 0)
        return renew(Gate::latch);
      latch_->count_down();
      model_.count_down();
      break;
    case 5:
    case 6: {
      const std::ptrdiff_t more = model_.group > 0 && below(3) > 0 ? -1 : 1;
      group_->add(more);
      model_.add(more);
      break;
    }
    case 7:
      std::ignore = barrier_->arrive();
      model_.arrive();
      break;
    case 8:
    case 9: {
      const Gate key = below(2) == 0 ? Gate::key0 : Gate::key1;
      if (model_.units_of(key) == kUnits)
        return;
      keys_.release(key);
      model_.release(key, 1);
      break;
    }
    case 10: {
      const std::size_t who = below(kWorkers);
      if (workers_.is_idle(who))
        return;
      workers_.cancel(who); // who was let go already stays so
      if (model_.waits[who])
        model_.finish(who, End::cancelled);
      break;
    }
    default:
      if (below(20) == 0)
        renew(static_cast<Gate>(below(kGates)));
    }
  }

  // Destroys it, which wakes those who wait.
  void renew(Gate gate) {
    if (gate >= Gate::key0)
      return;
    model_.let_all_go(gate, End::closed);
    switch (gate) {
    case Gate::automatic:
      automatic_ = std::make_unique<Event>(Event::kAuto);
      model_.automatic = false;
      break;
    case Gate::manual:
      manual_ = std::make_unique<Event>(Event::kManual, true);
      model_.manual = true;
      break;
    case Gate::latch:
      model_.latch = 1 + below(4);
      latch_ = std::make_unique<Latch>(model_.latch);
      break;
    case Gate::group:
      group_ = std::make_unique<WaitGroup>();
      model_.group = 0;
      break;
    default:
      barrier_ = std::make_unique<Barrier>(kParties);
      model_.missing = kParties;
    }
  }

  void compare() {
    for (std::size_t i = 0; i < kWorkers; ++i) {
      const End expected = model_.waits[i] ? End::none : std::exchange(model_.ends[i], End::none);
      if (model_.waits[i] || expected != End::none) {
        ASSERT_EQ(workers_.end(i), expected) << "worker " << i;
        ++ends[static_cast<std::size_t>(expected)];
      }
    }
    ASSERT_EQ(automatic_->is_set(), model_.automatic);
    ASSERT_EQ(automatic_->waiters(), model_.waiters(Gate::automatic));
    ASSERT_EQ(manual_->is_set(), model_.manual);
    ASSERT_EQ(manual_->waiters(), model_.waiters(Gate::manual));
    ASSERT_EQ(latch_->try_wait(), model_.latch == 0);
    ASSERT_EQ(latch_->waiters(), model_.waiters(Gate::latch));
    ASSERT_EQ(group_->count(), model_.group);
    ASSERT_EQ(group_->waiters(), model_.waiters(Gate::group));
    ASSERT_EQ(barrier_->waiters(), model_.waiters(Gate::barrier));
    std::size_t keys_in_use = 0;
    for (const Gate key : {Gate::key0, Gate::key1}) {
      ASSERT_EQ(keys_.count(key), model_.units_of(key));
      ASSERT_EQ(keys_.waiters(key), model_.waiters(key));
      keys_in_use += model_.units_of(key) != kUnits ? 1 : 0;
    }
    ASSERT_EQ(keys_.size(), keys_in_use);
  }

  std::mt19937 random_;
  Model model_;
  std::unique_ptr<Event> automatic_, manual_;
  std::unique_ptr<Latch> latch_;
  std::unique_ptr<WaitGroup> group_;
  std::unique_ptr<Barrier> barrier_;
  SemaphoreSet<Gate> keys_{kUnits};
  test::Workers<kWorkers> workers_;
};

TEST(GatesModel, everything_happens_as_the_model_says) {
  const int steps = test::scaled(test::kEmulated ? 100'000 : 1'000'000, 20'000);
  for (const std::uint32_t seed : {1u, 2u})
    run(SchedulerOptions{.has_test_clock = true}, [&] {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Trial trial(seed);
      for (int i = 0; i < steps / 2 && !testing::Test::HasFatalFailure(); ++i) {
        SCOPED_TRACE(i);
        trial.step();
      }
      for (const End end : {End::went, End::closed, End::timed_out, End::cancelled})
        EXPECT_GT(trial.ends[static_cast<std::size_t>(end)], steps / 10'000);
    });
}

} // namespace
} // namespace cede
