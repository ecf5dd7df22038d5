// SPDX-License-Identifier: MIT
// Rows: P-60 P-63 C-12
// Field reports: 46 49 51
// Channels, semaphores, signals and select against a model that knows of no fiber: at each step
// something is done, all fibers run until they wait, and everything that can be seen is compared.
#include "support/environment.h"

#include <cede/fiber.h>
#include <cede/scheduler.h>
#include <cede/select.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

// Knows whether it was moved from.
struct Value {
  int number = -1;
  explicit Value(int n) : number(n) {}
  Value(Value&& other) noexcept : number(std::exchange(other.number, -1)) {}
  Value& operator=(Value&&) = delete;
};

enum class Kind : std::uint8_t { receive, send, acquire, signal };

// One branch: of which channel, with which value or how many units.
struct Branch {
  Kind kind = Kind::receive;
  std::size_t channel = 0;
  int number = 0;
};

// What a fiber is told to do: a select, or if there is but one branch perhaps the plain call.
struct Order {
  std::vector<Branch> branches;
  std::optional<Deadline> deadline;
  bool is_plain = false;
};

enum class End : std::uint8_t { none, went, closed, timed_out, cancelled };

// How it ended, and with what.
struct Outcome {
  End end = End::none;
  std::size_t branch = 0;
  int received = -1;
  std::vector<int> kept; // by each branch that sends: its value, or -1

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// ---------------------------------------------------------------------------------------------

constexpr std::size_t kChannels = 3;
constexpr std::size_t kWorkers = 6;

class Model {
public:
  struct Line {
    std::size_t capacity = 0;
    bool is_closed = false;
    std::deque<int> values;
  };
  struct Worker {
    bool is_waiting = false;
    std::uint64_t since = 0;
    Order order;
    Outcome outcome;
  };

  std::array<Line, kChannels> channels;
  std::array<Worker, kWorkers> workers;
  long units = 0;
  bool is_signalled = false;

  static Outcome fresh(const Order& order) {
    Outcome outcome;
    for (const Branch& branch : order.branches)
      outcome.kept.push_back(branch.kind == Kind::send ? branch.number : -1);
    return outcome;
  }

  // Who waits longest in a branch of that kind.
  std::optional<std::pair<std::size_t, std::size_t>> first(Kind kind, std::size_t channel) const {
    std::optional<std::pair<std::size_t, std::size_t>> found;
    for (std::size_t at = 0; at < kWorkers; ++at)
      for (std::size_t i = 0; i < workers[at].order.branches.size(); ++i) {
        const Branch& branch = workers[at].order.branches[i];
        if (workers[at].is_waiting && branch.kind == kind && branch.channel == channel &&
            (!found || workers[at].since < workers[found->first].since))
          found = {at, i};
      }
    return found;
  }
  std::size_t count(Kind kind, std::size_t channel) const {
    std::size_t sum = 0;
    for (const Worker& worker : workers)
      for (const Branch& branch : worker.order.branches)
        sum += worker.is_waiting && branch.kind == kind && branch.channel == channel ? 1 : 0;
    return sum;
  }

  bool can_go(const Branch& branch) const {
    const Line& line = channels[branch.channel];
    switch (branch.kind) {
    case Kind::receive:
      return !line.values.empty() || first(Kind::send, branch.channel) || line.is_closed;
    case Kind::send:
      return line.is_closed || line.values.size() < line.capacity ||
             first(Kind::receive, branch.channel);
    case Kind::acquire:
      return units >= branch.number && !first(Kind::acquire, 0);
    default:
      return is_signalled;
    }
  }

  // The branch goes, for somebody who doesn't wait.
  Outcome go(const Order& order, std::size_t at) {
    Outcome outcome = fresh(order);
    outcome.end = End::went;
    outcome.branch = at;
    const Branch& branch = order.branches[at];
    Line& line = channels[branch.channel];
    switch (branch.kind) {
    case Kind::receive:
      if (line.values.empty() && !first(Kind::send, branch.channel))
        outcome.end = End::closed;
      else
        outcome.received = take(branch.channel);
      break;
    case Kind::send:
      if (line.is_closed)
        outcome.end = End::closed;
      else
        outcome.kept[at] = (put(branch.channel, branch.number), -1);
      break;
    case Kind::acquire:
      units -= branch.number;
      break;
    default:
      is_signalled = false;
    }
    return outcome;
  }

  void begin(std::size_t at, const Order& order, std::uint64_t time) {
    workers[at] = {true, time, order, fresh(order)};
  }

  void end_wait(std::size_t at, End end, std::size_t branch = 0) {
    Worker& worker = workers[at];
    worker.is_waiting = false;
    worker.outcome.end = end;
    worker.outcome.branch = branch;
    hand_over(); // it may have been in the way of others
  }

