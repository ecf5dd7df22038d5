// SPDX-License-Identifier: MIT
// Rows: D-05 D-14 P-01 P-02 P-03 P-04 P-05 P-11
// Field reports: 8 15 17
// Processes and transfers between them: states, order, words, threads.
#include "support/text.h"

#include <cede/process.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>

namespace cede::test {
namespace {

std::string name_of(Process::State state) {
  const char* const names[] = {"empty", "created", "suspended", "running", "finished"};
  return names[static_cast<int>(state)];
}

TEST(Process, creation_runs_nothing) {
  Process main, worker;
  bool ran = false;
  newprocess(worker, [&](void*) {
    ran = true;
    return Next{main};
  }).value();
  EXPECT_FALSE(ran);
  transfer(main, worker);
  EXPECT_TRUE(ran);
}

TEST(Process, has_a_state_that_says_what_can_be_done_with_it) {
  Process main, worker;
  Trace trace;
  trace << name_of(main.state()) << name_of(worker.state());
  newprocess(worker, [&](void*) {
    trace << name_of(main.state()) << name_of(worker.state());
    transfer(worker, main);
    return Next{main};
  }).value();
  trace << name_of(worker.state());
  transfer(main, worker);
  trace << name_of(main.state()) << name_of(worker.state());
  transfer(main, worker);
  trace << name_of(worker.state());
  EXPECT_EQ(trace.text(), "empty empty created suspended running running suspended finished");
}

TEST(Process, that_has_finished_can_be_filled_again) {
  Process main, worker;
  int runs = 0;
  for (int i = 0; i < 3; ++i) {
    newprocess(worker, [&](void*) {
      ++runs;
      return Next{main};
    }).value();
    transfer(main, worker);
  }
  EXPECT_EQ(runs, 3);
}

TEST(Process, without_a_callable_is_an_error_and_stays_as_it_was) {
  Process worker;
  std::function<Next(void*)> nothing;
  const Result<void> result = newprocess(worker, nothing);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), Errc::invalid_argument);
  EXPECT_EQ(worker.state(), Process::State::empty);
}

TEST(Process, whose_callable_throws_when_moved_stays_as_it_was) {
  struct Throws {
    Throws() = default;
    Throws(const Throws&) = default;
    Throws(Throws&&) noexcept(false) { throw 1; }
    Next operator()(void*) { std::abort(); }
  };
  Process worker;
  const Throws callable;
  EXPECT_THROW(static_cast<void>(newprocess<Throws>(worker, callable)), int);
  EXPECT_EQ(worker.state(), Process::State::empty);
}

TEST(Transfer, resumes_each_side_after_its_own) {
  Process main, worker;
  Trace trace;
  newprocess(worker, [&](void*) {
    for (int i = 1; i <= 3; ++i) {
      trace << i * 10;
      transfer(worker, main);
    }
    return Next{main};
  }).value();
  for (int i = 1; i <= 3; ++i) {
    transfer(main, worker);
    trace << i;
  }
  EXPECT_EQ(trace.text(), "10 1 20 2 30 3");
}

TEST(Transfer, to_and_fro_a_million_times) {
  Process main, worker;
  int count = 0;
  newprocess(worker, [&](void*) {
    for (;;) {
      ++count;
      transfer(worker, main);
    }
    return Next{main};
  }).value();
  for (int i = 0; i < 1'000'000; ++i)
    transfer(main, worker);
  EXPECT_EQ(count, 1'000'000);
}

TEST(Transfer, is_symmetric_so_that_a_ring_never_goes_back) {
  Process main, a, b, c;
  Trace trace;
  auto link = [&](const char* name, Process& self, Process& next) {
    return [&, name](void*) {
      for (;;) {
        trace << name;
        transfer(self, next);
      }
      return Next{main};
    };
  };
  newprocess(a, link("a", a, b)).value();
  newprocess(b, link("b", b, c)).value();
  newprocess(c, [&](void*) {
    for (;;) {
      trace << "c";
      transfer(c, main);
      transfer(c, a);
    }
    return Next{main};
  }).value();
  transfer(main, a);
  trace << "-";
  transfer(main, c);
  EXPECT_EQ(trace.text(), "a b c - a b c");
}

