// SPDX-License-Identifier: MIT
// Field reports: 33
// Faults that are no overflow reach whoever handled them before.
#include <gtest/gtest.h>

#if !__has_include(<sys/wait.h>)
TEST(FaultChain, passes_other_faults_to_the_earlier_handler) {
  GTEST_SKIP() << "OS signals are POSIX's";
}
#else
#include "support/environment.h"
#include "support/in_process.h"

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <unistd.h>

namespace cede {
namespace {

const std::uintptr_t kBadAddress = 0x40;

void hit_bad_address() {
  volatile std::uintptr_t address = kBadAddress;
  *reinterpret_cast<volatile char*>(address) = 1;
}

void install(void (*handler)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGUSR1);
  sigaction(SIGSEGV, &action, nullptr);
}

bool blocked(int number) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, number) == 1;
}

TEST(FaultChain, null_dereference_reaches_the_earlier_handler_with_its_siginfo) {
  auto child = [] {
    install([](int number, siginfo_t* info, void* context) {
      const bool same = number == SIGSEGV && info->si_code == SEGV_MAPERR && context != nullptr &&
                        info->si_addr == reinterpret_cast<void*>(kBadAddress);
      _exit(same && blocked(SIGUSR1) && blocked(SIGSEGV) ? 42 : 1);
    });
    test::in_process({.name = "faulter"}, hit_bad_address);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "^$");
}

TEST(FaultChain, handler_installed_by_signal_is_called) {
  auto child = [] {
    signal(SIGSEGV, [](int number) { _exit(number == SIGSEGV ? 42 : 1); });
    test::in_process(hit_bad_address);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "^$");
}

TEST(FaultChain, fault_with_the_default_action_ends_the_program_by_it) {
  auto child = [] {
    signal(SIGSEGV, SIG_DFL);
    test::in_process(hit_bad_address);
  };
  EXPECT_EXIT(child(), testing::KilledBySignal(SIGSEGV), test::all_printed("^"));
}

TEST(FaultChain, fault_cannot_be_ignored) {
  auto child = [] {
    signal(SIGSEGV, SIG_IGN);
    test::in_process(hit_bad_address);
  };
  EXPECT_EXIT(child(), testing::KilledBySignal(SIGSEGV), test::all_printed("^"));
}

TEST(FaultChain, signal_that_was_sent_can_be_ignored) {
  auto child = [] {
    signal(SIGSEGV, SIG_IGN);
    test::in_process([] { kill(getpid(), SIGSEGV); });
    _exit(42);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "^$");
}

TEST(FaultChain, signal_that_was_sent_reaches_the_handler_as_sent) {
  auto child = [] {
    install([](int, siginfo_t* info, void*) {
      _exit(info->si_code == SI_USER && info->si_pid == getpid() ? 42 : 1);
    });
    test::in_process([] { kill(getpid(), SIGSEGV); });
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "^$");
}

TEST(FaultChain, signal_that_was_sent_ends_the_program_by_default) {
  auto child = [] {
    signal(SIGSEGV, SIG_DFL);
    test::in_process([] { kill(getpid(), SIGSEGV); });
    _exit(1);
  };
  EXPECT_EXIT(child(), testing::KilledBySignal(SIGSEGV), test::all_printed("^"));
}

TEST(FaultChain, handler_for_one_call_is_called_once) {
  auto child = [] {
    install([](int, siginfo_t*, void*) { static_cast<void>(!write(2, "once.", 5)); }, SA_RESETHAND);
    test::in_process(hit_bad_address); // again when the handler returns
  };
  EXPECT_EXIT(child(), testing::KilledBySignal(SIGSEGV), test::all_printed("^once."));
}

TEST(FaultChain, handler_that_is_not_deferred_can_fault_itself) {
  auto child = [] {
    static volatile sig_atomic_t depth = 0;
    install(
        [](int, siginfo_t*, void*) {
          depth = depth + 1;
          if (depth == 2)
            _exit(42);
          hit_bad_address();
        },
        SA_NODEFER);
    test::in_process(hit_bad_address);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "^$");
}

sigjmp_buf back;

TEST(FaultChain, handler_may_leave_by_a_jump_and_fault_again) {
  auto child = [] {
    install([](int, siginfo_t*, void*) { siglongjmp(back, 1); });
    static volatile int caught = 0; // the fault is not where the compiler sees control leave
    test::in_process([] {
      caught = 0;
      while (caught < 3) {
        if (sigsetjmp(back, 1) == 0)
          hit_bad_address();
        caught = caught + 1;
      }
    });
    _exit(caught == 3 ? 42 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "^$");
}

TEST(FaultChain, fault_on_a_plain_threads_stack_reaches_the_earlier_handler) {
  auto child = [] {
    install([](int, siginfo_t*, void*) { _exit(42); });
    test::in_process([] {});
    hit_bad_address();
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "^$");
}

TEST(FaultChain, handler_is_not_replaced_when_the_report_is_off) {
  auto child = [] {
    configure_stacks({.report_overflow = false});
    install([](int, siginfo_t*, void*) {});
    test::in_process([] {});
    struct sigaction now = {};
    sigaction(SIGSEGV, nullptr, &now);
    _exit(now.sa_flags & SA_ONSTACK ? 1 : 42);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "^$");
}

} // namespace
} // namespace cede
#endif
