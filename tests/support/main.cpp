// SPDX-License-Identifier: MIT
// The main of every test program. After the tests it checks that nothing is left of them.
#include "../../src/core/stack.h"

#include <gtest/gtest.h>

namespace {

class NothingIsLeft : public testing::Environment {
public:
  void TearDown() override { EXPECT_EQ(cede::core::count_stacks().in_use, 0u); }
};

} // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Processes run on threads' stacks that fork would not copy to a new thread: re-execute. Under an
  // emulator the kernel can't execute this program: there the child goes on from the fork.
  testing::FLAGS_gtest_death_test_style = CEDE_TESTS_ARE_EMULATED ? "fast" : "threadsafe";
  testing::AddGlobalTestEnvironment(new NothingIsLeft);
  return RUN_ALL_TESTS();
}
