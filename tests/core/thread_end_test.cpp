// SPDX-License-Identifier: MIT
// Field reports: 16 17 44
// Switches in the last moments of a thread and of the program.
#include "../../src/core/stack.h"

#include "support/environment.h"
#include "support/in_process.h"

#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>

#if __has_include(<pthread.h>)
#include <pthread.h>
#endif

namespace cede {
namespace {

// Counts in its destructor how often a process ran to its end.
struct LastWords {
  int* ran = nullptr;
  ~LastWords() {
    if (ran != nullptr)
      test::in_process([this] { ++*ran; });
  }
};

TEST(ThreadEnd, destructors_of_thread_locals_may_switch) {
  static int ran;
  ran = 0;
  std::thread([] {
    static thread_local LastWords first, second;
    first.ran = &ran;
    test::in_process([] {});
    second.ran = &ran;
  }).join();
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(core::count_stacks().in_use, 0u);
}

TEST(ThreadEnd, destructor_of_a_thread_local_may_be_the_first_to_switch) {
  static int ran;
  ran = 0;
  std::thread([] {
    static thread_local LastWords only;
    only.ran = &ran;
  }).join();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(core::count_stacks().in_use, 0u);
}

#if __has_include(<pthread.h>)
TEST(ThreadEnd, destructors_of_thread_specific_data_may_switch) {
  static int ran;
  ran = 0;
  pthread_key_t keys[2]; // one older than the library's, if it has none yet, and one younger
  auto run = [](void*) { test::in_process([] { ++ran; }); };
  ASSERT_EQ(pthread_key_create(&keys[0], run), 0);
  test::in_process([] {});
  ASSERT_EQ(pthread_key_create(&keys[1], run), 0);
  std::thread([&] {
    for (pthread_key_t key : keys)
      pthread_setspecific(key, &ran);
    test::in_process([] {});
  }).join();
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(core::count_stacks().in_use, 0u);
  for (pthread_key_t key : keys)
    pthread_key_delete(key);
}
#endif

TEST(ThreadEnd, thread_whose_process_is_still_suspended_ends_on_its_own_stack) {
  Process worker;
  for (int i = 0; i < 3; ++i) {
    Process next;
    std::thread([&] {
      Process main;
      newprocess(next, [&](void*) { return transfer(next, main), Next{main}; }).value();
      transfer(main, next);
    }).join();
  } // unwound here, where `main` is gone: its transfer throws before it looks at that
  EXPECT_EQ(core::count_stacks().in_use, 0u);
}

TEST(ThreadEnd, many_threads_leave_nothing) {
  trim();
  for (int i = 0; i < test::scaled(300, 50); ++i)
    std::thread([] { test::in_process([] {}); }).join();
  EXPECT_LE(core::count_stacks().idle, 2u);
}

TEST(ProgramEnd, exit_may_be_called_in_a_process) {
  if (test::kAddressSanitizer)
    GTEST_SKIP() << "its search for leaks at exit looks at the stack that runs, not at main's";
  auto child = [] {
    std::atexit([] { std::fputs("at exit", stderr); });
    test::in_process([] { std::exit(42); });
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "at exit");
}

TEST(ProgramEnd, processes_may_be_suspended_in_statics) {
  auto child = [] {
    static Process main, worker;
    struct Guard {
      ~Guard() { std::fputs("unwound", stderr); }
    };
    newprocess(worker, [](void*) {
      Guard guard;
      transfer(worker, main);
      return Next{main};
    }).value();
    transfer(main, worker);
    std::exit(42);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "unwound");
}

TEST(ProgramEnd, static_destructors_may_make_processes) {
  auto child = [] {
    static int ran = 0;
    static struct Last {
      ~Last() {
        test::in_process([] { ++ran; });
        std::fprintf(stderr, "ran %d", ran);
      }
    } last;
    test::in_process([] {});
    std::exit(42);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(42), "ran 1");
}

} // namespace
} // namespace cede
