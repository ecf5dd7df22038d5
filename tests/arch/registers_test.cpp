// SPDX-License-Identifier: MIT
// Rows: D-05 D-14 D-15 P-06 P-09 X-40
// Field reports: 2 4 5
// Every register that the ABI makes callee-saved, by name, over the out-of-line switch.
#include "../../arch/arch.h"
#include "../../src/core/sanitizers.h"
#include "support/probe.h"

#include <cede/process.h>

#include <gtest/gtest.h>

namespace cede {
namespace {

// Switches by the probe, as transfer() would.
unsigned probe_transfer(Process& from, Process& to, std::uint64_t seed) {
  detail::Execution& leaving = execution_of(from);
  detail::Execution& entering = execution_of(to);
  leaving.gate = detail::Gate::suspended;
  entering.gate = detail::Gate::running;
  return cede_probe(&leaving.context, &entering.context, seed);
}

std::string names_of(unsigned registers) {
  std::string names;
  for (unsigned i = 0; i < std::size(arch::Target::kSavedRegisters); ++i)
    if (registers & (1u << i))
      names += std::string(arch::Target::kSavedRegisters[i]) + " ";
  return names;
}

TEST(Registers, each_callee_saved_one_survives_interleaved_switches) {
  if (core::are_switches_observed())
    GTEST_SKIP() << "a sanitizer has to be told of every switch, and the probe tells nobody";
  Process main, first, second;
  unsigned changed = 0;
  auto body = [&](Process& self, Process& next, std::uint64_t seed) {
    return [&, seed](void*) {
      for (int i = 0; i < 10; ++i)
        changed |= probe_transfer(self, next, seed + i);
      return Next{main};
    };
  };
  newprocess(first, body(first, second, 1)).value();
  newprocess(second, body(second, main, 1000)).value();
  for (int i = 0; i < 10; ++i)
    changed |= probe_transfer(main, first, 2000 + i);
  EXPECT_EQ(names_of(changed), "");
}

} // namespace
} // namespace cede
