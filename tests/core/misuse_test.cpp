// SPDX-License-Identifier: MIT
// Rows: P-02 P-03 P-11
// Field reports: 28
// Every misuse of a process ends the program with a line that says what it was, in every build.
#include <cede/process.h>

#include <gtest/gtest.h>
#include <memory>

namespace cede::test {
namespace {

// What the child of a death test works with; it dies with them, so they are never destroyed.
struct World {
  Process main, worker, other;
};

World& world() {
  return *new World;
}

auto ends(World& w) {
  return [&](void*) { return Next{w.main}; };
}

auto suspends(World& w) {
  return [&](void*) {
    for (;;)
      transfer(w.worker, w.main);
    return Next{w.main};
  };
}

TEST(Misuse, transfer_to_an_empty_process) {
  EXPECT_DEATH(
      {
        World& w = world();
        transfer(w.main, w.worker);
      },
      "cede: transfer to an empty process");
}

TEST(Misuse, transfer_to_a_finished_process) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, ends(w)).value();
        transfer(w.main, w.worker);
        transfer(w.main, w.worker);
      },
      "cede: transfer to a process that has finished");
}

TEST(Misuse, transfer_to_oneself) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, [&](void*) {
          transfer(w.worker, w.worker);
          return Next{w.main};
        }).value();
        transfer(w.main, w.worker);
      },
      "cede: transfer to a process that runs, or to oneself .*, in an unnamed process");
}

TEST(Misuse, transfer_to_a_slot_whose_execution_runs) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, suspends(w)).value();
        transfer(w.main, w.worker);
        transfer(w.other, w.main);
      },
      "cede: transfer to a process that runs, or to oneself");
}

TEST(Misuse, transfer_from_a_process_that_holds_an_execution) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, suspends(w)).value();
        newprocess(w.other, ends(w)).value();
        transfer(w.main, w.worker);
        transfer(w.worker, w.other);
      },
      "cede: transfer from a process that holds an execution: it would be lost");
}

TEST(Misuse, transfer_from_a_process_that_never_started) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, suspends(w)).value();
        newprocess(w.other, ends(w)).value();
        transfer(w.worker, w.other);
      },
      "cede: transfer from a process that holds an execution: it would be lost");
}

TEST(Misuse, transfer_from_a_process_that_has_finished) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, ends(w)).value();
        transfer(w.main, w.worker);
        newprocess(w.other, ends(w)).value();
        transfer(w.worker, w.other);
      },
      "cede: transfer from a process that has finished");
}

TEST(Misuse, an_entry_that_returns_an_empty_process) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, [&](void*) { return Next{w.other}; }).value();
        transfer(w.main, w.worker);
      },
      "cede: transfer to an empty process");
}

TEST(Misuse, an_entry_that_returns_itself) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, [&](void*) { return Next{w.worker}; }).value();
        transfer(w.main, w.worker);
      },
      "cede: transfer to a process that runs, or to oneself");
}

TEST(Misuse, newprocess_on_a_suspended_process) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, suspends(w)).value();
        static_cast<void>(newprocess(w.worker, suspends(w)));
      },
      "cede: newprocess on a process that runs or holds an execution");
}

TEST(Misuse, newprocess_on_the_process_that_runs) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, [&](void*) {
          static_cast<void>(newprocess(w.worker, ends(w)));
          return Next{w.main};
        }).value();
        transfer(w.main, w.worker);
      },
      "cede: newprocess on a process that runs or holds an execution");
}

TEST(Misuse, newprocess_on_a_slot_that_was_used) {
  EXPECT_DEATH(
      {
        World& w = world();
        newprocess(w.worker, suspends(w)).value();
        transfer(w.main, w.worker);
        static_cast<void>(newprocess(w.main, ends(w)));
      },
      "cede: newprocess on a process that runs or holds an execution");
}

TEST(Misuse, destroying_a_slot_that_holds_an_execution) {
  EXPECT_DEATH(
      {
        World& w = world();
        auto slot = std::make_unique<Process>();
        newprocess(w.worker, [&](void*) {
          slot.reset();
          return Next{w.main};
        }).value();
        transfer(*slot, w.worker);
      },
      "cede: a slot was destroyed while it held an execution: nobody could resume it");
}

TEST(Misuse, destroying_the_process_that_runs) {
  EXPECT_DEATH(
      {
        World& w = world();
        auto worker = std::make_unique<Process>();
        newprocess(*worker, [&](void*) {
          worker.reset();
          return Next{w.main};
        }).value();
        transfer(w.main, *worker);
      },
      "cede: a process was destroyed while its stack is in use");
}

TEST(Misuse, destroying_a_process_that_holds_an_execution_on_another_stack) {
  EXPECT_DEATH(
      {
        World& w = world();
        auto worker = std::make_unique<Process>();
        newprocess(w.other, [&](void*) {
          transfer(*worker, w.main); // saves the other's execution in the one that was left
          return Next{w.main};
        }).value();
        newprocess(*worker, [&](void*) {
          transfer(w.worker, w.other);
          return Next{w.main};
        }).value();
        transfer(w.main, *worker);
        worker.reset();
      },
      "cede: a process was destroyed that holds an execution on another's stack");
}

TEST(Misuse, names_the_process_in_which_it_happened) {
  EXPECT_DEATH(
      {
        World& w = world();
        StackOptions options;
        options.name = "painter";
        newprocess(
            w.worker,
            [&](void*) {
              transfer(w.worker, w.other);
              return Next{w.main};
            },
            options)
            .value();
        transfer(w.main, w.worker);
      },
      "transfer to an empty process .check .* failed at .*, in painter");
}

} // namespace
} // namespace cede::test
