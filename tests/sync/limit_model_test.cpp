// SPDX-License-Identifier: MIT
// Rows: C-03 C-06 C-08 C-10 C-T3
// Limits, against a model that knows of each fiber whether its turn has come.
#include "support/environment.h"
#include "support/limits.h"

#include <cede/fiber.h>
#include <cede/limit.h>
#include <cede/scheduler.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;
using test::counts;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

// What a Limit should have done, and bodies that look whether it has.
class Model {
public:
  explicit Model(Limit& limit) : limit_(limit) {}

  void act(int step) {
    const unsigned what = below(16);
    if (what < 6 && size() < 40)
      spawn();
    else if (what < 8 && size() > 0)
      cancel_one();
    else if (what == 8 && size() > 0)
      forget_one();
    else if (what == 9 && waiting_ < 20)
      wait_a_while();
    else if (what < 12)
      sleep_for(below(3 + step / 500 % 2 * 20) * 1ms);
    else
      yield();
  }

  void check() const {
    EXPECT_EQ(limit_.running(), count(State::running));
    EXPECT_EQ(limit_.queued(), count(State::queued) + count(State::leaving));
    EXPECT_LE(limit_.running(), limit_.max());
    EXPECT_LE(inside_, limit_.max());
  }

  // With those that were forgotten.
  int left() const { return left_; }
  int waiting() const { return waiting_; }
  int started() const { return last_started_; }
  std::size_t thrown() const { return thrown_; }
  std::size_t zeros() const { return zeros_; }

private:
  enum class State { queued, running, leaving };
  struct Member {
    int number;
    AnyFiber fiber;
    State state;
    bool is_inside = false;
  };

  void spawn() {
    const int number = spawned_++;
    Fiber<void> fiber = limit_.spawn([this, number] { run_body(number); });
    members_.push_back({number, fiber, State::queued});
    fiber.on_exit([this, number](Result<void>) {
      --left_;
      leave(number);
    });
    ++left_;
    let_in();
  }

  void cancel_one() {
    Member& member = any();
    if (member.state == State::queued) {
      EXPECT_EQ(member.fiber.state(), FiberState::created);
      member.state = State::leaving;
    }
    member.fiber.cancel();
  }

  void forget_one() {
    const Member member = any();
    inside_ -= member.is_inside ? 1 : 0;
    leave(member.number);
    EXPECT_TRUE(limit_.forget(member.fiber));
    EXPECT_FALSE(limit_.forget(member.fiber));
  }

  void wait_a_while() {
    cede::spawn([this, deadline = below(3) == 0 ? kForever : after(below(9) * 1ms)] {
      const std::size_t zeros = zeros_;
      const bool is_empty = members_.empty();
      ++waiting_;
      const Result<void> waited = limit_.wait(deadline);
      --waiting_;
      EXPECT_TRUE(waited || waited.error() == Errc::timed_out);
      EXPECT_TRUE(!waited || is_empty || zeros_ > zeros);
      EXPECT_TRUE(waited || !is_empty);
    });
  }

  unsigned below(unsigned limit) { return random_() % limit; }
  std::size_t size() const { return members_.size(); }
  auto find(int number) {
    return std::find_if(members_.begin(), members_.end(),
                        [&](const Member& member) { return member.number == number; });
  }
  Member& any() { return members_[below(static_cast<unsigned>(members_.size()))]; }
  std::size_t count(State state) const {
    return std::count_if(members_.begin(), members_.end(),
                         [&](const Member& member) { return member.state == state; });
  }
  void let_in() {
    for (Member& member : members_) // in the order of their spawns
      if (member.state == State::queued && count(State::running) < limit_.max())
        member.state = State::running;
  }
  void leave(int number) {
    const auto member = find(number);
    if (member == members_.end())
      return; // it was forgotten
    members_.erase(member);
    zeros_ += members_.empty() ? 1 : 0;
    let_in();
  }

  void run_body(int number) {
    const auto member = find(number);
    if (member != members_.end()) {
      EXPECT_EQ(member->state, State::running);
      member->is_inside = true;
      ++inside_;
    }
    EXPECT_GT(number, last_started_);
    last_started_ = number;
    struct End {
      Model& model;
      int number;
      ~End() {
        const auto ends = model.find(number);
        if (ends == model.members_.end())
          return;
        ends->is_inside = false;
        --model.inside_;
      }
    } end{*this, number};
    for (unsigned i = below(4); i > 0; --i)
      below(3) == 0 ? sleep_for(below(5) * 1ms) : yield();
    if (below(8) == 0 && size() < 40)
      spawn();
    if (below(8) == 0) {
      const bool has_ended = limit_.wait(after(below(2) * 1ms)).has_value();
      EXPECT_TRUE(!has_ended || find(number) == members_.end());
    }
    if (below(6) == 0) {
      ++thrown_;
      throw number;
    }
  }

  Limit& limit_;
  std::mt19937 random_{3};
  std::vector<Member> members_;
  int spawned_ = 0;
  int last_started_ = -1;
  int left_ = 0;
  int waiting_ = 0;
  std::size_t inside_ = 0;
  std::size_t thrown_ = 0;
  std::size_t zeros_ = 0;
};

TEST(Limit, does_what_the_model_does) {
  const int steps = test::scaled(test::kEmulated ? 100'000 : 1'000'000, 20'000);
  Scheduler scheduler(kTestClock);
  std::size_t told = 0;
  scheduler.set_unhandled([&](const AnyFiber&, std::exception_ptr) { ++told; });
  Limit limit(4);
  Model model(limit);
  scheduler.spawn([&] {
    for (int step = 0; step < steps && !HasFailure(); ++step) {
      model.act(step);
      model.check();
    }
    limit.wait();
    model.check();
  });
  scheduler.run();
  EXPECT_EQ(counts(limit), "0 0");
  EXPECT_EQ(model.left() + model.waiting(), 0);
  EXPECT_EQ(model.thrown(), told);
  EXPECT_GT(model.started(), steps / 10);
  EXPECT_GT(model.zeros(), steps / 1000u);
}

} // namespace
} // namespace cede
