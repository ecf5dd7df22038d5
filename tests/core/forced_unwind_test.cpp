// SPDX-License-Identifier: MIT
// Rows: P-11 P-43
// Field reports: 22
// A suspended process that is destroyed unwinds: wherever it was suspended, whoever destroys it.
#include "support/text.h"

#include <cede/process.h>

#include <exception>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <thread>

namespace cede::test {
namespace {

// Says its name when it is destroyed.
struct Says {
  Trace& trace;
  const char* name;
  ~Says() { trace << name; }
};

// Calls a function when it is destroyed.
template <class F>
struct AtEnd {
  F f;
  ~AtEnd() { f(); }
};
template <class F>
AtEnd(F) -> AtEnd<F>;

class ForcedUnwind : public testing::Test {
protected:
  // Makes `worker`, which runs `body` below two frames' worth of objects, and suspends it there.
  template <class Body>
  void suspend_in(Body body) {
    newprocess(*worker, [this, body, callable = Says{trace, "callable"}](void*) mutable {
      started = true;
      Says first{trace, "first"};
      [&] {
        Says second{trace, "second"};
        body();
      }();
      trace << "returned";
      return Next{main};
    }).value();
    trace = {};
    transfer(main, *worker);
  }

  Process main;
  std::optional<Process> worker{std::in_place};
  Trace trace;
  bool started = false;
};

TEST_F(ForcedUnwind, runs_destructors_in_order_then_destroys_the_callable) {
  suspend_in([&] { transfer(*worker, main); });
  worker.reset();
  EXPECT_EQ(trace.text(), "second first callable");
}

TEST_F(ForcedUnwind, of_a_process_suspended_in_a_catch_block_frees_the_exception) {
  auto shared = std::make_shared<int>(1);
  suspend_in([&] {
    try {
      throw shared;
    } catch (...) {
      transfer(*worker, main);
    }
  });
  EXPECT_EQ(shared.use_count(), 2);
  worker.reset();
  EXPECT_EQ(trace.text(), "second first callable");
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_EQ(std::current_exception(), nullptr);
}

// Overwrites what a call left below this frame.
CEDE_NOINLINE void overwrite_stack() {
  volatile std::size_t words[500];
  for (volatile std::size_t& word : words)
    word = 0x5a5a;
}

TEST_F(ForcedUnwind, of_a_process_that_has_left_its_catch_block_knows_nothing_of_it) {
  bool is_handled = true;
  int uncaught = -1;
  suspend_in([&] {
    AtEnd guard{[&] {
      is_handled = std::current_exception() != nullptr;
      uncaught = std::uncaught_exceptions();
    }};
    try {
      throw 1;
    } catch (int) {
      transfer(*worker, main);
    }
    overwrite_stack();
    transfer(*worker, main);
  });
  transfer(main, *worker);
  worker.reset();
  EXPECT_FALSE(is_handled);
  EXPECT_EQ(uncaught, 1);
}

TEST_F(ForcedUnwind, inside_a_catch_block_leaves_what_it_handles) {
  suspend_in([&] { transfer(*worker, main); });
  try {
    throw 1;
  } catch (...) {
    worker.reset();
    EXPECT_THROW(throw, int);
  }
  EXPECT_EQ(trace.text(), "second first callable");
}

TEST_F(ForcedUnwind, inside_a_destructor_during_unwinding) {
  suspend_in([&] {
    try {
      throw 2;
    } catch (...) {
      transfer(*worker, main);
    }
  });
  try {
    AtEnd guard{[&] {
      worker.reset();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }};
    throw 1;
  } catch (int caught) {
    EXPECT_EQ(caught, 1);
  }
  EXPECT_EQ(trace.text(), "second first callable");
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(ForcedUnwind, is_an_exception_in_flight) {
  int uncaught = -1;
  suspend_in([&] {
    AtEnd guard{[&] { uncaught = std::uncaught_exceptions(); }};
    transfer(*worker, main);
  });
  worker.reset();
  EXPECT_EQ(uncaught, 1);
}

TEST_F(ForcedUnwind, of_a_process_suspended_in_a_destructor_during_unwinding_ends_the_program) {
  // The transfer throws out of a destructor; that is a misuse of destructors, not of processes.
  EXPECT_DEATH(
      {
        suspend_in([&] {
          try {
            AtEnd guard{[&] { transfer(*worker, main); }};
            throw 1;
          } catch (int) {
          }
        });
        worker.reset();
      },
      "");
}

TEST_F(ForcedUnwind, destroys_the_processes_that_the_process_owns) {
  suspend_in([&] {
    Process here, inner, innermost;
    newprocess(innermost, [&](void*) {
      Says says{trace, "innermost"};
      transfer(innermost, inner);
      return Next{here};
    }).value();
    newprocess(inner, [&](void*) {
      Says says{trace, "inner"};
      transfer(inner, innermost);
      transfer(inner, here);
      return Next{here};
    }).value();
    transfer(here, inner);
    transfer(*worker, main);
  });
  worker.reset();
  EXPECT_EQ(trace.text(), "innermost inner second first callable");
}

TEST_F(ForcedUnwind, throws_again_at_the_next_transfer_before_its_target_is_looked_at) {
  Process empty;
  suspend_in([&] {
    for (int i = 0; i < 3; ++i) {
      try {
        transfer(*worker, i == 0 ? main : empty);
        trace << "resumed";
      } catch (...) {
        trace << "caught";
      }
    }
  });
  worker.reset();
  EXPECT_EQ(trace.text(), "caught caught caught second returned first callable");
}

TEST_F(ForcedUnwind, that_is_swallowed_and_returned_from_ends_the_process) {
  suspend_in([&] {
    try {
      transfer(*worker, main);
    } catch (...) {
    }
  });
  worker.reset();
  EXPECT_EQ(trace.text(), "second returned first callable");
}

TEST_F(ForcedUnwind, swallowed_a_thousand_times_fails_a_check) {
  suspend_in([&] {
    for (int i = 0; i < 990; ++i) {
      try {
        transfer(*worker, main);
      } catch (...) {
      }
    }
  });
  worker.reset();
  worker.emplace();
  EXPECT_DEATH(
      {
        suspend_in([&] {
          for (;;) {
            try {
              transfer(*worker, main);
            } catch (...) {
            }
          }
        });
        worker.reset();
      },
      "being destroyed swallows the exception and transfers on");
}

TEST_F(ForcedUnwind, happens_on_the_thread_that_destroys) {
  std::thread::id unwound_on;
  suspend_in([&] {
    AtEnd guard{[&] { unwound_on = std::this_thread::get_id(); }};
    transfer(*worker, main);
  });
  std::thread::id destroyer;
  std::thread([&] {
    destroyer = std::this_thread::get_id();
    worker.reset();
  }).join();
  EXPECT_EQ(unwound_on, destroyer);
}

TEST_F(ForcedUnwind, lets_the_stack_be_used_again) {
  for (int i = 0; i < 3; ++i) {
    suspend_in([&] { transfer(*worker, main); });
    worker.reset();
    EXPECT_EQ(trace.text(), "second first callable");
    worker.emplace();
  }
}

TEST_F(ForcedUnwind, of_a_process_that_never_started_destroys_its_callable_only) {
  auto shared = std::make_shared<int>(1);
  newprocess(*worker, [&, shared](void*) {
    started = true;
    return Next{main};
  }).value();
  EXPECT_EQ(shared.use_count(), 2);
  worker.reset();
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_FALSE(started);
}

TEST_F(ForcedUnwind, does_not_happen_to_a_process_that_has_ended) {
  auto shared = std::make_shared<int>(1);
  newprocess(*worker, [&, shared](void*) { return Next{main}; }).value();
  transfer(main, *worker);
  EXPECT_EQ(shared.use_count(), 1) << "the callable ends with the entry";
  worker.reset();
}

} // namespace
} // namespace cede::test
