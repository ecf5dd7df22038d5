// SPDX-License-Identifier: MIT
// Dining philosophers. Each takes both forks by std::scoped_lock, whose std::lock backs off where
// a fork is taken; and a table where each takes the left one first, which is found out.
#include <array>
#include <cede/cede.h>
#include <cstdio>
#include <mutex>
#include <system_error>
#include <vector>

constexpr std::size_t kSeats = 5;

struct Table {
  std::array<cede::Mutex, kSeats> forks;
  cede::Mutex& left(std::size_t seat) { return forks[seat]; }
  cede::Mutex& right(std::size_t seat) { return forks[(seat + 1) % kSeats]; }
};

void eat_politely() {
  Table table;
  std::array<int, kSeats> meals{};
  cede::Group philosophers;
  for (std::size_t seat = 0; seat < kSeats; ++seat)
    philosophers.spawn([&, seat] {
      for (int meal = 0; meal < 3; ++meal) {
        const std::scoped_lock both(table.left(seat), table.right(seat));
        cede::yield();
        ++meals[seat];
      }
    });
  philosophers.join();
  for (const int count : meals)
    std::printf("%d ", count);
  std::puts("meals");
}

void eat_greedily() {
  Table table;
  std::vector<cede::Fiber<void>> philosophers;
  for (std::size_t seat = 0; seat < kSeats; ++seat)
    philosophers.push_back(cede::spawn([&, seat] {
      const std::lock_guard left(table.left(seat));
      cede::yield(); // everybody has the left one now
      try {
        const std::lock_guard right(table.right(seat));
        std::printf("philosopher %zu eats\n", seat);
      } catch (const std::system_error& error) {
        std::printf("philosopher %zu: %s\n", seat,
                    error.code() == cede::Errc::deadlock ? "a deadlock; I leave" : "?");
      }
    }));
  for (auto& philosopher : philosophers)
    philosopher.join();
}

int main() {
  cede::run([] {
    eat_politely();
    eat_greedily();
  });
}
