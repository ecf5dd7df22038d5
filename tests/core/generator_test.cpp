// SPDX-License-Identifier: MIT
// Rows: P-20 P-22 P-24 P-25 P-27 P-28 L-07
#include "support/text.h"

#include <cede/generator.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace cede {
namespace {

using test::Trace;

// Runs its function when it is destroyed.
template <class F>
struct AtExit {
  F f;
  ~AtExit() { f(); }
};
template <class F>
AtExit(F) -> AtExit<F>;

TEST(Generator, yields_values_in_order_and_ends) {
  Generator<int> g([](auto& yield) {
    for (int i = 1; i <= 4; ++i)
      yield(i);
  });
  Trace trace;
  for (int value : g)
    trace << value;
  EXPECT_EQ(trace.text(), "1 2 3 4");
}

TEST(Generator, keeps_the_bodys_state_between_values) {
  Generator<unsigned> random([](auto& yield) {
    unsigned seed = 1;
    for (;;)
      yield(seed = seed * 1103515245u + 12345u);
  });
  auto value = random.begin();
  unsigned expected = 1;
  for (int i = 0; i < 1000; ++i, ++value) {
    expected = expected * 1103515245u + 12345u;
    ASSERT_EQ(*value, expected);
  }
}

TEST(Generator, runs_nothing_before_begin) {
  bool ran = false;
  {
    Generator<int> g([&](auto& yield) {
      ran = true;
      yield(1);
    });
    EXPECT_FALSE(ran);
    EXPECT_EQ(*g.begin(), 1);
  }
  EXPECT_TRUE(ran);
}

TEST(Generator, whose_body_never_yields_is_empty) {
  Generator<int> g([](auto&) {});
  EXPECT_TRUE(g.begin() == g.end());
}

// The end is a state, not a value: no value that the body yields can be taken for it.
TEST(Generator, yields_null_pointers_and_zeros_without_ending) {
  Generator<int*> g([](auto& yield) {
    yield(nullptr);
    yield(nullptr);
  });
  int count = 0;
  for (int* value : g)
    count += value == nullptr;
  EXPECT_EQ(count, 2);
}

TEST(Generator, yields_from_nested_calls) {
  struct Tree {
    int depth;
    void walk(Generator<int>::Yield& yield, int at) const {
      if (at > depth)
        return;
      walk(yield, at + 1);
      yield(at);
      walk(yield, at + 1);
    }
  };
  Generator<int> g([](auto& yield) { Tree{2}.walk(yield, 0); });
  Trace trace;
  for (int value : g)
    trace << value;
  EXPECT_EQ(trace.text(), "2 1 2 0 2 1 2");
}

TEST(Generator, pulls_from_others_three_deep_each_returning_to_its_caller) {
  auto count = [](int from) {
    return Generator<int>([from](auto& yield) {
      for (int i = from;; ++i)
        yield(i);
    });
  };
  auto doubled = [&](int from) {
    return Generator<int>([inner = count(from)](auto& yield) mutable {
      for (int value : inner)
        yield(value * 2);
    });
  };
  Generator<int> outer([a = doubled(1), b = doubled(100)](auto& yield) mutable {
    auto x = a.begin();
    auto y = b.begin();
    for (; *x < 8; ++x, ++y)
      yield(*x + *y);
  });
  Trace trace;
  for (int value : outer)
    trace << value;
  EXPECT_EQ(trace.text(), "202 206 210");
}

TEST(Generator, pulled_by_two_processes_returns_to_whoever_pulls) {
  Generator<int> shared([](auto& yield) {
    for (int i = 0;; ++i)
      yield(i);
  });
  auto value = shared.begin();
  Process main, a, b;
  Trace trace;
  auto body = [&](Process& self, Process& next, const char* name) {
    return [&, name](void*) {
      for (int i = 0; i < 3; ++i) {
        trace << name + std::to_string(*value);
        ++value;
        transfer(self, next);
      }
      return Next{main};
    };
  };
  newprocess(a, body(a, b, "a")).value();
  newprocess(b, body(b, a, "b")).value();
  transfer(main, a);
  EXPECT_EQ(trace.text(), "a0 b1 a2 b3 a4 b5");
}

// Both are inside a generator of their own when they leave each other.
TEST(Generator, two_processes_interleave_inside_generators) {
  Process main, a, b;
  Trace trace;
  auto body = [&](Process& self, Process& next, const char* name) {
    return [&, name](void*) {
      Generator<int> g([&](auto& yield) {
        for (int i = 0; i < 3; ++i) {
          trace << std::string(name) + std::to_string(i);
          yield(i);
        }
      });
      for (int value : g) {
        trace << std::string(name) + "=" + std::to_string(value);
        transfer(self, next);
      }
      return Next{main};
    };
  };
  newprocess(a, body(a, b, "a")).value();
  newprocess(b, body(b, a, "b")).value();
  transfer(main, a);
  EXPECT_EQ(trace.text(), "a0 a=0 b0 b=0 a1 a=1 b1 b=1 a2 a=2 b2 b=2");
}

TEST(Generator, that_leaves_for_another_process_from_its_body_goes_on_there) {
  Process main, other, inside;
  Trace trace;
  newprocess(other, [&](void*) {
    trace << "other";
    transfer(other, inside);
    trace << "end";
    return Next{main};
  }).value();
  Generator<int> g([&](auto& yield) {
    yield(1);
    transfer(inside, other);
    yield(2);
  });
  for (int value : g)
    trace << value;
  transfer(main, other);
  EXPECT_EQ(trace.text(), "1 other 2 end");
}

TEST(Generator, advanced_from_its_own_body_is_busy) {
  Generator<int>* self = nullptr;
  std::error_code error;
  Generator<int> g([&](auto& yield) {
    try {
      self->begin();
    } catch (const std::system_error& e) {
      error = e.code();
    }
    yield(7);
  });
  self = &g;
  EXPECT_EQ(*g.begin(), 7);
  EXPECT_EQ(error, Errc::busy);
}

TEST(Generator, advanced_past_its_end_is_closed) {
  Generator<int> g([](auto&) {});
  auto at = g.begin();
  try {
    ++at;
    FAIL() << "advanced";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), Errc::closed);
  }
}

