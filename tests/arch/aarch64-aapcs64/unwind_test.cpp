// SPDX-License-Identifier: MIT
// Rows: D-15
// Unwinding from every instruction of both forms of the switch, stopped there by a breakpoint
// instruction.
#include "../../../arch/arch.h"
#include "../../../src/os/memory.h"
#include "support/probe.h"

#include <cede/process.h>

#include <gtest/gtest.h>

#include <algorithm>
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

[[gnu::noinline, gnu::section("cede_traced")]] void traced_transfer(Process& from, Process& to,
                                                                    std::uint64_t) {
  transfer(from, to);
}

template <class Routine>
std::uint32_t* code_of(Routine* routine) {
  return reinterpret_cast<std::uint32_t*>(routine);
}

// What a walk up the stack has seen.
struct Walk {
  std::uintptr_t outermost = 0; // 0 if it found no end
  bool met_probe = false;
  std::uint64_t kept[std::size(arch::Target::kSavedRegisters)] = {}; // as the probe had them
  std::uint64_t last[std::size(arch::Target::kSavedRegisters)] = {}; // in the frame before
  bool has_invented = false; // registers of a process that hasn't started
};

// DWARF's numbers of the first registers of Target::kSavedRegisters: x19 to x29, d8 to d15.
int number_of(std::size_t kept) {
  return static_cast<int>(kept < 11 ? 19 + kept : 72 - 11 + kept);
}
constexpr std::size_t kUnwound = 19;

_Unwind_Reason_Code see(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  const std::uintptr_t frame = _Unwind_GetIP(context);
  if (frame == 0)
    return _URC_NO_REASON; // this is how the unwinder shows the end
  walk.outermost = frame;
  // Who is about to start a process has loaded nothing for it but sp and what travels.
  const bool is_about_to_start = frame == reinterpret_cast<std::uintptr_t>(cede_entry);
  for (std::size_t i = 0; i < kUnwound; ++i) {
    const std::uint64_t value = _Unwind_GetGR(context, number_of(i));
    const bool travels = number_of(i) == 19 || number_of(i) == 29;
    walk.has_invented |= is_about_to_start && !travels && value != walk.last[i];
    walk.last[i] = value;
  }
  const std::uintptr_t probe = reinterpret_cast<std::uintptr_t>(cede_probe);
  if (!walk.met_probe && frame >= probe && frame < probe + 1024) {
    walk.met_probe = true;
    std::copy_n(walk.last, kUnwound, walk.kept);
  }
  return _URC_NO_REASON;
}

Walk walk() {
  Walk seen;
  if (_Unwind_Backtrace(see, &seen) != _URC_END_OF_STACK)
    seen.outermost = 0;
  return seen;
}

// Which seed the probe runs with on each side; they differ in the rounding mode.
constexpr std::uint64_t kSeedOfMain = 8, kSeedOfProcess = 17;

bool has_values_of(const Walk& seen, std::uint64_t seed) {
  for (std::size_t i = 0; i < kUnwound; ++i)
    if (seen.kept[i] != (seed + (i << 16)) * 0x0101010101010101)
      return false;
  return true;
}

// Stops once at each instruction that it was given and notes where the stack ended there: m in
// main, p at a process's entry, l in cede_leave, which has no frame to return to, ? elsewhere; r if
// the registers that the probe had filled on that stack were other than it left them, u if a
// register was found on a stack where nobody has saved any.
class Tracer {
public:
  Tracer() : end_of_main_(walk().outermost) {
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
    active->note(walk());
  }

  void note(const Walk& seen) {
    const auto* end = reinterpret_cast<std::uint32_t*>(seen.outermost);
    char letter = '?';
    if (seen.outermost == end_of_main_)
      letter = 'm';
    else if (end >= code_of(cede_entry) && end < code_of(cede_leave))
      letter = 'p';
    else if (end >= code_of(cede_leave) && end < code_of(cede_leave) + 32)
      letter = 'l';
    if (seen.met_probe && !has_values_of(seen, letter == 'm' ? kSeedOfMain : kSeedOfProcess))
      letter = 'r';
    if (seen.has_invented)
      letter = 'u';
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

void transfer_by_call(Process& from, Process& to, std::uint64_t) {
  detail::transfer_out_of_line(execution_of(from), execution_of(to), nullptr);
}

void transfer_by_probe(Process& from, Process& to, std::uint64_t seed) {
  execution_of(from).gate = detail::Gate::suspended;
  execution_of(to).gate = detail::Gate::running;
  EXPECT_EQ(cede_probe(&execution_of(from).context, &execution_of(to).context, seed), 0u);
}

// Where a process will start, leaves what is no register's value.
void dirty_stack_of(Process& created) {
  auto* record = static_cast<std::uint64_t*>(execution_of(created).context.sp);
  std::fill(record - 200, record, 0xdddddddddddddddd);
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
        change(process, main, kSeedOfProcess);
      return Next{main};
    }).value();
    dirty_stack_of(process);
    change(main, process, kSeedOfMain);
    EXPECT_EQ(tracer.take_ends(), "mpm") << "from main to a new process and back";
    change(main, process, kSeedOfMain);
  }
  EXPECT_EQ(tracer.take_ends(), "p") << "forced unwinding";
}

TEST(AArch64Unwind, finds_the_end_of_the_stack_at_every_instruction_of_the_out_of_line_form) {
  Tracer tracer;
  tracer.add(code_of(cede_switch), code_of(cede_entry));
  trace_both_directions(tracer, transfer_by_probe);
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
  tracer.add(code_of(cede_entry), code_of(cede_leave));
  tracer.add(code_of(cede_leave), code_of(cede_leave) + (CEDE_PRESERVE_FPENV ? 13 : 7));
  transfer_by_call(main, process, 0);
  EXPECT_EQ(tracer.take_ends(), "plm") << "from the entry, through the leave, to main";
  EXPECT_GT(tracer.count(), 12);
}

} // namespace
} // namespace cede
