// SPDX-License-Identifier: MIT
// Rows: P-10
// Field reports: 25
// longjmp within one process. Compiled with -D_FORTIFY_SOURCE=3, whose longjmp refuses to jump up
// unless it finds an alternate stack in use that could explain it.
#include <cede/process.h>

#include <csetjmp>
#include <gtest/gtest.h>

#if _FORTIFY_SOURCE < 3
#error "this test is about fortified functions"
#endif

namespace cede::test {
namespace {

std::jmp_buf buffer;
volatile bool is_to_jump = true;
volatile int calls = 0;

CEDE_NOINLINE void jump_back(int levels) {
  if (levels == 0 && is_to_jump)
    std::longjmp(buffer, 42);
  if (levels > 0)
    jump_back(levels - 1);
  calls = calls + 1; // so that the calls stay calls
}

CEDE_NOINLINE int jump_over(int levels) {
  const int value = setjmp(buffer);
  if (value == 0)
    jump_back(levels);
  return value;
}

TEST(Longjmp, works_within_a_process) {
  Process main, worker;
  int before = 0, after = 0;
  newprocess(worker, [&](void*) {
    before = jump_over(3);
    transfer(worker, main);
    after = jump_over(3);
    return Next{main};
  }).value();
  transfer(main, worker);
  EXPECT_EQ(jump_over(3), 42);
  transfer(main, worker);
  EXPECT_EQ(before, 42);
  EXPECT_EQ(after, 42);
}

} // namespace
} // namespace cede::test
