// SPDX-License-Identifier: MIT
#include "stepper.h"

#include <algorithm>
#include <csignal>
#include <sys/ucontext.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>
#include <x86intrin.h>

namespace cede::test {
namespace {

constexpr unsigned long long kTrapFlag = 0x100;
constexpr std::size_t kMostSteps = 20000;

StepRange wanted;
std::vector<Step> steps; // never grows in the handler
std::vector<std::byte> handler_stack;
struct sigaction earlier_action;
stack_t earlier_stack;

struct Walk {
  Step* step;
  bool reached = false; // past the handler's own frames
};

_Unwind_Reason_Code look_at(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  Step& step = *walk.step;
  int is_exact = 0;
  Frame frame{};
  frame.ip = _Unwind_GetIPInfo(context, &is_exact);
  frame.sp = _Unwind_GetCFA(context);
  walk.reached = walk.reached || (is_exact && frame.ip == step.pc && frame.sp == step.sp);
  if (!walk.reached || frame.ip == 0) // libgcc shows the end of the stack as a frame of its own
    return _URC_NO_REASON;
  frame.function = function_of(is_exact ? frame.ip : frame.ip - 1);
  constexpr int kNumbers[] = {3, 6, 12, 13, 14, 15}; // DWARF's
  for (std::size_t i = 0; i < kKeptRegisters; ++i)
    frame.registers[i] = _Unwind_GetGR(context, kNumbers[i]);
  if (step.depth < Step::kMostFrames)
    step.frames[step.depth] = frame;
  step.last = frame;
  return ++step.depth < 200 ? _URC_NO_REASON : _URC_NORMAL_STOP; // an endless stack
}

bool is_wanted(std::uintptr_t pc, std::uintptr_t function) {
  return (pc >= wanted.begin && pc < wanted.end) ||
         (function != 0 && std::ranges::find(wanted.functions, function) != wanted.functions.end());
}

void on_step(int, siginfo_t*, void* argument) {
  auto* machine = static_cast<ucontext_t*>(argument);
  const auto& registers = machine->uc_mcontext.gregs;
  const auto pc = static_cast<std::uintptr_t>(registers[REG_RIP]);
  const std::uintptr_t function = function_of(pc);
  if (steps.size() == kMostSteps || !is_wanted(pc, function))
    return;
  Step& step = steps.emplace_back();
  step.pc = pc;
  step.function = function;
  step.sp = static_cast<std::uintptr_t>(registers[REG_RSP]);
  constexpr int kIndices[] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15};
  for (std::size_t i = 0; i < kKeptRegisters; ++i)
    step.registers[i] = static_cast<std::uint64_t>(registers[kIndices[i]]);
  // By the kernel, which says so when it is no pointer.
  iovec to{&step.context, sizeof step.context};
  iovec from{reinterpret_cast<void*>(registers[REG_RSI]), sizeof step.context};
  static_cast<void>(process_vm_readv(getpid(), &to, 1, &from, 1, 0));
  Walk walk{&step};
  step.reason = _Unwind_Backtrace(look_at, &walk);
}

volatile std::sig_atomic_t traps = 0;

} // namespace

std::uintptr_t function_of(std::uintptr_t ip) {
  // It looks for what a return address belongs to, so one byte before.
  return reinterpret_cast<std::uintptr_t>(
      _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(ip + 1)));
}

bool can_step() {
  struct sigaction action = {}, earlier;
  action.sa_handler = [](int) { traps = traps + 1; };
  sigaction(SIGTRAP, &action, &earlier);
  traps = 0;
  __writeeflags(__readeflags() | kTrapFlag);
  __writeeflags(__readeflags() & ~kTrapFlag);
  sigaction(SIGTRAP, &earlier, nullptr);
  return traps > 0;
}

void start_steps(const StepRange& range) {
  wanted = range;
  steps.clear();
  steps.reserve(kMostSteps);
  handler_stack.resize(256 * 1024);
  stack_t stack = {};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  sigaltstack(&stack, &earlier_stack);
  struct sigaction action = {};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGTRAP, &action, &earlier_action);
  __writeeflags(__readeflags() | kTrapFlag);
}

std::span<const Step> stop_steps() {
  __writeeflags(__readeflags() & ~kTrapFlag);
  sigaction(SIGTRAP, &earlier_action, nullptr);
  sigaltstack(&earlier_stack, nullptr);
  return steps;
}

} // namespace cede::test