  void put(std::size_t channel, int value) {
    if (const auto receiver = first(Kind::receive, channel)) {
      workers[receiver->first].outcome.received = value;
      end_wait(receiver->first, End::went, receiver->second);
    } else {
      channels[channel].values.push_back(value);
    }
  }
  int take(std::size_t channel) {
    Line& line = channels[channel];
    const auto sender = first(Kind::send, channel);
    if (sender) {
      line.values.push_back(workers[sender->first].order.branches[sender->second].number);
      workers[sender->first].outcome.kept[sender->second] = -1;
      end_wait(sender->first, End::went, sender->second);
    }
    const int value = line.values.front();
    line.values.pop_front();
    return value;
  }

  void close(std::size_t channel) {
    channels[channel].is_closed = true;
    for (const Kind kind : {Kind::send, Kind::receive})
      while (const auto waiting = first(kind, channel))
        end_wait(waiting->first, End::closed, waiting->second);
  }
  void renew(std::size_t channel, std::size_t capacity) {
    close(channel);
    channels[channel] = {capacity, false, {}};
  }
  void release(long more) {
    units += more;
    hand_over();
  }
  void send_signal() {
    if (const auto waiting = first(Kind::signal, 0))
      end_wait(waiting->first, End::went, waiting->second);
    else
      is_signalled = true;
  }
  void expire(TimePoint now) {
    for (;;) {
      std::optional<std::size_t> due;
      for (std::size_t at = 0; at < kWorkers; ++at)
        if (const Worker& worker = workers[at];
            worker.is_waiting && worker.order.deadline && *worker.order.deadline <= Deadline(now))
          if (!due || std::pair(*worker.order.deadline, worker.since) <
                          std::pair(*workers[*due].order.deadline, workers[*due].since))
            due = at;
      if (!due)
        return;
      end_wait(*due, End::timed_out);
    }
  }

private:
  void hand_over() {
    while (const auto waiting = first(Kind::acquire, 0)) {
      const int asked = workers[waiting->first].order.branches[waiting->second].number;
      if (asked > units)
        return;
      units -= asked;
      end_wait(waiting->first, End::went, waiting->second);
    }
  }
};

// ---------------------------------------------------------------------------------------------

// A branch of any kind, chosen when it runs. It hands on to the library's.
class AnyBranch {
public:
  AnyBranch() = default; // can never go
  template <class Make>
  explicit AnyBranch(Make make) : held_(std::make_unique<Holder<decltype(make())>>(make)) {}

  bool try_now() { return held_ != nullptr && held_->try_now(); }
  void watch(Waiter& waiter) {
    if (held_ != nullptr)
      held_->watch(waiter);
  }
  const WaitLink* place() const { return held_ != nullptr ? held_->place() : nullptr; }
  void set(WakeReason reason) { held_->set(reason); }
  void call() { held_->call(); }

private:
  struct Base {
    virtual ~Base() = default;
    virtual bool try_now() = 0;
    virtual void watch(Waiter& waiter) = 0;
    virtual const WaitLink* place() const = 0;
    virtual void set(WakeReason reason) = 0;
    virtual void call() = 0;
  };
  template <class Branch>
  struct Holder final : Base {
    Branch branch;
    template <class Make>
    explicit Holder(Make& make) : branch(make()) {}
    bool try_now() override { return branch.try_now(); }
    void watch(Waiter& waiter) override { branch.watch(waiter); }
    const WaitLink* place() const override { return branch.place(); }
    void set(WakeReason reason) override { branch.set(reason); }
    void call() override { branch.call(); }
  };

  std::unique_ptr<Base> held_;
};

class Trial {
public:
  explicit Trial(std::uint32_t seed) : random_(seed) {
    for (std::size_t i = 0; i < kChannels; ++i)
      renew(i);
    for (std::size_t i = 0; i < kWorkers; ++i)
      start(i);
    turn();
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    for (Worker& worker : workers_)
      worker.fiber.cancel();
    for (Worker& worker : workers_)
      std::ignore = worker.fiber.join(kForever);
  }

  void step() {
    // What is done at once, before anybody has run, hits those too who were just handed something.
    for (unsigned more = below(3); more > 0; --more)
      disturb();
    if (const std::size_t at = below(kWorkers); below(4) > 0 && is_idle(at)) {
      command(at);
    } else {
      sleep_for(below(3) * 1ms);
      model_.expire(now());
    }
    turn();
    compare();
  }
  // How often a wait had each end.
  std::array<long, 5> ends{};

private:
  struct Worker {
    Fiber<void> fiber;
    Order order;
    Outcome outcome;
  };

  unsigned below(std::size_t limit) { return static_cast<unsigned>(random_() % limit); }

