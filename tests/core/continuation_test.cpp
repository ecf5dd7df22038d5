// SPDX-License-Identifier: MIT
// Rows: P-20 P-21 P-22 P-23 P-24 P-26 P-27 P-28 P-10
#include "support/text.h"

#include <cede/continuation.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace cede {
namespace {

using test::Trace;

TEST(Continuation, returns_what_is_yielded_and_at_the_end_what_the_body_returns) {
  Continuation<int(int)> sum([](auto& yield, int first) {
    int total = first;
    while (total < 100)
      total += yield(total);
    return -total;
  });
  EXPECT_EQ(sum(40), 40);
  EXPECT_EQ(sum(50), 90);
  EXPECT_FALSE(sum.done());
  EXPECT_EQ(sum(20), -110);
  EXPECT_TRUE(sum.done());
}

// The first call's arguments arrive as those of any other.
TEST(Continuation, gets_new_arguments_with_each_call) {
  Continuation<int(int)> modulo([](auto& yield, int modulus) {
    for (int i = 10;; ++i)
      modulus = yield(i % modulus);
    return 0;
  });
  Trace trace;
  trace << modulo(7) << modulo(3) << modulo(5) << modulo(100);
  EXPECT_EQ(trace.text(), "3 2 2 13");
}

TEST(Continuation, runs_nothing_before_the_first_call) {
  bool ran = false;
  Continuation<int()> c([&](auto& yield) {
    ran = true;
    yield(1);
    return 2;
  });
  EXPECT_FALSE(ran);
  EXPECT_EQ(c(), 1);
  EXPECT_TRUE(ran);
}

TEST(Continuation, passes_several_arguments_as_a_tuple_and_none_as_nothing) {
  Continuation<std::string(std::string, int)> repeat([](auto& yield, std::string text, int count) {
    for (;;) {
      std::string result;
      while (count-- > 0)
        result += text;
      std::tie(text, count) = yield(std::move(result));
    }
    return std::string();
  });
  EXPECT_EQ(repeat("ab", 2), "abab");
  EXPECT_EQ(repeat("c", 3), "ccc");

  int calls = 0;
  Continuation<void()> tick([&](auto& yield) {
    for (;; yield())
      ++calls;
  });
  tick();
  tick();
  EXPECT_EQ(calls, 2);
}

TEST(Continuation, moves_arguments_and_results_that_cannot_be_copied) {
  using Owner = std::unique_ptr<int>;
  Continuation<Owner(Owner)> increment([](auto& yield, Owner owner) {
    for (;;) {
      ++*owner;
      owner = yield(std::move(owner));
    }
    return Owner();
  });
  EXPECT_EQ(*increment(std::make_unique<int>(1)), 2);
  EXPECT_EQ(*increment(std::make_unique<int>(5)), 6);
}

TEST(Continuation, returns_references) {
  int a = 1, b = 2;
  Continuation<int&(bool)> choose([&](auto& yield, bool first) -> int& {
    for (;;)
      first = yield(first ? a : b);
  });
  choose(true) = 10;
  choose(false) = 20;
  EXPECT_EQ(a + b, 30);
}

TEST(Continuation, called_after_its_end_is_closed_and_stays_so) {
  Continuation<int()> once([](auto&) { return 1; });
  EXPECT_EQ(once(), 1);
  for (int i = 0; i < 2; ++i)
    try {
      once();
      FAIL() << "called";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), Errc::closed);
    }
}

TEST(Continuation, starts_over_if_it_was_made_to) {
  int runs = 0;
  Continuation<int(int)> c(
      [&](auto& yield, int first) {
        ++runs;
        return first + yield(first);
      },
      AtEnd::restart);
  Trace trace;
  trace << c(1) << c(2) << c(10) << c(20);
  EXPECT_EQ(trace.text(), "1 3 10 30");
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(c.done());
}

// A body that never yields comes back with each return: restarting it doesn't spin.
TEST(Continuation, that_restarts_without_yielding_returns_once_a_call) {
  Continuation<int(int)> twice([](auto&, int number) { return number * 2; }, AtEnd::restart);
  EXPECT_EQ(twice(1), 2);
  EXPECT_EQ(twice(4), 8);
}

TEST(Continuation, called_by_its_own_body_is_busy) {
  Continuation<int()>* self = nullptr;
  std::error_code error;
  Continuation<int()> c([&](auto&) {
    try {
      (*self)();
    } catch (const std::system_error& e) {
      error = e.code();
    }
    return 1;
  });
  self = &c;
  EXPECT_EQ(c(), 1);
  EXPECT_EQ(error, Errc::busy);
}

// Round a corner too: a calls b, b calls a.
TEST(Continuation, called_by_what_it_called_is_busy) {
  Continuation<int()>* first = nullptr;
  Continuation<int()> second([&](auto&) { return (*first)(); });
  Continuation<int()> c([&](auto&) {
    EXPECT_THROW(second(), std::system_error);
    return 3;
  });
  first = &c;
  EXPECT_EQ(c(), 3);
  EXPECT_TRUE(second.done());
}

TEST(Continuation, throws_what_its_body_threw_from_the_call_and_is_done) {
  Continuation<int()> c([](auto& yield) -> int {
    yield(1);
    throw std::string("broken");
  });
  EXPECT_EQ(c(), 1);
  EXPECT_THROW(c(), std::string);
  EXPECT_TRUE(c.done());
}

TEST(Continuation, interleaved_three_deep_returns_to_the_right_callers) {
  Trace trace;
  Continuation<int(int)> leaf([&](auto& yield, int x) {
    for (;;)
      x = yield(x + 1);
    return 0;
  });
  auto through = [&](int factor) {
    return Continuation<int(int)>([&leaf, factor](auto& yield, int x) {
      for (;;)
        x = yield(leaf(x) * factor);
      return 0;
    });
  };
  auto tens = through(10), hundreds = through(100);
  Continuation<int(int)> top([&](auto& yield, int x) {
    for (;;)
      x = yield(tens(x) + hundreds(x));
    return 0;
  });
  trace << top(1) << tens(4) << top(2) << leaf(0);
  EXPECT_EQ(trace.text(), "220 50 330 1");
}

TEST(Continuation, dropped_unfinished_unwinds_its_body) {
  auto token = std::make_shared<int>(0);
  {
    Continuation<int()> c([token](auto& yield) {
      auto copy = token;
      yield(1);
      return 2;
    });
    c();
    EXPECT_EQ(token.use_count(), 3);
  }
  EXPECT_EQ(token.use_count(), 1);
}

} // namespace
} // namespace cede