TEST(Generator, throws_what_its_body_threw_where_it_is_advanced) {
  Generator<int> g([](auto& yield) {
    yield(1);
    throw std::string("broken");
  });
  auto at = g.begin();
  EXPECT_THROW(++at, std::string);
  EXPECT_TRUE(at == g.end());
  Generator<int> first([](auto&) { throw 5; });
  EXPECT_THROW(first.begin(), int);
}

TEST(Generator, dropped_unfinished_unwinds_its_body) {
  Trace trace;
  {
    Generator<int> g([&](auto& yield) {
      AtExit outer{[&] { trace << "outer"; }};
      Generator<int> nested([&](auto& yield2) {
        AtExit inner{[&] { trace << "nested"; }};
        yield2(1);
      });
      nested.begin();
      AtExit inner{[&] { trace << "inner"; }};
      yield(1);
      trace << "never";
    });
    g.begin();
  }
  EXPECT_EQ(trace.text(), "inner nested outer");
}

TEST(Generator, dropped_unstarted_destroys_its_body_and_runs_nothing) {
  auto token = std::make_shared<int>(0);
  {
    Generator<int> g([token](auto& yield) { yield(++*token); });
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(*token, 0);
}

TEST(Generator, is_moved_while_its_body_is_suspended) {
  Generator<int> g([](auto& yield) {
    yield(1);
    yield(2);
  });
  EXPECT_EQ(*g.begin(), 1);
  Generator<int> moved(std::move(g));
  auto at = moved.begin();
  EXPECT_EQ(*++at, 2);
  g = std::move(moved);
  EXPECT_TRUE(++at == g.end());
}

TEST(Generator, hands_out_moved_values_and_references) {
  Generator<std::unique_ptr<int>> owners([](auto& yield) {
    yield(std::make_unique<int>(1));
    yield(std::make_unique<int>(2));
  });
  std::vector<std::unique_ptr<int>> taken;
  for (auto& owner : owners)
    taken.push_back(std::move(owner));
  EXPECT_EQ(*taken[0] + *taken[1], 3);

  int number = 1;
  Generator<int&> references([&](auto& yield) { yield(number); });
  *references.begin() = 5;
  EXPECT_EQ(number, 5);
}

TEST(Generator, is_a_view_that_range_adaptors_take) {
  static_assert(std::ranges::input_range<Generator<int>>);
  static_assert(std::ranges::view<Generator<int>>);
#if !defined(__clang__) || __clang_major__ > 15 // clang 15 can't compile libstdc++'s adaptors
  Trace trace;
  for (int value : Generator<int>([](auto& yield) {
                     for (int i = 0;; ++i)
                       yield(i);
                   }) | std::views::filter([](int i) { return i % 3 == 0; }) |
                       std::views::take(4))
    trace << value;
  EXPECT_EQ(trace.text(), "0 3 6 9");
#endif
}

TEST(Generator, whose_stack_cannot_be_had_says_so_at_once) {
  try {
    Generator<int> g([](auto& yield) { yield(1); }, {.bytes = 1});
    FAIL() << "made";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), Errc::invalid_argument);
  }
}

} // namespace
} // namespace cede