  void start(std::size_t at) {
    workers_[at].fiber = spawn([this, at] { work(workers_[at]); });
  }
  bool is_idle(std::size_t at) {
    return !model_.workers[at].is_waiting && workers_[at].fiber.state() == FiberState::waiting;
  }

  // All that can run do: they are before the one who drives. Those who were cancelled are followed
  // by others.
  void turn() {
    for (int i = 0; i < 3; ++i)
      yield();
    for (std::size_t i = 0; i < kWorkers; ++i)
      if (workers_[i].fiber.state() == FiberState::finished) {
        start(i);
        yield();
      }
  }

  // -- what a worker does ------------------------------------------------------------------------

  void work(Worker& me) {
    for (;;) {
      park();
      me.outcome = Model::fresh(me.order);
      std::vector<Value> values;
      for (const Branch& branch : me.order.branches)
        values.emplace_back(branch.kind == Kind::send ? branch.number : -1);
      struct Note { // also if it is cancelled
        Worker& me;
        std::vector<Value>& values;
        ~Note() {
          for (std::size_t i = 0; i < values.size(); ++i)
            me.outcome.kept[i] = values[i].number;
          if (me.outcome.end == End::none)
            me.outcome.end = End::cancelled;
        }
      } note{me, values};
      if (me.order.is_plain)
        call(me, values[0]);
      else
        call_select(me, values);
    }
  }

  static void note(Outcome& outcome, const Result<void>& result) {
    if (result)
      outcome.end = End::went;
    else
      outcome.end = result.error() == Errc::closed ? End::closed : End::timed_out;
  }
  static void note(Outcome& outcome, const Result<Value>& received) {
    note(outcome, received ? Result<void>() : Result<void>(received.error()));
    if (received)
      outcome.received = received->number;
  }

  void call(Worker& me, Value& value) {
    const Branch& branch = me.order.branches[0];
    const Deadline deadline = me.order.deadline.value_or(kForever);
    if (branch.kind == Kind::receive)
      note(me.outcome, channels_[branch.channel]->receive(deadline));
    else if (branch.kind == Kind::send)
      note(me.outcome, channels_[branch.channel]->send(std::move(value), deadline));
    else if (branch.kind == Kind::acquire)
      note(me.outcome, semaphore_.acquire(branch.number, deadline));
    else
      note(me.outcome, signal_.wait(deadline));
  }

  AnyBranch branch_of(Outcome& outcome, const Branch& branch, Value& value) {
    const auto tell = [&outcome](auto&& result) { note(outcome, result); };
    Channel<Value>& channel = *channels_[branch.channel];
    if (branch.kind == Kind::receive)
      return AnyBranch([&channel, tell] { return on_receive(channel, tell); });
    if (branch.kind == Kind::send)
      return AnyBranch([&channel, &value, tell] { return on_send(channel, value, tell); });
    if (branch.kind == Kind::acquire)
      return AnyBranch(
          [this, units = branch.number, tell] { return on_semaphore(semaphore_, units, tell); });
    return AnyBranch([this, tell] { return on_signal(signal_, tell); });
  }

  void call_select(Worker& me, std::vector<Value>& values) {
    std::array<AnyBranch, 3> branches;
    for (std::size_t i = 0; i < values.size(); ++i)
      branches[i] = branch_of(me.outcome, me.order.branches[i], values[i]);
    const std::size_t chosen =
        select(std::move(branches[0]), std::move(branches[1]), std::move(branches[2]),
               on_deadline(me.order.deadline.value_or(kForever)));
    if (chosen < values.size())
      me.outcome.branch = chosen;
    else
      me.outcome.end = End::timed_out;
  }

  // -- what the driver does ----------------------------------------------------------------------

  Order order() {
    Order order;
    order.is_plain = below(2) == 0;
    for (unsigned count = order.is_plain ? 1 : 1 + below(3); count > 0; --count) {
      Branch branch{static_cast<Kind>(below(4)), below(kChannels), 1 + static_cast<int>(below(3))};
      if (branch.kind == Kind::send)
        branch.number = ++last_value_;
      if (branch.kind == Kind::acquire || branch.kind == Kind::signal)
        branch.channel = 0;
      order.branches.push_back(branch);
    }
    if (below(2) == 0)
      order.deadline = after((static_cast<int>(below(5)) - 1) * 1ms);
    return order;
  }

  void command(std::size_t at) {
    Worker& worker = workers_[at];
    worker.order = order();
    worker.outcome = {};
    worker.fiber.wake();
    std::vector<std::size_t> can_go;
    for (std::size_t i = 0; i < worker.order.branches.size(); ++i)
      if (model_.can_go(worker.order.branches[i]))
        can_go.push_back(i);
    turn();
    if (can_go.empty()) {
      model_.begin(at, worker.order, ++time_);
      model_.expire(now());
      return;
    }
    const auto chosen = std::find(can_go.begin(), can_go.end(), worker.outcome.branch);
    ASSERT_NE(chosen, can_go.end());
    model_.workers[at].outcome = model_.go(worker.order, *chosen);
  }

