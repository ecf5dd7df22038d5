// SPDX-License-Identifier: MIT
// Field reports: 28
// Memory that fails at each place where it can: a clear error, nothing left over, all usable after.
#include "../../src/core/stack.h"
#include "../../src/os/memory.h"

#include "support/environment.h"
#include "support/in_process.h"
#include "support/proc.h"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

#if !__has_include(<sys/mman.h>)
TEST(StackFailure, is_an_error_and_leaves_nothing) {
  GTEST_SKIP() << "the kernel's refusals are simulated for POSIX only";
}
#else
#include "support/failing_new.h"
#include "support/refusing_kernel.h"

#include <sys/resource.h>

namespace cede {
namespace {

std::error_code error_of_next() {
  Process process;
  const Result<void> made = newprocess(process, [&](void*) { return Next{process}; });
  EXPECT_EQ(process.state(), made ? Process::State::created : Process::State::empty);
  return made ? std::error_code() : made.error();
}

class StackFailure : public testing::Test {
protected:
  void SetUp() override {
    test::in_process([] {}); // what is made once is made
    trim();
    mappings = test::count_mappings();
  }

  void TearDown() override {
    os::set_guard_method(os::GuardMethod::automatic);
    bool ran = false;
    test::in_process([&] { ran = true; });
    EXPECT_TRUE(ran);
    trim();
    EXPECT_EQ(core::count_stacks().in_use + core::count_stacks().cold, 0u);
    if (!test::is_observed()) { // observers map memory of their own; one more may be the heap's
      EXPECT_LE(test::count_mappings(), mappings + 1);
    }
  }

  std::size_t mappings = 0;
};

TEST_F(StackFailure, of_address_space_is_no_memory) {
  const test::Refusal refusal(0);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(error_of_next(), Errc::no_memory);
}

TEST_F(StackFailure, of_the_slabs_record_is_no_memory) {
  if (!test::can_fail_allocations())
    GTEST_SKIP() << "observers stand in front of this program's operator new";
  test::allocations_until_failure = 0;
  EXPECT_EQ(error_of_next(), Errc::no_memory);
  test::allocations_until_failure = test::kNever;
}

TEST_F(StackFailure, of_a_guard_by_protection_is_the_mapping_limit) {
  os::set_guard_method(os::GuardMethod::protection);
  const test::Refusal refusal(1); // the slab, and no guard
  const std::error_code error = error_of_next();
  EXPECT_EQ(error, Errc::mapping_limit);
  EXPECT_EQ(error, std::errc::not_enough_memory);
  EXPECT_NE(error.message().find("vm.max_map_count"), std::string::npos);
}

TEST_F(StackFailure, of_a_guard_by_advice_is_no_memory) {
  os::set_guard_method(os::GuardMethod::advice);
  const test::Refusal refusal(1);
  EXPECT_EQ(error_of_next(), Errc::no_memory);
}

TEST_F(StackFailure, half_way_leaves_what_was_made_usable) {
  std::vector<Process> workers(200);
  Process main;
  std::size_t made = 0, ran = 0;
  {
    const test::Refusal refusal(100); // slabs and guards
    while (newprocess(workers[made], [&](void*) { return ++ran, Next{main}; }))
      ++made;
    EXPECT_GT(made, 90u);
    EXPECT_LT(made, 100u);
  }
  newprocess(workers[made++], [&](void*) { return ++ran, Next{main}; }).value();
  for (std::size_t i = 0; i < made; ++i)
    transfer(main, workers[i]);
  EXPECT_EQ(ran, made);
}

TEST_F(StackFailure, of_new_guards_does_not_keep_stacks_from_use_that_have_one) {
  const std::size_t idle = core::settings().idle_stacks;
  configure_stacks({.idle_stacks = 0});
  std::vector<Process> workers(100);
  for (Process& worker : workers)
    newprocess(worker, [&](void*) { return Next{worker}; }, {.name = "not default"}).value();
  std::vector<Process>(100).swap(workers);
  const test::Refusal refusal(0);
  for (Process& worker : workers)
    EXPECT_TRUE(newprocess(worker, [&](void*) { return Next{worker}; }));
  configure_stacks({.idle_stacks = idle});
}

struct Thrower {
  explicit Thrower(int* moves, std::shared_ptr<int> held) : moves_left(moves), held(held) {}
  Thrower(Thrower&& other) : moves_left(other.moves_left), held(other.held), main(other.main) {
    if ((*moves_left)-- == 0)
      throw 7;
  }
  Next operator()(void*) { return Next{*main}; }
  int* moves_left;
  std::shared_ptr<int> held;
  Process* main = nullptr;
};

TEST_F(StackFailure, of_the_callables_move_leaks_nothing) {
  auto held = std::make_shared<int>();
  for (StackOptions options : {StackOptions{}, StackOptions{.bytes = 100000, .name = "big"}})
    for (int i = 0; i < 100; ++i) {
      Process process;
      int moves = 0;
      EXPECT_THROW(static_cast<void>(newprocess(process, Thrower(&moves, held), options)), int);
      EXPECT_EQ(process.state(), Process::State::empty);
    }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(core::count_stacks().in_use, 0u);
}

TEST_F(StackFailure, of_the_callables_move_gives_the_callers_memory_back) {
  std::vector<std::byte> memory(kMinimumStackBytes);
  Process process;
  int moves = 0;
  EXPECT_THROW(static_cast<void>(newprocess(process, Thrower(&moves, nullptr), {.memory = memory})),
               int);
  std::vector<std::byte>().swap(memory);
  EXPECT_NE(stack_limits().high, nullptr); // the list of such stacks is walked
}

TEST_F(StackFailure, at_the_systems_limit_is_no_memory_until_it_is_raised) {
  if (test::is_observed() || test::kEmulated)
    GTEST_SKIP() << "an observer's own memory is under the limit too; an emulator imposes none";
  auto child = [] {
    std::vector<Process> workers(20000);
    Process main;
    rlimit before{};
    getrlimit(RLIMIT_AS, &before);
    rlimit low = before;
    low.rlim_cur = std::size_t{1} << 30;
    setrlimit(RLIMIT_AS, &low);
    std::size_t made = 0;
    Result<void> result;
    while ((result = newprocess(workers[made], [&](void*) { return Next{main}; },
                                {.bytes = 256 * 1024})))
      ++made;
    const bool named = result.error() == Errc::no_memory;
    for (std::size_t i = 0; i < made; ++i)
      transfer(main, workers[i]);
    setrlimit(RLIMIT_AS, &before);
    const bool again = newprocess(workers[made], [&](void*) { return Next{main}; }).has_value();
    std::exit(named && made > 1000 && again ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace cede
#endif
