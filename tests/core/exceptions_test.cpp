// SPDX-License-Identifier: MIT
// Rows: D-14 P-05 P-06
// Field reports: 16 22
// Exceptions thrown, caught, rethrown and in flight over interleaved switches: what the C++ runtime
// knows of them belongs to the process, not to the thread.
#include "support/environment.h"
#include "support/text.h"

#include <cede/process.h>

#include <array>
#include <exception>
#include <gtest/gtest.h>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cede::test {
namespace {

// The int that is being handled here; 0 if none is.
int handled() {
  if (std::current_exception() == nullptr)
    return 0;
  try {
    throw;
  } catch (int value) {
    return value;
  }
}

TEST(Exceptions, each_process_rethrows_its_own) {
  Process main, a, b;
  Trace trace;
  auto body = [&](Process& self, Process& next, int value) {
    return [&, value](void*) {
      try {
        throw value;
      } catch (...) {
        transfer(self, next);
        trace << handled();
        transfer(self, next);
        trace << handled();
      }
      trace << (std::current_exception() == nullptr ? "none" : "some");
      return Next{main};
    };
  };
  newprocess(a, body(a, b, 1)).value();
  newprocess(b, body(b, main, 2)).value();
  for (Process* process : {&a, &a, &a, &b}) {
    transfer(main, *process);
    trace << (std::current_exception() == nullptr ? "-" : "leaked");
  }
  EXPECT_EQ(trace.text(), "- 1 2 - 1 none - 2 none -");
}

TEST(Exceptions, who_transfers_inside_a_catch_block_keeps_it) {
  Process main, worker;
  std::vector<int> seen;
  newprocess(worker, [&](void*) {
    seen.push_back(handled());
    transfer(worker, main);
    seen.push_back(handled());
    return Next{main};
  }).value();
  try {
    throw 1;
  } catch (...) {
    transfer(main, worker);
    EXPECT_EQ(handled(), 1);
    try {
      throw 2;
    } catch (...) {
      transfer(main, worker);
      EXPECT_EQ(handled(), 2);
    }
    EXPECT_EQ(handled(), 1);
  }
  EXPECT_EQ(handled(), 0);
  EXPECT_EQ(seen, (std::vector{0, 0}));
}

// Transfers in its destructor.
struct TransfersAtEnd {
  Process& from;
  Process& to;
  int& uncaught;
  ~TransfersAtEnd() {
    transfer(from, to);
    uncaught = std::uncaught_exceptions();
  }
};

TEST(Exceptions, in_flight_wait_while_a_destructor_transfers) {
  Process main, a, b;
  int uncaught_a = -1, uncaught_b = -1;
  Trace trace;
  auto body = [&](Process& self, int& uncaught, int value) {
    return [&, value](void*) {
      try {
        TransfersAtEnd guard{self, main, uncaught};
        throw value;
      } catch (int caught) {
        trace << caught;
      }
      return Next{main};
    };
  };
  newprocess(a, body(a, uncaught_a, 1)).value();
  newprocess(b, body(b, uncaught_b, 2)).value();
  transfer(main, a);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  transfer(main, b);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_THROW(throw std::logic_error("meanwhile"), std::logic_error);
  transfer(main, a);
  transfer(main, b);
  EXPECT_EQ(trace.text(), "1 2");
  EXPECT_EQ(uncaught_a, 1);
  EXPECT_EQ(uncaught_b, 1);
}

TEST(Exceptions, in_flight_at_who_transfers_are_not_seen_by_who_is_entered) {
  Process main, worker;
  std::vector<int> uncaught;
  int of_main = -1;
  newprocess(worker, [&](void*) {
    for (;;) {
      uncaught.push_back(std::uncaught_exceptions());
      try {
        throw 2;
      } catch (int) {
      }
      transfer(worker, main);
    }
    return Next{main};
  }).value();
  try {
    TransfersAtEnd guard{main, worker, of_main};
    throw 1;
  } catch (int caught) {
    EXPECT_EQ(caught, 1);
  }
  transfer(main, worker);
  EXPECT_EQ(of_main, 1);
  EXPECT_EQ(uncaught, (std::vector{0, 0}));
}

TEST(Exceptions, are_thrown_and_caught_on_the_first_run_and_on_later_ones) {
  Process main, worker;
  Trace trace;
  newprocess(worker, [&](void*) {
    for (int i = 1;; ++i) {
      try {
        throw i;
      } catch (int caught) {
        trace << caught;
      }
      transfer(worker, main);
    }
    return Next{main};
  }).value();
  for (int i = 0; i < 3; ++i)
    transfer(main, worker);
  EXPECT_EQ(trace.text(), "1 2 3");
}

TEST(Exceptions, travel_between_processes_and_threads_by_pointer) {
  Process main, worker;
  std::exception_ptr error;
  newprocess(worker, [&](void*) {
    try {
      throw std::runtime_error("first");
    } catch (...) {
      error = std::current_exception();
      transfer(worker, main);
      error = std::current_exception();
    }
    return Next{main};
  }).value();
  transfer(main, worker);
  EXPECT_THROW(std::rethrow_exception(error), std::runtime_error);
  const std::exception_ptr before = std::exchange(error, nullptr);
  std::thread([&] {
    transfer(main, worker);
    EXPECT_THROW(std::rethrow_exception(error), std::runtime_error);
  }).join();
  EXPECT_EQ(error, before);
}

TEST(Exceptions, of_a_process_follow_it_to_another_thread) {
  Process main, worker;
  Trace trace;
  newprocess(worker, [&](void*) {
    try {
      throw 1;
    } catch (...) {
      transfer(worker, main);
      trace << handled();
      try {
        throw 2;
      } catch (...) {
        transfer(worker, main);
        trace << handled();
      }
      trace << handled();
    }
    return Next{main};
  }).value();
  auto resume = [&] {
    transfer(main, worker);
    EXPECT_EQ(handled(), 0);
  };
  for (int i = 0; i < 3; ++i)
    std::thread(resume).join();
  EXPECT_EQ(trace.text(), "1 2 1");
}

// A process that enters and leaves catch blocks at random and knows how it should look.
struct Nester {
  std::mt19937& random;
  Process& self;
  std::array<Process*, 4>& processes;
  int& steps;
  int id;