  void disturb() {
    const std::size_t at = below(kChannels);
    Model::Line& line = model_.channels[at];
    switch (below(12)) {
    case 0:
    case 1: {
      Value value(++last_value_);
      const bool can = model_.can_go({Kind::send, at});
      const Result<void> sent = channels_[at]->try_send(std::move(value));
      ASSERT_EQ(sent.has_value(), can && !line.is_closed);
      ASSERT_EQ(value.number, sent ? -1 : last_value_); // NOLINT(bugprone-use-after-move)
      if (sent)
        model_.put(at, last_value_);
      else
        ASSERT_EQ(sent.error(), can ? Errc::closed : Errc::again);
      break;
    }
    case 2:
    case 3: {
      const bool has = !line.values.empty() || model_.first(Kind::send, at).has_value();
      const Result<Value> received = channels_[at]->try_receive();
      ASSERT_EQ(received.has_value(), has);
      if (received)
        ASSERT_EQ(received->number, model_.take(at));
      else
        ASSERT_EQ(received.error(), line.is_closed ? Errc::closed : Errc::again);
      break;
    }
    case 4:
    case 5: {
      const long more = model_.units < 4 ? 1 + below(3) : -1 - static_cast<long>(below(3));
      semaphore_.adjust(more);
      model_.release(more);
      break;
    }
    case 6: {
      const long units = 1 + below(3);
      const bool can = model_.can_go({Kind::acquire, 0, static_cast<int>(units)});
      ASSERT_EQ(semaphore_.try_acquire(units), can);
      model_.units -= can ? units : 0;
      break;
    }
    case 7:
      signal_.send();
      model_.send_signal();
      break;
    case 8:
    case 9: {
      const std::size_t who = below(kWorkers);
      if (workers_[who].fiber.state() != FiberState::waiting && !model_.workers[who].is_waiting) {
        workers_[who].fiber.cancel(); // it has been handed something, and keeps it
      } else if (model_.workers[who].is_waiting) {
        workers_[who].fiber.cancel();
        model_.end_wait(who, End::cancelled);
      }
      break;
    }
    default:
      if (line.is_closed) {
        renew(at);
      } else if (below(4) == 0) {
        channels_[at]->close();
        model_.close(at);
      }
    }
  }

  void renew(std::size_t at) {
    const std::size_t capacity = below(3);
    channels_[at] = std::make_unique<Channel<Value>>(capacity);
    model_.renew(at, capacity);
  }

  // -- what both see -----------------------------------------------------------------------------

  void compare() {
    for (std::size_t i = 0; i < kWorkers; ++i) {
      Model::Worker& expected = model_.workers[i];
      if (expected.is_waiting) {
        ASSERT_EQ(workers_[i].outcome.end, End::none) << "worker " << i << " didn't wait";
      } else if (expected.outcome.end != End::none) {
        ASSERT_EQ(workers_[i].outcome.end, expected.outcome.end) << "worker " << i;
        ASSERT_TRUE(workers_[i].outcome == expected.outcome) << "worker " << i;
        ++ends[static_cast<std::size_t>(std::exchange(expected.outcome.end, End::none))];
      }
    }
    for (std::size_t i = 0; i < kChannels; ++i) {
      ASSERT_EQ(channels_[i]->size(), model_.channels[i].values.size());
      ASSERT_EQ(channels_[i]->senders(), model_.count(Kind::send, i));
      ASSERT_EQ(channels_[i]->receivers(), model_.count(Kind::receive, i));
      ASSERT_EQ(channels_[i]->is_closed(), model_.channels[i].is_closed);
    }
    ASSERT_EQ(semaphore_.count(), model_.units);
    ASSERT_EQ(semaphore_.waiters(), model_.count(Kind::acquire, 0));
    ASSERT_EQ(signal_.is_set(), model_.is_signalled);
    ASSERT_EQ(signal_.waiters(), model_.count(Kind::signal, 0));
  }

  std::mt19937 random_;
  Model model_;
  std::array<std::unique_ptr<Channel<Value>>, kChannels> channels_;
  Semaphore semaphore_{0};
  Signal signal_;
  std::array<Worker, kWorkers> workers_;
  int last_value_ = 0;
  std::uint64_t time_ = 0;
};

TEST(SelectModel, everything_happens_as_the_model_says) {
  const int steps = test::scaled(test::kEmulated ? 100'000 : 1'000'000, 20'000);
  for (const std::uint32_t seed : {1u, 2u})
    run(SchedulerOptions{.has_test_clock = true}, [&] {
      SCOPED_TRACE("seed " + std::to_string(seed));
      current().set_priority(kPriorityMin);
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
