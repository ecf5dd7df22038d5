// SPDX-License-Identifier: MIT
// Rows: D-05 D-14 P-06 X-40
// Field reports: 4 5
// More live values than registers, integers and doubles, over the transfer that users write: in the
// inline form the compiler has to spill them, in the other the switch has to keep them.
#include "../../src/core/sanitizers.h"
#include "support/pressure.h"
#include "support/probe.h"

#include <cede/process.h>

#include <gtest/gtest.h>

namespace cede {
namespace {

using test::expected_of_hold;
using test::hold;

TEST(LiveValues, survive_a_thousand_interleaved_transfers) {
  Process main, first, second;
  std::uint64_t first_answer = 0, second_answer = 0;
  newprocess(first, [&](void*) {
    first_answer = hold(1, [&] { transfer(first, second); });
    return Next{second};
  }).value();
  newprocess(second, [&](void*) {
    second_answer = hold(1'000'000, [&] { transfer(second, first); });
    return Next{main};
  }).value();
  transfer(main, first);
  EXPECT_EQ(first_answer, expected_of_hold(1));
  EXPECT_EQ(second_answer, expected_of_hold(1'000'000));
}

// The probe leaves by the out-of-line form with a value of its own in every callee-saved register,
// and arrives with those of the work.
TEST(LiveValues, survive_switches_to_one_that_fills_every_callee_saved_register) {
  if (core::are_switches_observed())
    GTEST_SKIP() << "the probe switches without telling the sanitizer";
  Process main, worker, filler;
  std::uint64_t answer = 0;
  unsigned changed = 0;
  newprocess(worker, [&](void*) {
    answer = hold(7, [&] { transfer(worker, filler); });
    return Next{main};
  }).value();
  newprocess(filler, [&](void*) {
    for (std::uint64_t seed = 1;; ++seed) {
      execution_of(filler).gate = detail::Gate::suspended;
      execution_of(worker).gate = detail::Gate::running;
      changed |= cede_probe(&execution_of(filler).context, &execution_of(worker).context, seed);
    }
    return Next{main};
  }).value();
  transfer(main, worker);
  EXPECT_EQ(answer, expected_of_hold(7));
  EXPECT_EQ(changed, 0u);
}

} // namespace
} // namespace cede
