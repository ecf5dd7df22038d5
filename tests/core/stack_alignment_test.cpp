// SPDX-License-Identifier: MIT
// Rows: X-40
// Field reports: 1
// The stack is aligned when an entry begins, whatever memory it stands in and whatever it captures.
#include "support/in_process.h"

#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace cede {
namespace {

template <std::size_t alignment>
[[gnu::noinline]] bool local_is_aligned() {
  alignas(alignment) volatile char local[alignment] = {};
  volatile auto address = reinterpret_cast<std::uintptr_t>(&local);
  return address % alignment == 0;
}

// Printing a double stores vector registers at aligned addresses.
std::string print_double() {
  char text[16];
  volatile double number = 1.5;
  std::snprintf(text, sizeof text, "%.3f", number);
  return text;
}

void expect_alignment() {
  EXPECT_TRUE(local_is_aligned<16>());
  EXPECT_TRUE(local_is_aligned<64>());
  EXPECT_TRUE(local_is_aligned<256>());
  EXPECT_EQ(print_double(), "1.500");
}

TEST(StackAlignment, holds_on_stacks_of_every_colour) {
  std::vector<Process> held(70); // so that each turn gets another slot
  for (Process& process : held) {
    newprocess(process, [&](void*) { return Next{process}; }).value();
    test::in_process(expect_alignment);
  }
}

TEST(StackAlignment, holds_in_memory_of_any_size_and_base) {
  for (std::size_t bytes : {16384, 16385, 20001})
    for (std::size_t offset : {0, 1, 8, 15}) {
      std::vector<std::byte> memory(bytes + offset);
      test::in_process({.memory = std::span(memory).subspan(offset)}, expect_alignment);
    }
}

template <class Captured>
void expect_alignment_with() {
  Process main, worker;
  auto entry = [&main, captured = Captured{}](void*) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&captured) % alignof(Captured), 0u);
    expect_alignment();
    return Next{main};
  };
  newprocess(worker, std::move(entry)).value();
  transfer(main, worker);
}

struct alignas(64) Line {
  char bytes[64];
};
struct alignas(256) Block {
  char bytes[256];
};
struct Odd {
  char bytes[13];
};

TEST(StackAlignment, holds_whatever_the_entry_captures) {
  expect_alignment_with<char>();
  expect_alignment_with<Odd>();
  expect_alignment_with<long double>();
  expect_alignment_with<Line>();
  expect_alignment_with<Block>();
}

} // namespace
} // namespace cede
