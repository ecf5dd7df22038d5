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

#include <array>
#include <cstring>
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
  std::uintptr_t offset;   // of the instruction, from cede_switch
  std::uintptr_t function; // of the caller, or 0 for the end of the stack
  std::uint64_t seed;      // of the caller's registers, if it is the probe and all of them fit
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
  const std::uintptr_t function = function_of(context.Rip);
  if (function == start_of(cede_switch) || function == start_of(cede_entry) ||
      function == start_of(cede_leave)) {
    const std::uintptr_t offset = context.Rip - start_of(cede_switch);
    unwind(context);
    const std::uintptr_t caller = context.Rip == 0 ? 0 : function_of(context.Rip);
    steps->push_back({offset, caller, caller == start_of(cede_probe) ? seed_of(context) : 0});
  }
  return EXCEPTION_CONTINUE_EXECUTION;
}

// Leaves what looks like code where the next frames will be.
[[gnu::noinline]] void dirty_stack() {
  volatile std::uintptr_t words[200];
  for (volatile std::uintptr_t& word : words)
    word = start_of(dirty_stack);
}

unsigned probe_transfer(Process& from, Process& to, std::uint64_t seed) {
  detail::Execution& leaving = execution_of(from);
  detail::Execution& entering = execution_of(to);
  dirty_stack();
  leaving.gate = detail::Gate::suspended;
  entering.gate = detail::Gate::running;
  return cede_probe(&leaving.context, &entering.context, seed);
}

// Each step of: main enters a process, which goes back, is resumed, and ends.
std::vector<Step> trace_of_a_life(std::uint64_t seed_of_main, std::uint64_t seed_of_process) {
  std::vector<Step> traced;
  traced.reserve(10'000);
  steps = &traced;
  is_last = false;
  Process main, process;
  auto entry = [&](void*) {
    probe_transfer(process, main, seed_of_process);
    return Next{main};
  };
  newprocess(process, entry).value();
  void* handler = AddVectoredExceptionHandler(1, on_step);
  asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
  probe_transfer(main, process, seed_of_main);
  probe_transfer(main, process, seed_of_main);
  is_last = true;
  RemoveVectoredExceptionHandler(handler);
  return traced;
}

TEST(Unwind, finds_a_whole_side_at_every_instruction_of_the_switch) {
  constexpr std::uint64_t kMain = 0x111000000;
  constexpr std::uint64_t kProcess = 0x222000000;
  const std::vector<Step> traced = trace_of_a_life(kMain, kProcess);
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
  // Main's routine is passed through twice, the process's once; the entry and the end once.
  EXPECT_GT(of_main, 100);
  EXPECT_GT(of_process, 50);
  EXPECT_GT(at_end, 20);
}

} // namespace
} // namespace cede
