// SPDX-License-Identifier: MIT
// Rows: D-15 X-40
// Field reports: 13
// Branch-target marks and pointer authentication, enforced by the processor. On one that
// lacks them the tests are skipped.
#include "../../../arch/arch.h"
#include "../../../src/os/memory.h"

#include <cede/process.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <span>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace cede {
namespace {

// Linux, asm/hwcap.h and asm/mman.h.
constexpr unsigned long kHasPac = 1ul << 30;
constexpr unsigned long kHasBti = 1ul << 17;
constexpr int kGuarded = 0x10;

constexpr std::uint32_t kNop = 0xd503201f, kBtiC = 0xd503245f, kBtiJ = 0xd503249f;

bool has_bti() {
  return (getauxval(AT_HWCAP2) & kHasBti) != 0;
}
bool has_pac() {
  return (getauxval(AT_HWCAP) & kHasPac) != 0;
}

// Removes landing pad `number` of `code`, if there is one.
void remove_pad(std::span<std::uint32_t> code, std::size_t number) {
  for (std::uint32_t& instruction : code)
    if ((instruction == kBtiC || instruction == kBtiJ) && number-- == 0)
      instruction = kNop;
}

void guard(void* code) {
  __builtin___clear_cache(static_cast<char*>(code), static_cast<char*>(code) + os::page_bytes());
  if (mprotect(code, os::page_bytes(), PROT_READ | PROT_EXEC | kGuarded) != 0)
    _exit(3);
}

void take_turns(Process& from, Process& to) {
  execution_of(from).gate = detail::Gate::suspended;
  execution_of(to).gate = detail::Gate::running;
}

// The routines of switch.S on a page where a branch has to arrive at a landing pad. The program's
// own pages are not such: the linker marks it only if the C library's start files are marked too.
class GuardedRoutines {
public:
  static constexpr std::size_t kNoPad = 99;

