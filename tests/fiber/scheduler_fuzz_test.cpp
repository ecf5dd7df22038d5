// SPDX-License-Identifier: MIT
// Rows: L-02 L-09 L-17 P-44 P-45 P-47 X-18
// Field reports: 40 53 55
// Random programs of fibers against a model that is too simple to be wrong: queues and a sorted
// list. Of posts it only knows that each runs, in turn. CEDE_FUZZ_SECONDS says for how long,
// CEDE_FUZZ_SEED where to begin; a failure prints its seed.
#include "support/environment.h"

#include <cede/fiber.h>
#include <cede/remote.h>
#include <cede/scheduler.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace cede {
namespace {

constexpr int kFibers = 12;
constexpr int kFirstFibers = 8; // the others are spawned by them
constexpr int kMostSteps = 10;

enum class Op {
  yield,
  park,
  park_until,
  wake,
  sleep,
  cancel,
  join,
  set_priority,
  yield_to,
  schedule,
  make_ready,
  spawn,
  post
};
constexpr int kOps = 13;

struct Step {
  Op op;
  int target; // a fiber
  int number; // milliseconds, or a priority
};

struct Program {
  std::vector<Step> steps;
  int priority;
  bool swallows; // goes on when it is cancelled
};

std::vector<Program> random_programs(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  std::vector<Program> programs(kFibers);
  for (Program& program : programs) {
    program.priority = below(4) == 0 ? below(8) - 4 : 0;
    program.swallows = below(5) == 0;
    for (int step = below(kMostSteps); step >= 0; --step) {
      const Op op = static_cast<Op>(below(kOps));
      // A park of no time ends when the scheduler next looks at the clock: the model has no such
      // moment.
      const int least = op == Op::set_priority ? kPriorityMin : op == Op::park_until ? 1 : 0;
      program.steps.push_back({op, below(kFibers), least + below(op == Op::set_priority ? 8 : 4)});
    }
  }
  return programs;
}

std::string line(int fiber, std::size_t step, const char* what) {
  return std::to_string(fiber) + "." + std::to_string(step) + what + " ";
}

// ---------------------------------------------------------------------------------------------

// What the scheduler makes of them.
std::string trace_of_scheduler(const std::vector<Program>& programs) {
  std::string trace, posted, ran;
  std::vector<Fiber<void>> fibers(kFibers);
  Remote remote;
  std::function<void(int)> start;
  const auto perform = [&](const Step& step) -> const char* {
    const AnyFiber& target = fibers[step.target];
    const auto name = [](WakeReason reason) {
      return reason == WakeReason::woken ? "w" : reason == WakeReason::timed_out ? "t" : "?";
    };
    switch (step.op) {
    case Op::yield:
      yield();
      return "y";
    case Op::park:
      return name(park());
    case Op::park_until:
      return name(park(after(std::chrono::milliseconds(step.number))));
    case Op::wake:
      return target.wake() ? "W1" : "W0";
    case Op::sleep:
      sleep_for(std::chrono::milliseconds(step.number));
      return "s";
    case Op::cancel:
      return target.cancel() ? "C1" : "C0";
    case Op::join:
      return target.join().has_value() ? "j" : "J";
    case Op::set_priority:
      target.set_priority(step.number);
      return "p";
    case Op::yield_to:
      return yield_to(target) ? "Y1" : "Y0";
    case Op::schedule:
      schedule();
      return "S";
    case Op::make_ready:
      return target.make_ready() ? "M1" : "M0";
    case Op::spawn:
      if (target)
        return "N0";
      start(step.target);
      return "N1";
    default:
      if (remote.post([&ran, what = line(step.target, posted.size(), "")] { ran += what; }))
        posted += line(step.target, posted.size(), "");
      return "P";
    }
  };
  const auto run = [&](int i) {
    const Program& program = programs[i];
    for (std::size_t at = 0; at < program.steps.size(); ++at) {
      try {
        const char* done = perform(program.steps[at]);
        trace += line(i, at, done);
      } catch (const Cancelled&) {
        trace += line(i, at, "x");
        if (!program.swallows)
          throw;
      }
    }
  };
  // Its end lets those who swallow go on with their programs: what they use was made before it.
  Scheduler scheduler(SchedulerOptions{.has_test_clock = true});
  start = [&](int i) {
    fibers[i] =
        scheduler.spawn(FiberOptions{.priority = programs[i].priority}, [&run, i] { run(i); });
  };
  remote = scheduler.remote();
  remote.unref();
  for (int i = 0; i < kFirstFibers; ++i)
    start(i);
  const Progress progress = scheduler.run_until(kForever);
  // A copy: those who are left are cancelled after it, and go on saying so.
  return std::string(trace) + (progress == Progress::closed ? "closed" : "deadlock") +
         (ran == posted ? "" : "; posted " + posted + "but ran " + ran);
}

// ---------------------------------------------------------------------------------------------

// What has to come of them.
class Model {
public:
  explicit Model(const std::vector<Program>& programs) : programs_(programs), fibers_(kFibers) {
    for (int i = 0; i < kFirstFibers; ++i)
      spawn(i);
  }