TEST(Transfer, saves_what_runs_in_any_empty_process) {
  Process first, second, worker;
  Process* back = &first;
  Trace trace;
  newprocess(worker, [&](void*) {
    for (;;)
      transfer(worker, *back);
    return Next{first};
  }).value();
  transfer(first, worker);
  trace << name_of(first.state()) << name_of(second.state());
  back = &second;
  transfer(second, worker);
  trace << name_of(first.state()) << name_of(second.state());
  EXPECT_EQ(trace.text(), "running empty running running");
}

TEST(Transfer, carries_a_word_each_way) {
  Process main, worker;
  Trace trace;
  int values[] = {1, 2, 3, 4};
  auto text_of = [](void* word) { return word == nullptr ? 0 : *static_cast<int*>(word); };
  newprocess(worker, [&](void* word) {
    trace << text_of(word);
    trace << text_of(transfer(worker, main, &values[1]));
    return Next{main, &values[3]};
  }).value();
  trace << text_of(transfer(main, worker, &values[0]));
  trace << text_of(transfer(main, worker, &values[2]));
  EXPECT_EQ(trace.text(), "1 2 3 4");
}

TEST(Transfer, from_deep_inside_keeps_every_frame) {
  Process main, worker;
  int sum = 0;
  std::function<int(int)> nest = [&](int depth) {
    if (depth == 0) {
      transfer(worker, main);
      return 0;
    }
    return depth + nest(depth - 1);
  };
  StackOptions options;
  options.bytes = 8 * 1024 * 1024;
  newprocess(
      worker,
      [&](void*) {
        sum = nest(1000);
        return Next{main};
      },
      options)
      .value();
  transfer(main, worker);
  EXPECT_EQ(sum, 0);
  transfer(main, worker);
  EXPECT_EQ(sum, 1000 * 1001 / 2);
}

TEST(Transfer, resumes_on_whatever_thread_it_is_called_on) {
  Process main, worker;
  std::vector<std::thread::id> ran_on, called_on;
  newprocess(worker, [&](void*) {
    for (;;) {
      ran_on.push_back(std::this_thread::get_id());
      transfer(worker, main);
    }
    return Next{main};
  }).value();
  auto resume = [&] {
    called_on.push_back(std::this_thread::get_id());
    transfer(main, worker);
  };
  resume();
  for (int i = 0; i < 3; ++i)
    std::thread(resume).join();
  EXPECT_EQ(ran_on.size(), 4u);
  EXPECT_EQ(called_on.size(), 4u);
}

TEST(Transfer, at_the_end_of_an_entry_goes_where_this_thread_waits) {
  Process main, worker;
  newprocess(worker, [&](void*) {
    transfer(worker, main);
    return Next{main};
  }).value();
  bool returned = false;
  std::thread([&] { transfer(main, worker); }).join();
  std::thread([&] {
    transfer(main, worker);
    returned = true;
  }).join();
  EXPECT_TRUE(returned);
  EXPECT_EQ(worker.state(), Process::State::finished);
}

// errno belongs to the thread: what one process sets is what the next one reads. Its address may be
// remembered over a call by the compiler, so it is written and read in functions of their own.
CEDE_NOINLINE void set_errno(int value) {
  errno = value;
}
CEDE_NOINLINE int get_errno() {
  return errno;
}

TEST(Transfer, does_not_keep_errno) {
  Process main, worker;
  int seen = 0;
  newprocess(worker, [&](void*) {
    seen = get_errno();
    set_errno(22);
    return Next{main};
  }).value();
  transfer(main, worker); // a first run may set up the thread
  newprocess(worker, [&](void*) {
    seen = get_errno();
    set_errno(22);
    return Next{main};
  }).value();
  set_errno(11);
  transfer(main, worker);
  EXPECT_EQ(seen, 11);
  EXPECT_EQ(get_errno(), 22);
}

#if defined(__unix__)
TEST(Transfer, does_not_switch_the_signal_mask) {
  if (std::string_view(CEDE_TARGET) == "generic-ucontext")
    GTEST_SKIP() << "swapcontext switches it";
  Process main, worker;
  newprocess(worker, [&](void*) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, nullptr);
    return Next{main};
  }).value();
  transfer(main, worker);
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  EXPECT_TRUE(sigismember(&now, SIGUSR1));
  sigdelset(&now, SIGUSR1);
  pthread_sigmask(SIG_SETMASK, &now, nullptr);
}
#endif

} // namespace
} // namespace cede::test
