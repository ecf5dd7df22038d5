// SPDX-License-Identifier: MIT
// Rows: D-15 P-06
// Field reports: 5 22
// Unwind data at every instruction of both forms of the switch, on x86-64 System V: at each one the
// unwinder has to pass through the frame that called the switch, with every callee-saved register
// as that caller has it, and to end where the stack ends. Up to the load of sp the caller is the
// one who leaves, from there to the jump the one who is entered.
#include "../../../arch/arch.h"
#include "../../../src/core/sanitizers.h"
#include "stepper.h"
#include "support/probe.h"

#include <cede/process.h>

#include <algorithm>
#include <cfenv>
#include <gtest/gtest.h>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>

namespace cede::test {
namespace {

// In a section of its own, so that its instructions can be told from others.
extern "C" const std::byte __start_cede_hop[];
extern "C" const std::byte __stop_cede_hop[];

struct Hop {
  Process& from;
  Process& to;
};

[[gnu::section("cede_hop"), gnu::noinline]] void hop(void* argument) {
  auto& hop = *static_cast<Hop*>(argument);
  transfer(hop.from, hop.to);
}

template <class T>
std::uintptr_t address(T* what) {
  return reinterpret_cast<std::uintptr_t>(what);
}

// Where a process's stack ends: by their unwind data, which begin before the first instruction.
bool is_end(std::uintptr_t function) {
  return function == function_of(address(cede_entry)) ||
         function == function_of(address(cede_leave));
}

// One of the two executions that switch to and fro.
struct Side {
  StackLimits limits;
  std::uint64_t seed = 0;

  bool owns(std::uintptr_t sp) const {
    return sp >= address(limits.low) && sp < address(limits.high);
  }

  KeptRegisters registers() const {
    KeptRegisters values;
    for (std::size_t i = 0; i < kKeptRegisters; ++i)
      values[i] = seed + i * 0x1001;
    return values;
  }
};

// A transfer by cede_switch, called with known registers. The seed's low bits are the probe's
// rounding mode.
void out_of_line(Process& from, Process& to, std::uint64_t seed) {
  execution_of(from).gate = detail::Gate::suspended;
  execution_of(to).gate = detail::Gate::running;
  cede_probe(&execution_of(from).context, &execution_of(to).context, seed);
}

// The same by transfer().
void as_users_call(Process& from, Process& to, std::uint64_t seed) {
  const int earlier = std::fegetround();
  std::fesetround(seed % 4 == 0 ? FE_TONEAREST : FE_UPWARD);
  Hop argument{from, to};
  EXPECT_EQ(cede_call_filled(hop, &argument, seed), 0u);
  std::fesetround(earlier);
}

constexpr std::uint64_t kMainSeed = 0x111100000000, kWorkerSeed = 0x222200000000;

struct Roundings {
  std::uint64_t main, worker;
};

// How the process ends: its entry returns,
void returns(Process&, Process&) {}

// it leaves by the routine that a sanitizer's presence demands,
void leaves(Process& main, Process& worker) {
  execution_of(worker).gate = detail::Gate::finished;
  execution_of(main).gate = detail::Gate::running;
  cede_leave(&execution_of(main).context, nullptr);
}

// or it is destroyed before it goes on.
struct Destroyed {
  void operator()(Process&, Process&) const { ADD_FAILURE() << "a destroyed process went on"; }
};

using Way = void (*)(Process& from, Process& to, std::uint64_t seed);

class SwitchSteps : public testing::Test {
protected:
  void SetUp() override {
    if (core::are_switches_observed())
      GTEST_SKIP() << "a sanitizer has to be told of every switch, and these tell nobody";
    if (!can_step())
      GTEST_SKIP() << "the processor's trap flag does nothing here";
  }

  // A process that is started, transferred to twice and then ends as `end` says, stepped through.
  // Rounding modes differ if `roundings` do.
  template <class End>
  std::span<const Step> record(Way way, Roundings roundings, End end) {
    main_side_ = {stack_limits(), kMainSeed | roundings.main};
    worker_side_.seed = kWorkerSeed | roundings.worker;
    Process main;
    std::optional<Process> worker(std::in_place);
    newprocess(*worker, [&](void*) {
      for (int i = 0; i < 2; ++i)
        way(*worker, main, worker_side_.seed);
      end(main, *worker);
      return Next{main};
    }).value();
    detail::Stack& stack = *execution_of(*worker).stack;
    worker_side_.limits = {stack.low, stack.high()};
    auto destroy = [](void* process) { static_cast<std::optional<Process>*>(process)->reset(); };
    start_steps(range());
    way(main, *worker, main_side_.seed);
    way(main, *worker, main_side_.seed);
    if constexpr (!std::is_same_v<End, Destroyed>)
      way(main, *worker, main_side_.seed);
    cede_call_filled(destroy, &worker, main_side_.seed);
    return stop_steps();
  }

