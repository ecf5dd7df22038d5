// SPDX-License-Identifier: MIT
// Rows: D-14 P-05 P-06
// Field reports: 2
// Every control bit of MXCSR and of the x87 unit belongs to the process; the status flags of
// neither are looked at.
#include "support/environment.h"

#include <cede/process.h>

#include <cstdint>
#include <gtest/gtest.h>
#include <xmmintrin.h>

namespace cede::test {
namespace {

struct Control {
  unsigned mxcsr;
  std::uint16_t x87;
  bool operator==(const Control&) const = default;
};

constexpr Control kDefault{0x1f80, 0x037f};

std::ostream& operator<<(std::ostream& out, const Control& control) {
  return out << std::hex << control.mxcsr << '/' << control.x87;
}

CEDE_NOINLINE Control control_now() {
  Control control{_mm_getcsr() & ~0x3fu, 0};
  asm volatile("fnstcw %0" : "=m"(control.x87));
  return control;
}

CEDE_NOINLINE void set_control(Control control) {
  _mm_setcsr(control.mxcsr);
  asm volatile("fldcw %0" : : "m"(control.x87));
}

// Each differs from the default in one field.
constexpr Control kControls[] = {
    {0x1f80 | 0x0040, 0x037f}, // denormals are zero
    {0x1f80 | 0x8000, 0x037f}, // flush to zero
    {0x1f80 | 0x2000, 0x037f}, // rounding
    {0x1f80 & ~0x80u, 0x037f}, // an unmasked exception
    {0x1f80, 0x007f},          // x87: single precision
    {0x1f80, 0x0b7f},          //      rounding
    {0x1f80, 0x037b},          //      an unmasked exception
};

TEST(ControlBits, belong_to_the_process_in_both_forms) {
  if (!CEDE_PRESERVE_FPENV)
    GTEST_SKIP() << "this library was built without them";
  if (on_valgrind())
    GTEST_SKIP() << "valgrind knows the rounding modes only";
  for (const Control& control : kControls) {
    Process main, worker;
    newprocess(worker, [&](void*) {
      EXPECT_EQ(control_now(), kDefault);
      set_control(control);
      transfer(worker, main);
      EXPECT_EQ(control_now(), control);
      detail::transfer_out_of_line(execution_of(worker), execution_of(main), nullptr);
      EXPECT_EQ(control_now(), control);
      return Next{main}; // and its end leaves them behind
    }).value();
    for (int i = 0; i < 3; ++i) {
      transfer(main, worker);
      EXPECT_EQ(control_now(), kDefault);
    }
    newprocess(worker, [&](void*) {
      EXPECT_EQ(control_now(), kDefault);
      set_control(control);
      transfer(worker, main);
      return Next{main};
    }).value();
    detail::transfer_out_of_line(execution_of(main), execution_of(worker), nullptr);
    EXPECT_EQ(control_now(), kDefault);
  }
  set_control(kDefault);
}

// Raises a status flag and goes back: by transfer(), out of line, or by ending.
enum class Return { users_call, out_of_line, end };

void raise_and_go_back(Return way, unsigned flag) {
  Process main, worker;
  newprocess(worker, [&](void*) {
    _mm_setcsr(_mm_getcsr() | flag);
    if (way == Return::users_call)
      transfer(worker, main);
    else if (way == Return::out_of_line)
      detail::transfer_out_of_line(execution_of(worker), execution_of(main), nullptr);
    return Next{main};
  }).value();
  transfer(main, worker);
}

TEST(StatusFlags, that_differ_load_nothing) {
  if (on_valgrind())
    GTEST_SKIP() << "valgrind has no status flags";
  raise_and_go_back(Return::users_call, 0); // this thread is known from here on
  for (Return way : {Return::users_call, Return::out_of_line, Return::end}) {
    for (unsigned flag = 1; flag < 0x40; flag <<= 1) {
      _mm_setcsr(kDefault.mxcsr);
      raise_and_go_back(way, flag);
      EXPECT_EQ(_mm_getcsr(), kDefault.mxcsr | flag) << "way " << static_cast<int>(way);
    }
  }
  _mm_setcsr(kDefault.mxcsr);
}

} // namespace
} // namespace cede::test