  std::string run() {
    for (;;) {
      int next = -1;
      for (int priority = kPriorityMax; priority >= kPriorityMin && next < 0; --priority)
        if (std::deque<int>& queue = queue_of(priority); !queue.empty()) {
          next = queue.front();
          queue.pop_front();
        }
      while (next >= 0)
        next = run_fiber(next);
      if (is_anybody_ready())
        continue;
      if (sleepers_.empty())
        break;
      const auto first = std::min_element(sleepers_.begin(), sleepers_.end());
      now_ = first->time;
      wake_the_due();
    }
    trace_ += std::all_of(fibers_.begin(), fibers_.end(),
                          [](const State& f) { return f.ended || !f.exists; })
                  ? "closed"
                  : "deadlock";
    return trace_;
  }

private:
  struct State {
    int priority = 0;
    std::size_t step = 0;
    bool exists = false, started = false, ended = false, ok = true, cancelled = false,
         permit = false;
    bool ready = false;
    bool resumes = false;    // its step has begun
    const char* answer = ""; // of the wait that has ended
    Op wait = Op::yield;     // while it waits
    bool waits = false;
    bool throws = false;      // when it runs again
    bool yields = false;      // it left and stayed ready
    std::vector<int> joiners; // in turn
  };
  struct Sleeper {
    long time;
    int turn, fiber;
    bool operator<(const Sleeper& other) const {
      return time != other.time ? time < other.time : turn < other.turn;
    }
  };

  std::deque<int>& queue_of(int priority) { return queues_[priority - kPriorityMin]; }
  bool is_anybody_ready() const {
    return std::any_of(std::begin(queues_), std::end(queues_),
                       [](const std::deque<int>& queue) { return !queue.empty(); });
  }
  void make_ready(int i) {
    fibers_[i].ready = true;
    queue_of(fibers_[i].priority).push_back(i);
  }
  void spawn(int i) {
    fibers_[i].exists = true;
    fibers_[i].priority = programs_[i].priority;
    make_ready(i);
  }
  void take_out(int i) {
    std::erase(queue_of(fibers_[i].priority), i);
    fibers_[i].ready = false;
  }
  void end_wait(int i, const char* answer) {
    State& fiber = fibers_[i];
    fiber.waits = false;
    fiber.answer = answer;
    std::erase_if(sleepers_, [&](const Sleeper& sleeper) { return sleeper.fiber == i; });
    for (State& other : fibers_)
      std::erase(other.joiners, i);
    make_ready(i);
  }
  void wake_the_due() {
    std::sort(sleepers_.begin(), sleepers_.end());
    while (!sleepers_.empty() && sleepers_.front().time <= now_) {
      const int fiber = sleepers_.front().fiber;
      end_wait(fiber, fibers_[fiber].wait == Op::sleep ? "s" : "t");
    }
  }
  void begin_wait(int i, Op op, int milliseconds = -1) {
    fibers_[i].waits = true;
    fibers_[i].wait = op;
    if (milliseconds >= 0)
      sleepers_.push_back({now_ + milliseconds, turns_++, i});
  }
  void end(int i, bool ok) {
    State& fiber = fibers_[i];
    fiber.ended = true;
    fiber.ok = ok;
    while (!fiber.joiners.empty())
      end_wait(fiber.joiners.front(), ok ? "j" : "J");
  }
  void note(int i, const char* what) { trace_ += line(i, fibers_[i].step++, what); }

  bool closes_circle(int i, int target) const {
    for (int hop = 0; hop < kFibers; ++hop) {
      if (target == i)
        return true;
      int joined = -1;
      for (int other = 0; other < kFibers; ++other)
        if (const auto& joiners = fibers_[other].joiners;
            std::find(joiners.begin(), joiners.end(), target) != joiners.end())
          joined = other;
      if (joined < 0)
        return false;
      target = joined;
    }
    return false;
  }

  // Runs it until it leaves; returns who has to run next by its wish, or -1.
  int run_fiber(int i) {
    State& fiber = fibers_[i];
    fiber.ready = fiber.yields = false;
    const bool was_started = std::exchange(fiber.started, true);
    if (!was_started && fiber.cancelled) {
      end(i, false);
      return -1;
    }
    if (fiber.resumes) {
      fiber.resumes = false;
      if (std::exchange(fiber.throws, false)) {
        note(i, "x");
        if (!programs_[i].swallows) {
          end(i, false);
          return -1;
        }
      } else {
        note(i, fiber.answer);
      }
    }
    while (fiber.step < programs_[i].steps.size()) {
      const Step& step = programs_[i].steps[fiber.step];
      int next = -1;
      switch (perform(i, step, next)) {
      case Did::went_on:
        break;
      case Did::left:
        fiber.resumes = true;
        return next;
      case Did::threw:
        note(i, "x");
        if (!programs_[i].swallows) {
          end(i, false);
          return -1;
        }
      }
    }
    end(i, true);
    return -1;
  }

