// SPDX-License-Identifier: MIT
// Many downloads, a few at a time: a Limit starts the next when one ends, and holds no stack for
// those that are queued. What a download waits for is a sleep here, on a clock that jumps.
#include <cede/cede.h>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

std::string fetch(int page) {
  cede::sleep_for(page * 10ms);
  if (page == 4)
    throw std::runtime_error("page 4 is gone");
  return std::string(static_cast<std::size_t>(page), '#');
}

int main() {
  cede::Scheduler scheduler({.has_test_clock = true});
  scheduler.spawn([] {
    cede::Limit limit(3);
    std::size_t most = 0;
    std::vector<cede::Fiber<std::string>> downloads;
    for (int page = 1; page <= 7; ++page)
      downloads.push_back(limit.spawn([&limit, &most, page] {
        most = limit.running() > most ? limit.running() : most;
        return fetch(page);
      }));
    std::printf("%zu run, %zu are queued\n", limit.running(), limit.queued());
    downloads[5].cancel(); // it has not begun, and never will

    const cede::TimePoint begin = cede::now();
    limit.wait();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(cede::now() - begin);
    std::printf("never more than %zu at a time; all took %d ms\n", most,
                static_cast<int>(took.count()));
    for (std::size_t i = 0; i < downloads.size(); ++i) {
      try {
        const auto page = downloads[i].join(cede::kForever);
        std::printf("page %zu: %s\n", i + 1, page ? page->c_str() : "cancelled");
      } catch (const std::runtime_error& error) {
        std::printf("page %zu: %s\n", i + 1, error.what());
      }
    }
  });
  scheduler.run();
}
