// SPDX-License-Identifier: MIT
// Rows: D-15 X-40
// Field reports: 9 10
// The unwinder of Windows in a process: it ends at the entry, and at every instruction of the
// switch it finds the frame and the registers of the side that is left or of the side that is
// resumed.
#include "../../../arch/arch.h"
#include "support/probe.h"

#include <cede/process.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>
#include <windows.h>

namespace cede {
namespace {

// The first instruction of the function that `ip` is in; 0 if there is none.
std::uintptr_t function_of(std::uintptr_t ip) {
  DWORD64 base = 0;
  const RUNTIME_FUNCTION* function = RtlLookupFunctionEntry(ip, &base, nullptr);
  return function != nullptr ? base + function->BeginAddress : 0;
}

template <class F>
std::uintptr_t start_of(F* function) {
  return function_of(reinterpret_cast<std::uintptr_t>(function));
}

// Unwinds one frame.
void unwind(CONTEXT& context) {
  DWORD64 base = 0;
  RUNTIME_FUNCTION* function = RtlLookupFunctionEntry(context.Rip, &base, nullptr);
  if (function == nullptr) { // a leaf
    std::memcpy(&context.Rip, reinterpret_cast<void*>(context.Rsp), sizeof context.Rip);
    context.Rsp += 8;
    return;
  }
  void* data = nullptr;
  DWORD64 frame = 0;
  RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, function, &context, &data, &frame,
                   nullptr);
}

TEST(Unwind, ends_at_the_entry_with_the_stack_at_its_base) {
  Process main, process;
  int frames = 0;
  bool has_entry = false;
  CONTEXT context = {};
  StackLimits limits;
  auto entry = [&](void*) {
    limits = stack_limits();
    RtlCaptureContext(&context);
    for (; context.Rip != 0 && frames < 100; ++frames) {
      has_entry = function_of(context.Rip) == start_of(cede_entry);
      unwind(context);
    }
    return Next{main};
  };
  newprocess(process, entry).value();
  transfer(main, process);
  EXPECT_LT(frames, 100);
  EXPECT_TRUE(has_entry); // the last one
  EXPECT_EQ(context.Rsp, reinterpret_cast<std::uintptr_t>(limits.high));
}

TEST(Unwind, a_captured_back_trace_ends_at_the_entry) {
  Process main, process;
  std::array<void*, 100> frames;
  std::size_t count = 0;
  auto entry = [&](void*) {
    count = RtlCaptureStackBackTrace(0, frames.size(), frames.data(), nullptr);
    return Next{main};
  };
  newprocess(process, entry).value();
  transfer(main, process);
  ASSERT_GT(count, 1u);
  ASSERT_LT(count, frames.size());
  EXPECT_EQ(function_of(reinterpret_cast<std::uintptr_t>(frames[count - 1])), start_of(cede_entry));
}

// What one instruction of the target's code was found to be called from.
struct Step {
  static constexpr std::uintptr_t kNoFunction = 1; // the caller's address is no code
  std::uintptr_t routine;                          // of the target
  std::uintptr_t offset;                           // of the instruction, from there
  std::uintptr_t function;                         // of the caller, or 0 for the end of the stack
  std::uint64_t seed; // of the caller's registers, if it is the probe and all of them fit
};

std::vector<Step>* steps = nullptr;
bool is_last = false;

// The seed whose values all of the probe's registers have (probe.S, VALUE), or 0.
std::uint64_t seed_of(const CONTEXT& context) {
  const DWORD64 integers[] = {context.Rbx, context.Rbp, context.Rdi, context.Rsi,
                              context.R12, context.R13, context.R14, context.R15};
  const std::uint64_t seed = context.Rbx;
  for (std::size_t i = 0; i < std::size(integers); ++i)
    if (integers[i] != seed + i * 0x1001)
      return 0;
  const M128A* vectors = &context.Xmm6;
  for (std::size_t i = 0; i < 10; ++i)
    if (vectors[i].Low != seed + (8 + i) * 0x1001 ||
        vectors[i].High != static_cast<LONGLONG>(vectors[i].Low))
      return 0;
  return seed;
}

LONG NTAPI on_step(EXCEPTION_POINTERS* exception) {
  if (exception->ExceptionRecord->ExceptionCode != EXCEPTION_SINGLE_STEP)
    return EXCEPTION_CONTINUE_SEARCH;
  constexpr DWORD kTrapFlag = 0x100;
  CONTEXT context = *exception->ContextRecord;
  if (!is_last)
    exception->ContextRecord->EFlags |= kTrapFlag;
  const std::uintptr_t routine = function_of(context.Rip);
  if (routine == start_of(cede_switch) || routine == start_of(cede_entry) ||
      routine == start_of(cede_leave)) {
    const std::uintptr_t offset = context.Rip - routine;
    unwind(context);
    std::uintptr_t caller = 0;
    if (context.Rip != 0)
      caller = std::max(function_of(context.Rip), Step::kNoFunction);
    const std::uint64_t seed = caller == start_of(cede_probe) ? seed_of(context) : 0;
    steps->push_back({routine, offset, caller, seed});
  }
  return EXCEPTION_CONTINUE_EXECUTION;
}

// Leaves what looks like code where the next frames will be,
[[gnu::noinline]] void dirty_stack() {
  volatile std::uintptr_t words[200];
  for (volatile std::uintptr_t& word : words)
    word = start_of(dirty_stack);
}

// and where a process will start.
void dirty_stack_of(Process& created) {
  auto* record = static_cast<std::uintptr_t*>(execution_of(created).context.sp);
  std::fill(record - 200, record, start_of(dirty_stack));
}

unsigned probe_transfer(Process& from, Process& to, std::uint64_t seed) {
  detail::Execution& leaving = execution_of(from);
  detail::Execution& entering = execution_of(to);
  dirty_stack();
  leaving.gate = detail::Gate::suspended;
  entering.gate = detail::Gate::running;
  return cede_probe(&leaving.context, &entering.context, seed);
}

constexpr std::uint64_t kMain = 0x111000000;
constexpr std::uint64_t kProcess = 0x222000000;

// Each step of: main enters a process, which goes back, is resumed, and ends as `end` says. That
// leads to a second process, which ends at once.
template <class End>
std::vector<Step> trace_of_a_life(End end) {
  std::vector<Step> traced;
  traced.reserve(10'000);
  steps = &traced;
  is_last = false;
  Process main, process, heir;
  auto entry = [&](void*) {
    probe_transfer(process, main, kProcess);
    end(process, heir);
    return Next{heir};
  };
  newprocess(process, entry).value();
  newprocess(heir, [&](void*) { return Next{main}; }).value();
  dirty_stack_of(process);
  dirty_stack_of(heir);
  void* handler = AddVectoredExceptionHandler(1, on_step);
  asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
  probe_transfer(main, process, kMain);
  probe_transfer(main, process, kMain);
  is_last = true;
  RemoveVectoredExceptionHandler(handler);
  return traced;
}

TEST(Unwind, finds_a_whole_side_at_every_instruction_of_the_switch) {
  const std::vector<Step> traced = trace_of_a_life([](Process&, Process&) {});
  int of_main = 0;
  int of_process = 0;
  int at_end = 0;
  for (const Step& step : traced) {
    const bool is_probe = step.function == start_of(cede_probe);
    if (is_probe)
      EXPECT_TRUE(step.seed == kMain || step.seed == kProcess) << "at offset " << step.offset;
    else
      EXPECT_EQ(step.function, 0u) << "at offset " << step.offset;
    of_main += step.seed == kMain;
    of_process += step.seed == kProcess;
    at_end += step.function == 0;
  }
  // Main's routine is passed through twice, the process's once; entries and ends twice.
  EXPECT_GT(of_main, 100);
  EXPECT_GT(of_process, 50);
  EXPECT_GT(at_end, 40);
}

TEST(Unwind, finds_the_end_of_the_stack_once_a_process_leaves_for_good) {
  const std::vector<Step> traced = trace_of_a_life([](Process& process, Process& heir) {
    execution_of(process).gate = detail::Gate::finished;
    execution_of(heir).gate = detail::Gate::running;
    dirty_stack();
    cede_leave(&execution_of(heir).context, nullptr);
  });
  std::string ends; // of the steps in cede_leave: a caller or the end of the stack
  for (const Step& step : traced)
    if (step.routine == start_of(cede_leave))
      ends += step.function == 0 ? 'e' : 'c';
  // The caller is there until its return address is overwritten; the heir passes the rest only.
  EXPECT_EQ(ends.find("cccee"), 0u) << ends;
  EXPECT_EQ(ends.find('c', 3), std::string::npos) << ends;
}

} // namespace
} // namespace cede