  static StepRange range() {
    return {
        {address(cede_switch), function_of(address(cede_entry)), function_of(address(cede_leave))},
        address(__start_cede_hop),
        address(__stop_cede_hop)};
  }

  void check(std::span<const Step> steps, std::size_t least) {
    EXPECT_GE(steps.size(), least);
    bool is_between = false; // from the load of sp to the jump
    for (std::size_t i = 0; i < steps.size() && !HasFailure(); ++i) {
      const Step& step = steps[i];
      SCOPED_TRACE(testing::Message() << "step " << i << " at " << std::hex << step.pc << ", "
                                      << step.pc - step.function << " into its function");
      if (is_between)
        is_between = step.pc != address(step.context.resume);
      else
        is_between = i + 1 < steps.size() && side_of(step.sp) != side_of(steps[i + 1].sp);
      std::ostringstream frames;
      for (std::size_t f = 0; f < std::min(step.depth, Step::kMostFrames); ++f)
        frames << std::hex << ' ' << step.frames[f].ip << " sp " << step.frames[f].sp;
      SCOPED_TRACE("frames" + frames.str());
      is_between ? check_target(step) : check_caller(step, 1);
    }
  }

  Side main_side_, worker_side_;

private:
  const Side* side_of(std::uintptr_t sp) const {
    return main_side_.owns(sp) ? &main_side_ : worker_side_.owns(sp) ? &worker_side_ : nullptr;
  }

  void check_target(const Step& step) {
    ASSERT_EQ(step.reason, _URC_END_OF_STACK);
    ASSERT_GE(step.depth, 2u) << "the stack ends in the switch";
    const Frame& resumed = step.frames[1];
    ASSERT_EQ(resumed.ip, address(step.context.resume));
    ASSERT_EQ(resumed.sp, address(step.context.sp));
    EXPECT_EQ(resumed.registers[0], address(step.context.base));
    EXPECT_EQ(resumed.registers[1], address(step.context.fp));
    for (std::size_t i = 2; i < kKeptRegisters; ++i)
      EXPECT_EQ(resumed.registers[i], step.registers[i]) << "r" << 10 + i << " has no rule here";
    check_caller(step, 2);
  }

  // The frames before `first` are the switch's; then comes who called it.
  void check_caller(const Step& step, std::size_t first) {
    const Frame& innermost = step.frames[first - 1];
    ASSERT_EQ(step.reason, _URC_END_OF_STACK);
    ASSERT_GE(step.depth, first);
    const Side* side = side_of(innermost.sp);
    ASSERT_NE(side, nullptr) << "a stack pointer on no stack";
    ASSERT_EQ(is_end(step.last.function), side == &worker_side_) << "a process's end is its entry";
    if (is_end(innermost.function)) {
      EXPECT_EQ(step.depth, first) << "the stack goes on behind the entry";
      return;
    }
    for (std::size_t i = first; i < std::min(step.depth, Step::kMostFrames); ++i) {
      const Frame& frame = step.frames[i];
      EXPECT_EQ(side_of(frame.sp), side);
      if (frame.function == address(cede_probe) || frame.function == address(cede_call_filled)) {
        EXPECT_EQ(frame.registers, side->registers());
        return;
      }
    }
    ADD_FAILURE() << "the caller isn't among the frames";
  }
};

constexpr Roundings kEqual{0, 0}, kDifferent{1, 2};

TEST_F(SwitchSteps, out_of_line_form) {
  check(record(out_of_line, kEqual, returns), 100);
}

TEST_F(SwitchSteps, out_of_line_form_when_the_floating_point_control_differs) {
  check(record(out_of_line, kDifferent, returns), 100);
}

TEST_F(SwitchSteps, out_of_line_form_when_a_suspended_process_is_destroyed) {
  check(record(out_of_line, kEqual, Destroyed()), 100);
}

TEST_F(SwitchSteps, form_that_users_call) {
  check(record(as_users_call, kEqual, returns), 100);
}

TEST_F(SwitchSteps, form_that_users_call_when_the_floating_point_control_differs) {
  check(record(as_users_call, kDifferent, returns), 100);
}

TEST_F(SwitchSteps, form_that_users_call_when_a_suspended_process_is_destroyed) {
  check(record(as_users_call, kDifferent, Destroyed()), 100);
}

TEST_F(SwitchSteps, leaving_for_good) {
  check(record(out_of_line, kEqual, leaves), 100);
  check(record(as_users_call, kDifferent, leaves), 100);
}

} // namespace
} // namespace cede::test