  enum class Did { went_on, left, threw };

  Did perform(int i, const Step& step, int& next) {
    State& fiber = fibers_[i];
    State& target = fibers_[step.target];
    const bool can_wait = step.op != Op::wake && step.op != Op::cancel &&
                          step.op != Op::set_priority && step.op != Op::make_ready &&
                          step.op != Op::spawn && step.op != Op::post;
    if (can_wait && fiber.cancelled)
      return Did::threw;
    switch (step.op) {
    case Op::sleep:
      if (step.number > 0) {
        begin_wait(i, Op::sleep, step.number);
        return Did::left;
      }
      fiber.answer = "s";
      fiber.yields = true;
      make_ready(i);
      return Did::left;
    case Op::yield:
      fiber.answer = "y";
      fiber.yields = true;
      make_ready(i);
      return Did::left;
    case Op::park:
    case Op::park_until:
      if (std::exchange(fiber.permit, false)) {
        note(i, "w");
        return Did::went_on;
      }
      begin_wait(i, Op::park, step.op == Op::park_until ? step.number : -1);
      return Did::left;
    case Op::schedule:
      begin_wait(i, Op::schedule);
      return Did::left;
    case Op::join:
      if (target.ended) {
        note(i, target.ok ? "j" : "J");
        return Did::went_on;
      }
      if (!target.exists || closes_circle(i, step.target)) {
        note(i, "J");
        return Did::went_on;
      }
      begin_wait(i, Op::join);
      target.joiners.push_back(i);
      return Did::left;
    case Op::yield_to:
      if (step.target == i || !target.ready || (target.cancelled && !target.started)) {
        note(i, "Y0");
        return Did::went_on;
      }
      fiber.answer = "Y1";
      fiber.yields = true;
      make_ready(i);
      take_out(step.target);
      next = step.target;
      return Did::left;
    case Op::wake: {
      const bool parks = target.waits && target.wait == Op::park;
      const bool is_there = target.exists && !target.ended;
      note(i, is_there && (parks || !target.permit) ? "W1" : "W0");
      if (parks)
        end_wait(step.target, "w");
      else if (is_there)
        target.permit = true;
      return Did::went_on;
    }
    case Op::make_ready: {
      const bool scheduled = target.waits && target.wait == Op::schedule;
      note(i, scheduled ? "M1" : "M0");
      if (scheduled)
        end_wait(step.target, "S");
      return Did::went_on;
    }
    case Op::cancel:
      note(i, target.exists && !target.ended && !target.cancelled ? "C1" : "C0");
      if (!target.exists || target.ended || std::exchange(target.cancelled, true))
        return Did::went_on;
      if (target.waits) {
        end_wait(step.target, "x");
        target.throws = true;
      } else if (target.yields) {
        target.throws = true;
      }
      return Did::went_on;
    case Op::set_priority:
      note(i, "p");
      if (!target.exists || target.ended)
        return Did::went_on;
      if (target.ready) {
        take_out(step.target);
        target.priority = step.number;
        make_ready(step.target);
      } else {
        target.priority = step.number;
      }
      return Did::went_on;
    case Op::spawn:
      note(i, target.exists ? "N0" : "N1");
      if (!target.exists)
        spawn(step.target);
      return Did::went_on;
    case Op::post:
      note(i, "P");
      return Did::went_on;
    }
    return Did::went_on;
  }

  const std::vector<Program>& programs_;
  std::vector<State> fibers_;
  std::deque<int> queues_[8];
  std::vector<Sleeper> sleepers_;
  std::string trace_;
  long now_ = 0;
  int turns_ = 0;
};

// ---------------------------------------------------------------------------------------------

TEST(SchedulerFuzz, does_what_the_model_does) {
  const char* seconds = std::getenv("CEDE_FUZZ_SECONDS");
  const char* first = std::getenv("CEDE_FUZZ_SEED");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::milliseconds(seconds != nullptr ? 1000 * std::atoi(seconds) : 500);
  std::uint64_t seed = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  do {
    const std::vector<Program> programs = random_programs(seed);
    ASSERT_EQ(trace_of_scheduler(programs), Model(programs).run()) << "CEDE_FUZZ_SEED=" << seed;
    ++seed;
  } while (std::chrono::steady_clock::now() < end);
}

} // namespace
} // namespace cede