  void check(const std::vector<int>& expected) {
    EXPECT_EQ(handled(), expected.empty() ? 0 : expected.back());
    EXPECT_EQ(std::uncaught_exceptions(), 0);
  }
  void nest(std::vector<int>& expected) {
    while (steps > 0) {
      --steps;
      Process& other = *processes[random() % processes.size()];
      if (&other != &self)
        transfer(self, other);
      check(expected);
      if (random() % 3 == 0 && !expected.empty())
        return;
      if (random() % 2 == 0 && expected.size() < 6) {
        expected.push_back(id * 1000 + static_cast<int>(expected.size()));
        try {
          throw expected.back();
        } catch (...) {
          nest(expected);
          check(expected);
        }
        expected.pop_back();
        check(expected);
      }
    }
  }
};

TEST(Exceptions, of_many_nesting_processes_never_mix) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Process main, a, b, c;
  std::array<Process*, 4> processes{&main, &a, &b, &c};
  int steps = scaled(20'000, 2'000);
  for (int i = 1; i < 4; ++i)
    newprocess(*processes[i], [&, i](void*) {
      std::vector<int> expected;
      Nester{random, *processes[i], processes, steps, i}.nest(expected);
      for (;;) // the others are done, or will find that they are
        transfer(*processes[i], main);
      return Next{main};
    }).value();
  std::vector<int> expected;
  Nester{random, main, processes, steps, 4}.nest(expected);
  EXPECT_EQ(handled(), 0);
}

} // namespace
} // namespace cede::test
