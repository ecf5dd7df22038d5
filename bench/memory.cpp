// SPDX-License-Identifier: MIT
// What a million parked processes and fibers cost, page tables included. Linux only: it reads
// /proc.
#include "support.h"

#include <cede/fiber.h>
#include <cede/process.h>
#include <cede/scheduler.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <tuple>

namespace {

using cede::Next;
using cede::Process;

// The sum of the named lines of a file that has `Name:  123 kB`, in bytes.
double bytes_in(const char* path, std::initializer_list<const char*> names) {
  std::ifstream file(path);
  double sum = 0;
  for (std::string name; file >> name;) {
    for (const char* wanted : names)
      if (double kib; name == wanted && file >> kib)
        sum += kib * 1024;
    file.ignore(4096, '\n');
  }
  return sum;
}

double resident_bytes() {
  return bytes_in("/proc/self/status", {"VmRSS:", "VmPTE:"});
}

double mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<double>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
}

template <long kProcesses>
void parked_processes(benchmark::State& state) {
  constexpr double kNeeded = 6e3 * kProcesses;
  if (bytes_in("/proc/meminfo", {"MemAvailable:"}) < kNeeded)
    return state.SkipWithError("not enough memory");
  for (auto _ : state) {
    const double before = resident_bytes();
    const std::unique_ptr<Process[]> parked(new Process[kProcesses]);
    Process main;
    for (long i = 0; i < kProcesses; ++i) {
      const auto made = cede::newprocess(parked[i], [&main, self = &parked[i]](void*) {
        cede::transfer(*self, main);
        return Next{main};
      });
      if (!made)
        return state.SkipWithError(made.error().message().c_str());
      cede::transfer(main, parked[i]);
    }
    state.counters["bytes_per_process"] = (resident_bytes() - before) / kProcesses;
    state.counters["mappings"] = mappings();
    for (long i = 0; i < kProcesses; ++i)
      cede::transfer(main, parked[i]); // to its end: cheaper than being unwound
  }
}
template <long kFibers>
void parked_fibers(benchmark::State& state) {
  if (bytes_in("/proc/meminfo", {"MemAvailable:"}) < 6e3 * kFibers)
    return state.SkipWithError("not enough memory");
  for (auto _ : state) {
    cede::Scheduler scheduler;
    const double before = resident_bytes();
    for (long i = 0; i < kFibers; ++i)
      scheduler.spawn([] { cede::park(); });
    const double created = resident_bytes();
    std::ignore = scheduler.run_until(cede::kForever); // until all are parked
    state.counters["bytes_per_created_fiber"] = (created - before) / kFibers;
    state.counters["bytes_per_fiber"] = (resident_bytes() - before) / kFibers;
    state.counters["mappings"] = mappings();
    if (scheduler.metrics().stacks != kFibers)
      state.SkipWithError("not all of them are parked");
  }
}

BENCHMARK(parked_fibers<1'000'000>)->Name("parked_fibers/1000000")->Unit(benchmark::kSecond);
BENCHMARK(parked_processes<1'000'000>)->Name("parked_processes/1000000")->Unit(benchmark::kSecond);

} // namespace
