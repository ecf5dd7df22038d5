// SPDX-License-Identifier: MIT
// Rows: D-14 P-07 P-08
// Field reports: 17
// Frames that are not cede's nor the user's between a process's entry and its transfer; and one
// function active in many processes, whose levels end in any order.
#include "support/environment.h"
#include "support/text.h"

#include <cede/process.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <random>

namespace cede::test {
namespace {

// qsort's comparators get no argument of ours.
Process* running = nullptr;
Process* sorts_main = nullptr;

int compare_and_transfer(const void* left, const void* right) {
  Process* self = running;
  transfer(*self, *sorts_main);
  const int a = *static_cast<const int*>(left), b = *static_cast<const int*>(right);
  return a < b ? -1 : a > b;
}

TEST(ForeignFrames, of_qsort_in_three_processes_stay_whole) {
  Process main;
  std::array<Process, 3> workers;
  std::array<std::array<int, 100>, 3> numbers;
  std::mt19937 random(7);
  sorts_main = &main;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::iota(numbers[i].begin(), numbers[i].end(), static_cast<int>(i * 1000));
    std::shuffle(numbers[i].begin(), numbers[i].end(), random);
    newprocess(workers[i], [&, i](void*) {
      std::qsort(numbers[i].data(), numbers[i].size(), sizeof(int), compare_and_transfer);
      return Next{main};
    }).value();
  }
  const auto all_sorted = [&] {
    return std::ranges::all_of(
        workers, [](Process& worker) { return worker.state() == Process::State::finished; });
  };
  while (!all_sorted()) {
    Process& worker = workers[random() % workers.size()];
    if (worker.state() == Process::State::finished)
      continue;
    running = &worker;
    transfer(main, worker);
  }
  running = sorts_main = nullptr;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    EXPECT_TRUE(std::ranges::is_sorted(numbers[i]));
    EXPECT_EQ(numbers[i][0], static_cast<int>(i * 1000));
  }
}

struct Base {
  virtual ~Base() = default;
  virtual void act() = 0;
};

TEST(ForeignFrames, of_a_virtual_call_and_of_a_destructor) {
  Process main, worker;
  Trace trace;
  struct Acts : Base {
    Process &from, &to;
    Trace& trace;
    Acts(Process& from, Process& to, Trace& trace) : from(from), to(to), trace(trace) {}
    void act() override {
      transfer(from, to);
      trace << "acted";
    }
    ~Acts() override {
      transfer(from, to);
      trace << "destroyed";
    }
  };
  newprocess(worker, [&](void*) {
    std::unique_ptr<Base> object = std::make_unique<Acts>(worker, main, trace);
    object->act();
    object.reset();
    return Next{main};
  }).value();
  for (const char* step : {"1", "2", "3"}) {
    transfer(main, worker);
    trace << step;
  }
  EXPECT_EQ(trace.text(), "1 acted 2 destroyed 3");
}

// Both go down, then come up at their own pace, each level on its own.
int descend(Process& self, Process& main, int depth, Trace& trace, int tag) {
  int local = tag * 100 + depth;
  if (depth == 3)
    transfer(self, main);
  else
    descend(self, main, depth + 1, trace, tag);
  trace << local;
  transfer(self, main);
  return local;
}

TEST(ForeignFrames, of_one_recursive_function_unwind_in_any_order) {
  Process main, a, b;
  Trace trace;
  auto body = [&](Process& self, int tag) {
    return [&, tag](void*) {
      descend(self, main, 1, trace, tag);
      return Next{main};
    };
  };
  newprocess(a, body(a, 1)).value();
  newprocess(b, body(b, 2)).value();
  for (Process* next : {&a, &b, &b, &a, &b, &b, &a, &a, &b, &a})
    transfer(main, *next);
  EXPECT_EQ(trace.text(), "203 103 202 201 102 101");
  EXPECT_EQ(a.state(), Process::State::finished);
  EXPECT_EQ(b.state(), Process::State::finished);
}

// A function-local static's guard belongs to the thread that runs its initialiser. To the C++
// runtime, another process of that thread which comes by meanwhile is a recursive initialisation:
// undefined (C++20, [stmt.dcl] 4). libstdc++ ends a program of one thread with recursive_init_error
// and lets one of many wait for ever. What it never does is to show a half-made object.
struct Slow {
  int value;
  Slow(Process& self, Process& main) : value(1) {
    transfer(self, main);
    value = 42;
  }
};

// A static of its own for each `which`.
template <int which>
int read_static(Process& self, Process& main) {
  static Slow slow(self, main);
  return slow.value;
}

template <int which>
auto reads_static(Process& self, Process& main, Trace& trace) {
  return [&](void*) {
    trace << read_static<which>(self, main);
    return Next{main};
  };
}

TEST(ForeignFrames, of_a_static_s_initialiser_are_left_and_entered_again) {
  Process main, a, b;
  Trace trace;
  newprocess(a, reads_static<1>(a, main, trace)).value();
  newprocess(b, reads_static<1>(b, main, trace)).value();
  for (Process* next : {&a, &a, &b})
    transfer(main, *next);
  EXPECT_EQ(trace.text(), "42 42");
}

#if defined(__GLIBC__) && defined(__GLIBCXX__) // others wait, and would for ever
void come_by_meanwhile() {
  Process main, a, b;
  Trace trace;
  newprocess(a, reads_static<2>(a, main, trace)).value();
  newprocess(b, reads_static<2>(b, main, trace)).value();
  transfer(main, a);
  transfer(main, b);
}

TEST(ForeignFrames, of_a_static_s_initialiser_end_who_comes_by_meanwhile) {
  if (test::kThreadSanitizer)
    GTEST_SKIP() << "its own guard of statics waits, and would for ever";
  EXPECT_DEATH(come_by_meanwhile(), "recursive_init_error");
}
#endif

} // namespace
} // namespace cede::test
