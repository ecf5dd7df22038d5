// SPDX-License-Identifier: MIT
// Rows: D-14 X-40
// Field reports: 4 5
// What is particular to AArch64's registers: x18, and every register dirtied by name.
#include "../../../arch/arch.h"
#include "support/pressure.h"

#include <cede/process.h>

#include <gtest/gtest.h>

namespace cede {
namespace {

#define CALLER_SAVED                                                                               \
  "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",       \
      "x17", "x18", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",    \
      "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31",   \
      "cc", "memory"
#define CALLEE_SAVED                                                                               \
  "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v8", "v9", "v10", "v11", "v12",  \
      "v13", "v14", "v15"

// Calls cede_switch with this value in x18; returns what is in x18 when it comes back.
CEDE_NOINLINE std::uint64_t switch_with_x18(Process& from, Process& to, std::uint64_t value) {
  execution_of(from).gate = detail::Gate::suspended;
  execution_of(to).gate = detail::Gate::running;
  void* const from_context = &execution_of(from).context;
  void* const to_context = &execution_of(to).context;
  // A call between the next line and the instruction would change the registers.
  register void* first asm("x0") = from_context;
  register void* second asm("x1") = to_context;
  register void* word asm("x2") = nullptr;
  asm volatile("mov x18, %[value]\n\t"
               "bl cede_switch\n\t"
               "mov %[value], x18"
               : [value] "+r"(value), "+r"(first), "+r"(second), "+r"(word)
               :
               : CALLER_SAVED);
  return value;
}

// Leaves nothing as it was but sp, x29 and x19, which no compiler can be told of.
CEDE_ALWAYS_INLINE void dirty_every_register() {
  asm volatile(
      ".irp number, "
      "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,20,21,22,23,24,25,26,27,28,30\n\t"
      "mvn x\\number, xzr\n\t"
      ".endr\n\t"
      ".irp number, "
      "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
      "movi v\\number\\().16b, 0x5a\n\t"
      ".endr"
      :
      :
      : "x0", "x1", "x2", CALLER_SAVED, CALLEE_SAVED);
}

TEST(AArch64Registers, x18_stays_with_the_thread) {
  Process main, worker;
  std::uint64_t seen = 0;
  newprocess(worker, [&](void*) {
    seen = switch_with_x18(worker, main, 0xaaaa);
    return Next{main};
  }).value();
  EXPECT_EQ(switch_with_x18(main, worker, 0x1111), 0xaaaau);
  switch_with_x18(main, worker, 0xbbbb);
  EXPECT_EQ(seen, 0xbbbbu);
}

TEST(AArch64Registers, live_values_survive_a_process_that_dirties_each_of_them) {
  Process main, worker, vandal;
  std::uint64_t answer = 0;
  newprocess(worker, [&](void*) {
    answer = test::hold(3, [&] { transfer(worker, vandal); });
    return Next{main};
  }).value();
  newprocess(vandal, [&](void*) {
    for (;;) {
      dirty_every_register();
      transfer(vandal, worker);
    }
    return Next{main};
  }).value();
  transfer(main, worker);
  EXPECT_EQ(answer, test::expected_of_hold(3));
}

} // namespace
} // namespace cede
