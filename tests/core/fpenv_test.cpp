// SPDX-License-Identifier: MIT
// Rows: D-14 P-05 P-06
// Field reports: 2 4
// The floating-point environment belongs to the process, unless the library was built without it.
#include "support/environment.h"

#include <cede/process.h>

#include <cfenv>
#include <cmath>
#include <gtest/gtest.h>
#include <string_view>
#include <vector>

namespace cede::test {
namespace {

class Rounding : public testing::Test {
protected:
  void SetUp() override {
    if (std::string_view(CEDE_TARGET) == "generic-ucontext" && !CEDE_PRESERVE_FPENV)
      GTEST_SKIP() << "swapcontext always keeps it";
  }
  void TearDown() override { std::fesetround(FE_TONEAREST); }
};

// What the mode in force does, so that it isn't only a number.
int mode_by_arithmetic() {
  // All of it volatile: a compiler that believes in the default mode may take a sign out of a
  // quotient.
  volatile double one = 1, minus_one = -1, three = 3;
  const volatile double third = one / three, minus_third = minus_one / three;
  if (third == -minus_third)
    return third * 3 == 1 ? FE_TONEAREST : FE_TOWARDZERO;
  return third > -minus_third ? FE_UPWARD : FE_DOWNWARD;
}

CEDE_NOINLINE void expect_mode(int mode) {
  EXPECT_EQ(std::fegetround(), mode);
  if (!on_valgrind()) { // which rounds to nearest, whatever the mode
    EXPECT_EQ(mode_by_arithmetic(), mode);
  }
}

#if CEDE_PRESERVE_FPENV

TEST_F(Rounding, of_a_new_process_is_the_default_whoever_made_it) {
  Process main, worker, inner;
  std::fesetround(FE_UPWARD);
  newprocess(worker, [&](void*) {
    expect_mode(FE_TONEAREST);
    std::fesetround(FE_DOWNWARD);
    newprocess(inner, [&](void*) {
      expect_mode(FE_TONEAREST);
      return Next{worker};
    }).value();
    transfer(worker, inner);
    expect_mode(FE_DOWNWARD);
    return Next{main};
  }).value();
  transfer(main, worker);
  expect_mode(FE_UPWARD);
}

TEST_F(Rounding, of_each_process_survives_every_form_of_transfer) {
  Process main, a, b;
  auto body = [&](Process& self, Process& next, int mode) {
    return [&, mode](void*) {
      std::fesetround(mode);
      for (;;) {
        transfer(self, next);
        expect_mode(mode);
        try {
          throw 1;
        } catch (int) {
          transfer(self, next); // never inlined in a catch block
          expect_mode(mode);
        }
      }
      return Next{main};
    };
  };
  newprocess(a, body(a, b, FE_UPWARD)).value();
  newprocess(b, body(b, main, FE_TOWARDZERO)).value();
  std::fesetround(FE_DOWNWARD);
  for (int i = 0; i < 10; ++i) {
    transfer(main, a);
    expect_mode(FE_DOWNWARD);
  }
}

TEST_F(Rounding, is_that_of_who_is_entered_after_an_end_or_a_destruction) {
  Process main;
  for (bool destroyed : {false, true}) {
    Process worker;
    newprocess(worker, [&](void*) {
      std::fesetround(FE_UPWARD);
      transfer(worker, main);
      return Next{main};
    }).value();
    transfer(main, worker);
    if (!destroyed)
      transfer(main, worker);
    expect_mode(FE_TONEAREST);
  }
  expect_mode(FE_TONEAREST);
}

#else

TEST_F(Rounding, is_shared_by_all_processes_in_a_build_without_it) {
  Process main, worker;
  std::fesetround(FE_UPWARD);
  newprocess(worker, [&](void*) {
    expect_mode(FE_UPWARD);
    std::fesetround(FE_DOWNWARD);
    return Next{main};
  }).value();
  transfer(main, worker);
  expect_mode(FE_DOWNWARD);
}

#endif

// The flags of the arithmetic that was done are the thread's, like errno.
TEST(ExceptionFlags, are_not_switched) {
  if (on_valgrind())
    GTEST_SKIP() << "valgrind has no status flags";
  Process main, worker;
  newprocess(worker, [&](void*) {
    std::feraiseexcept(FE_INEXACT);
    return Next{main};
  }).value();
  transfer(main, worker);
  newprocess(worker, [&](void*) {
    std::feraiseexcept(FE_INEXACT);
    return Next{main};
  }).value();
  if (std::string_view(CEDE_TARGET) == "generic-ucontext")
    GTEST_SKIP() << "swapcontext switches them";
  std::feclearexcept(FE_ALL_EXCEPT);
  transfer(main, worker);
  EXPECT_TRUE(std::fetestexcept(FE_INEXACT));
}

} // namespace
} // namespace cede::test
