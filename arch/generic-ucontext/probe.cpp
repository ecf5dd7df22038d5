// SPDX-License-Identifier: MIT
// For tests: what can be seen from C++ of what the switch keeps.
#include "../arch.h"

#include <cfenv>

extern "C" unsigned cede_probe(cede::detail::Context* from, cede::detail::Context* to,
                               std::uint64_t seed) {
  constexpr int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const int callers = std::fegetround();
  const int mode = kModes[seed % 4];
  std::fesetround(mode);
  cede_switch(from, to, nullptr);
  const bool is_kept = std::fegetround() == mode;
  std::fesetround(callers);
  return is_kept ? 0 : 1;
}
