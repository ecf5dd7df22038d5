// SPDX-License-Identifier: MIT
// Field reports: 34
// Frames of OS signals: the smallest stack holds one, and the handler of faults has room for its
// own.
#include <gtest/gtest.h>

#if !__has_include(<sys/auxv.h>)
TEST(SignalFrame, fits_the_smallest_stack) {
  GTEST_SKIP() << "OS signals are POSIX's";
}
#else
#include "support/environment.h"
#include "support/in_process.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <sys/auxv.h>
#include <sys/time.h>
#include <thread>
#include <vector>

namespace cede {
namespace {

volatile std::sig_atomic_t alarms = 0;

void install(int flags) {
  struct sigaction action = {};
  action.sa_handler = [](int) { alarms = alarms + 1; };
  action.sa_flags = flags;
  sigaction(SIGALRM, &action, nullptr);
}

// With vector registers in use, so that the kernel saves them all.
[[gnu::noinline]] double spin_until_alarms(int wanted) {
  std::vector<double> numbers(64, 1.5);
  const std::time_t limit = std::time(nullptr) + 60;
  while (alarms < wanted && std::time(nullptr) < limit)
    for (double& number : numbers)
      number = number * 1.0000001 + 0.5;
  return numbers[7];
}

TEST(SignalFrame, fits_the_smallest_stack_a_thousand_times) {
  const int wanted = test::scaled(1000, 50);
  std::vector<std::byte> memory(4096 + kMinimumStackBytes, std::byte{0x77});
  install(0); // on the stack that runs
  alarms = 0;
  const itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  test::in_process({.memory = std::span(memory).subspan(4096)},
                   [&] { EXPECT_GT(spin_until_alarms(wanted), 0); });
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  EXPECT_GE(alarms, wanted);
  EXPECT_EQ(std::count(memory.begin(), memory.begin() + 4096, std::byte{0x77}), 4096);
}

std::size_t bytes_of_fault_stack() {
  stack_t present = {};
  sigaltstack(nullptr, &present);
  return present.ss_flags & SS_DISABLE ? 0 : present.ss_size;
}

TEST(FaultStack, has_room_for_every_register_and_the_report) {
  if (test::kAddressSanitizer || test::kThreadSanitizer)
    GTEST_SKIP() << "the sanitizer brings its own";
  std::size_t bytes = 0;
  std::thread([&] {
    EXPECT_EQ(bytes_of_fault_stack(), 0u);
    test::in_process([] {});
    bytes = bytes_of_fault_stack();
  }).join();
  EXPECT_GE(bytes, 64u * 1024);
#ifdef AT_MINSIGSTKSZ
  EXPECT_GE(bytes, getauxval(AT_MINSIGSTKSZ) + 32 * 1024);
#endif
}

TEST(FaultStack, of_the_users_is_left_in_place) {
  std::thread([] {
    std::vector<char> memory(65536);
    stack_t theirs = {};
    theirs.ss_sp = memory.data();
    theirs.ss_size = memory.size();
    stack_t earlier = {};
    sigaltstack(&theirs, &earlier);
    test::in_process([] {});
    stack_t present = {};
    sigaltstack(nullptr, &present);
    EXPECT_EQ(present.ss_sp, theirs.ss_sp);
    sigaltstack(&earlier, nullptr);
  }).join();
}

TEST(FaultStack, has_a_guard_of_its_own) {
  if (test::kAddressSanitizer || test::kThreadSanitizer)
    GTEST_SKIP() << "the sanitizer brings its own";
  auto child = [] {
    test::in_process([] {});
    stack_t present = {};
    sigaltstack(nullptr, &present);
    static_cast<volatile char*>(present.ss_sp)[-1] = 1;
  };
  EXPECT_EXIT(child(), testing::KilledBySignal(SIGSEGV), "");
}

} // namespace
} // namespace cede
#endif
