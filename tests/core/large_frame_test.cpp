// SPDX-License-Identifier: MIT
// Field reports: 32
// The neighbour of a stack that overflows by a large frame keeps its content: seen by a parent that
// shares the memory with the child that dies.
#include <gtest/gtest.h>

#if !__has_include(<sys/wait.h>)
TEST(LargeFrame, leaves_the_neighbours_pattern_intact) {
  GTEST_SKIP() << "needs memory shared with a child (fork)";
}
#else
#include "support/environment.h"

#include <cede/process.h>

#include <algorithm>
#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cede {
namespace {

[[gnu::noinline]] char write_far_end_of_a_large_frame() {
  volatile char big[60000];
  asm volatile("" : : "r"(&big[0]) : "memory"); // else clang keeps the one byte that is used
  big[0] = 1;
  return big[0];
}

[[gnu::noinline]] char with_little_left(int depth) {
  volatile char frame[200] = {};
  if (stack_limits().remaining() < 4096)
    return write_far_end_of_a_large_frame();
  frame[0] = with_little_left(depth + 1);
  return frame[0];
}

struct Shared {
  bool adjacent;
  std::size_t changed;
};

std::byte* pattern_low;
std::byte* pattern_high;
Shared* shared;

bool is_pattern(std::byte b) {
  return b == std::byte{0x3c};
}

void count_changed(int) {
  shared->changed = static_cast<std::size_t>((pattern_high - pattern_low) -
                                             std::count_if(pattern_low, pattern_high, is_pattern));
  signal(SIGSEGV, SIG_DFL);
}

[[noreturn]] void overflow_beside_a_pattern() {
  configure_stacks({.report_overflow = false});
  stack_t alternate = {};
  alternate.ss_size = 256 * 1024;
  alternate.ss_sp = new char[alternate.ss_size];
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = count_changed;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  Process main, lower, upper;
  StackLimits limits;
  // The lower slot comes first, and its pattern is all that no frame is on yet.
  newprocess(lower, [&](void*) {
    limits = stack_limits();
    pattern_low = limits.low;
    pattern_high = static_cast<std::byte*>(__builtin_frame_address(0)) - 4096;
    std::fill(pattern_low, pattern_high, std::byte{0x3c});
    return transfer(lower, main), Next{main};
  }).value();
  newprocess(upper, [&](void*) {
    shared->adjacent =
        stack_limits().low - limits.high < 80 * 1024 && limits.low < stack_limits().low;
    return with_little_left(0), Next{main};
  }).value();
  transfer(main, lower);
  transfer(main, upper);
  _exit(1);
}

TEST(LargeFrame, leaves_the_neighbours_pattern_intact) {
  if (test::is_observed())
    GTEST_SKIP() << "frames are laid out otherwise, and the pattern is below the stack pointer";
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared = new (memory) Shared{false, 1};
  const pid_t child = fork();
  if (child == 0)
    overflow_beside_a_pattern();
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(test::died_of_fault(status));
  EXPECT_TRUE(shared->adjacent);
  EXPECT_EQ(shared->changed, 0u);
  munmap(memory, sizeof(Shared));
}

} // namespace
} // namespace cede
#endif
