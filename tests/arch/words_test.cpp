// SPDX-License-Identifier: MIT
// Rows: P-02 P-05
// The word that travels with a switch, by each routine of the target.
#include "../../arch/arch.h"
#include "../../src/core/sanitizers.h"

#include <cede/process.h>

#include <gtest/gtest.h>

namespace cede {
namespace {

class Words : public testing::Test {
protected:
  void SetUp() override {
    if (core::are_switches_observed())
      GTEST_SKIP() << "a sanitizer has to be told of every switch, and these tell nobody";
  }

  static void* switch_to(Process& from, Process& to, void* word) {
    execution_of(from).gate = detail::Gate::suspended;
    execution_of(to).gate = detail::Gate::running;
    return cede_switch(&execution_of(from).context, &execution_of(to).context, word);
  }

  Process main, worker;
  int first = 0, second = 0, third = 0, fourth = 0;
};

TEST_F(Words, arrive_with_a_switch_and_with_the_end_of_an_entry) {
  void *of_entry = nullptr, *of_switch = nullptr;
  newprocess(worker, [&](void* word) {
    of_entry = word;
    of_switch = switch_to(worker, main, &second);
    return Next{main, &fourth};
  }).value();
  EXPECT_EQ(switch_to(main, worker, &first), &second);
  EXPECT_EQ(switch_to(main, worker, &third), &fourth);
  EXPECT_EQ(of_entry, &first);
  EXPECT_EQ(of_switch, &third);
}

TEST_F(Words, arrive_when_a_process_leaves_for_good) {
  newprocess(worker, [&](void*) -> Next {
    execution_of(worker).gate = detail::Gate::finished;
    execution_of(main).gate = detail::Gate::running;
    cede_leave(&execution_of(main).context, &second);
  }).value();
  EXPECT_EQ(switch_to(main, worker, &first), &second);
}

} // namespace
} // namespace cede
