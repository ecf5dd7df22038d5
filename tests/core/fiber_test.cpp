// SPDX-License-Identifier: MIT
// Rows: L-01 L-04 D-04 P-40 P-49
// Fibers that are made, yield and are joined.
#include <cede/fiber.h>
#include <cede/scheduler.h>

#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

namespace cede {
namespace {

TEST(Fiber, two_that_yield_take_turns) {
  std::string trace;
  run([&] {
    auto a = spawn([&] {
      for (const char* step : {"A1 ", "A2 ", "A3 "}) {
        trace += step;
        yield();
      }
    });
    auto b = spawn([&] {
      for (const char* step : {"B1 ", "B2 ", "B3 "}) {
        trace += step;
        yield();
      }
    });
    trace += "spawned ";
    a.join();
    b.join();
  });
  EXPECT_EQ(trace, "spawned A1 B1 A2 B2 A3 B3 ");
}

TEST(Fiber, join_gives_the_result_as_often_as_asked) {
  const int sum = run([] {
    Fiber<int> seven = spawn([] { return 7; });
    return seven.join() + seven.join();
  });
  EXPECT_EQ(sum, 14);
}

TEST(Fiber, join_throws_what_ended_the_body) {
  run([] {
    Fiber<int> broken = spawn([]() -> int { throw std::runtime_error("broken"); });
    EXPECT_THROW(broken.join(), std::runtime_error);
    EXPECT_EQ(AnyFiber(broken).join().error(), Errc::failed);
  });
}

} // namespace
} // namespace cede
