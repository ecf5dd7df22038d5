// SPDX-License-Identifier: MIT
// A pipeline of bounded channels: who is fast waits for who is slow, and nothing piles up.
#include <algorithm>
#include <cede/cede.h>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

int main() {
  cede::run([] {
    cede::Channel<std::string> lines(2);
    cede::Channel<std::size_t> lengths(2);
    std::size_t most = 0;

    auto reader = cede::spawn([&] {
      for (int i = 1; i <= 12; ++i) {
        lines.send(std::string(static_cast<std::size_t>(i), '*')).value();
        most = std::max(most, lines.size());
      }
      lines.close(); // what was sent is still received
      std::puts("read 12 lines");
    });
    auto counter = cede::spawn([&] {
      for (const std::string& line : lines)
        lengths.send(line.size()).value();
      lengths.close();
      std::puts("counted");
    });
    auto printer = cede::spawn([&] {
      std::size_t sum = 0;
      for (const std::size_t length : lengths) {
        sum += length;
        cede::yield(); // slow
      }
      return sum;
    });
    std::printf("%zu characters\n", printer.join());
    std::printf("never more than %zu lines at once\n", most);
  });
}