  explicit GuardedRoutines(std::size_t without_pad) {
    void* page =
        mmap(nullptr, os::page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    code_ = static_cast<std::uint32_t*>(page);
    const std::size_t words = (address(cede_leave) - address(cede_switch)) / 4 + 16;
    std::memcpy(code_, reinterpret_cast<void*>(cede_switch), words * 4);
    // ldr x16, the third word; br x16
    const std::uint32_t far_jump[] = {0x58000050, 0xd61f0200};
    std::memcpy(code_ + words, far_jump, sizeof far_jump);
    const std::uintptr_t throws = address(cede_throw_unwind);
    std::memcpy(code_ + words + 2, &throws, sizeof throws);
    for (std::size_t i = 0; i < (address(cede_entry) - address(cede_switch)) / 4; ++i)
      if (is_jump_to_throw(i))
        code_[i] = 0x14000000 | static_cast<std::uint32_t>(words - i);
    remove_pad({code_, words}, without_pad);
    guard(code_);
  }

  void transfer(Process& from, Process& to) {
    take_turns(from, to);
    copy_of(cede_switch)(&execution_of(from).context, &execution_of(to).context, nullptr);
  }
  void leave(Process& to) { copy_of(cede_leave)(&execution_of(to).context, nullptr); }
  void start_here(Process& created) {
    execution_of(created).context.resume = reinterpret_cast<void*>(copy_of(cede_entry));
  }

private:
  template <class Routine>
  static std::uintptr_t address(Routine* routine) {
    return reinterpret_cast<std::uintptr_t>(routine);
  }
  template <class Routine>
  Routine* copy_of(Routine* routine) const {
    return reinterpret_cast<Routine*>(reinterpret_cast<std::uintptr_t>(code_) + address(routine) -
                                      address(cede_switch));
  }
  bool is_jump_to_throw(std::size_t i) const {
    const auto distance = static_cast<std::int32_t>(code_[i] << 6) >> 4;
    return code_[i] >> 26 == 5 &&
           address(cede_switch) + 4 * i + static_cast<std::intptr_t>(distance) ==
               address(cede_throw_unwind);
  }

  std::uint32_t* code_;
};

// Arrives at each of the five pads, in a program of its own that ends here.
[[noreturn]] void arrive_everywhere(std::size_t without_pad) {
  GuardedRoutines code(without_pad);
  Process main, leaver;
  bool unwound = false;
  {
    Process worker;
    newprocess(worker, [&](void*) {
      struct AtExit {
        bool& flag;
        ~AtExit() { flag = true; }
      } at_exit{unwound};
      for (;;)
        code.transfer(worker, main);
      return Next{main};
    }).value();
    code.start_here(worker);
    code.transfer(main, worker);
    code.transfer(main, worker);
  }
  newprocess(leaver, [&](void*) {
    take_turns(leaver, main);
    code.leave(main);
    return Next{main};
  }).value();
  code.start_here(leaver);
  code.transfer(main, leaver);
  _exit(unwound ? 0 : 1);
}

TEST(AArch64ProtectionDeathTest, the_routines_run_on_a_page_that_demands_landing_pads) {
  if (!has_bti())
    GTEST_SKIP() << "this processor has no branch target identification";
  EXPECT_EXIT(arrive_everywhere(GuardedRoutines::kNoPad), testing::ExitedWithCode(0), "");
}

TEST(AArch64ProtectionDeathTest, each_landing_pad_is_needed) {
  if (!has_bti())
    GTEST_SKIP() << "this processor has no branch target identification";
  for (std::size_t pad = 0; pad < 5; ++pad)
    EXPECT_EXIT(arrive_everywhere(pad), testing::KilledBySignal(SIGILL), "") << "pad " << pad;
}

#if CEDE_INLINE_SWITCH && defined(__ARM_FEATURE_BTI_DEFAULT)
// Alone on its page.
[[gnu::noinline, gnu::section("cede_guarded"), gnu::aligned(4096)]] void
guarded_transfer(Process& from, Process& to) {
  transfer(from, to);
}
[[gnu::used, gnu::section("cede_guarded"), gnu::aligned(4096)]] void behind_guarded_transfer() {}

[[noreturn]] void arrive_inline(bool with_pads) {
  void* page = reinterpret_cast<void*>(guarded_transfer);
  if (!with_pads) {
    if (mprotect(page, os::page_bytes(), PROT_READ | PROT_WRITE) != 0)
      _exit(3);
    // The function's own pad stays.
    remove_pad({static_cast<std::uint32_t*>(page) + 1, os::page_bytes() / 4 - 1}, 1);
  }
  guard(page);
  Process main;
  {
    Process worker;
    newprocess(worker, [&](void*) {
      guarded_transfer(worker, main);
      return Next{main};
    }).value();
    transfer(main, worker);
    guarded_transfer(main, worker);
    newprocess(worker, [&](void*) {
      guarded_transfer(worker, main);
      return Next{main};
    }).value();
    guarded_transfer(main, worker);
  }
  _exit(0);
}

TEST(AArch64ProtectionDeathTest, the_inline_form_runs_on_a_page_that_demands_landing_pads) {
  if (!has_bti() || os::page_bytes() != 4096)
    GTEST_SKIP() << "no branch target identification, or pages of another size than aligned for";
  EXPECT_EXIT(arrive_inline(true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(arrive_inline(false), testing::KilledBySignal(SIGILL), "");
}
#endif

// A process that was suspended out of line, and its frame.
struct Parked {
  Process main, process;

  Parked() {
    newprocess(process, [this](void*) {
      detail::transfer_out_of_line(execution_of(process), execution_of(main), nullptr);
      return Next{main};
    }).value();
    transfer(main, process);
  }
  arch::SwitchFrame& frame() {
    return *static_cast<arch::SwitchFrame*>(execution_of(process).context.sp);
  }
};

TEST(AArch64Protection, the_parked_return_address_is_signed) {
  if (!has_pac())
    GTEST_SKIP() << "this processor has no pointer authentication";
  // A signature may be all zeros by chance, but not that of eight.
  std::vector<Parked> parked(8);
  std::uintptr_t signatures = 0;
  for (Parked& one : parked)
    signatures |= reinterpret_cast<std::uintptr_t>(one.frame().return_address) >> 48;
  EXPECT_NE(signatures, 0u);
}

[[noreturn]] void reached() {
  _exit(0);
}

bool died_of_a_wild_address(int status) {
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGILL);
}

TEST(AArch64ProtectionDeathTest, a_replaced_return_address_is_not_followed) {
  if (!has_pac())
    GTEST_SKIP() << "this processor has no pointer authentication";
  auto go_on_with_replaced_address = [] {
    Parked parked;
    parked.frame().return_address = reinterpret_cast<void*>(reached);
    transfer(parked.main, parked.process);
  };
  // Where it goes instead has no mapping, or the authentication itself traps.
  EXPECT_EXIT(go_on_with_replaced_address(), died_of_a_wild_address, "");
}

} // namespace
} // namespace cede
