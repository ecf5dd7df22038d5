// SPDX-License-Identifier: MIT
// Rows: D-15
// Unwinding from every instruction of both forms of the switch, stopped there by a breakpoint
// instruction. Empty elsewhere, since it writes AArch64 instructions.
#if defined(__aarch64__)
#include "../../arch/arch.h"
#include "../../src/os/memory.h"

#include <cede/process.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <span>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>
#include <vector>

// The linker's names for the bounds of the section.
extern "C" std::uint32_t __start_cede_traced[], __stop_cede_traced[];

namespace cede {
namespace {

[[gnu::noinline, gnu::section("cede_traced")]] void traced_transfer(Process& from, Process& to) {
  transfer(from, to);
}

template <class Routine>
std::uint32_t* code_of(Routine* routine) {
  return reinterpret_cast<std::uint32_t*>(routine);
}

// The outermost frame, or 0 if the walk found no end. The unwinder shows the end itself as one more
// frame, at 0.
std::uintptr_t outermost() {
  struct Walk {
    std::uintptr_t last = 0;
    int frames = 0;
  } walk;
  const auto step = [](_Unwind_Context* context, void* argument) {
    auto& walk = *static_cast<Walk*>(argument);
    if (const std::uintptr_t frame = _Unwind_GetIP(context); frame != 0)
      walk.last = frame;
    return ++walk.frames < 100 ? _URC_NO_REASON : _URC_NORMAL_STOP;
  };
  return _Unwind_Backtrace(step, &walk) == _URC_END_OF_STACK ? walk.last : 0;
}

// Stops once at each instruction that it was given and notes where the stack ended there: m in
// main, p at a process's entry, l in cede_leave, which has no frame to return to, ? elsewhere.
class Tracer {
public:
  Tracer() : end_of_main_(outermost()) {
    active = this;
    struct sigaction action {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before_);
  }
  ~Tracer() {
    for (const Stop& stop : stops_)
      write(stop.at, stop.instruction);
    sigaction(SIGTRAP, &before_, nullptr);
  }

  void add(std::uint32_t* begin, std::uint32_t* end) {
    for (std::uint32_t* at = begin; at != end; ++at) {
      stops_.push_back({at, *at});
      write(at, 0xd4200000); // brk 0
    }
  }
  // One letter for each run of equal ends.
  std::string take_ends() { return std::exchange(ends_, ""); }
  int count() const { return count_; }

private:
  struct Stop {
    std::uint32_t* at;
    std::uint32_t instruction;
  };

  static void write(std::uint32_t* at, std::uint32_t instruction) {
    const std::size_t page = os::page_bytes();
    auto* start =
        reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(at) & ~std::uintptr_t{page - 1});
    mprotect(start, page, PROT_READ | PROT_WRITE | PROT_EXEC);
    *at = instruction;
    __builtin___clear_cache(reinterpret_cast<char*>(at), reinterpret_cast<char*>(at + 1));
    mprotect(start, page, PROT_READ | PROT_EXEC);
  }

  static void on_trap(int, siginfo_t*, void* context) {
    auto* at = reinterpret_cast<std::uint32_t*>(static_cast<ucontext_t*>(context)->uc_mcontext.pc);
    for (const Stop& stop : active->stops_)
      if (stop.at == at)
        write(at, stop.instruction);
    active->note(outermost());
  }

  void note(std::uintptr_t end) {
    const auto* at = reinterpret_cast<std::uint32_t*>(end);
    char letter = '?';
    if (end == end_of_main_)
      letter = 'm';
    else if (at >= code_of(cede_entry) && at < code_of(cede_entry) + 16)
      letter = 'p';
    else if (at >= code_of(cede_leave) && at < code_of(cede_entry))
      letter = 'l';
    ++count_;
    if (ends_.empty() || ends_.back() != letter)
      ends_ += letter;
  }

  static inline Tracer* active = nullptr;

  std::uintptr_t end_of_main_;
  struct sigaction before_;
  std::vector<Stop> stops_;
  std::string ends_;
  int count_ = 0;
};

// A thread's first switch goes out of line.
void make_thread_known() {
  Process main, process;
  newprocess(process, [&](void*) { return Next{main}; }).value();
  transfer(main, process);
}

void transfer_by_call(Process& from, Process& to) {
  detail::transfer_out_of_line(execution_of(from), execution_of(to), nullptr);
}

// Traces two executions that switch to each other by `change` until the stack of the second is
// unwound. What was stopped at once is not again, so each part is seen on first use.
template <class Change>
void trace_both_directions(Tracer& tracer, Change change) {
  Process main;
  {
    Process process;
    newprocess(process, [&](void*) {
      for (;;)
        change(process, main);
      return Next{main};
    }).value();
    change(main, process);
    EXPECT_EQ(tracer.take_ends(), "mpm") << "from main to a new process and back";
    change(main, process);
  }
  EXPECT_EQ(tracer.take_ends(), "p") << "forced unwinding";
}

TEST(AArch64Unwind, finds_the_end_of_the_stack_at_every_instruction_of_the_out_of_line_form) {
  Tracer tracer;
  tracer.add(code_of(cede_switch), code_of(cede_leave));
  trace_both_directions(tracer, transfer_by_call);
  EXPECT_GT(tracer.count(), 50);
}

TEST(AArch64Unwind, finds_the_end_of_the_stack_at_every_instruction_of_the_inline_form) {
#if !CEDE_INLINE_SWITCH
  GTEST_SKIP() << "built without the inline form";
#endif
  Tracer tracer;
  make_thread_known();
  tracer.add(__start_cede_traced, __stop_cede_traced);
  trace_both_directions(tracer, traced_transfer);
  EXPECT_GT(tracer.count(), 20);
}

TEST(AArch64Unwind, finds_the_end_of_the_stack_at_every_instruction_of_the_entry_and_the_leave) {
  Process main, process;
  newprocess(process, [&](void*) { return Next{main}; }).value();
  Tracer tracer;
  tracer.add(code_of(cede_leave), code_of(cede_entry) + 9);
  transfer_by_call(main, process);
  EXPECT_EQ(tracer.take_ends(), "plm") << "from the entry, through the leave, to main";
  EXPECT_GT(tracer.count(), 12);
}

} // namespace
} // namespace cede
#endif
