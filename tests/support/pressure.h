// SPDX-License-Identifier: MIT
// Work that keeps more values live than there are registers, with a switch in the midst of it.
#pragma once

#include <cede/detail/compiler.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace cede::test {

// How often hold() switches.
inline constexpr int kSwitches = 1000;

// Carries 14 integers and 20 doubles over each call of `change`, every one of which is changed
// before and after it in a way that forgets nothing. The answer depends on `seed` alone, unless
// `change` damaged a value. To have the switch in this very function, `change` has to be inlined.
template <class Change, std::size_t... I, std::size_t... D>
CEDE_ALWAYS_INLINE std::uint64_t hold(std::uint64_t seed, Change change, std::index_sequence<I...>,
                                      std::index_sequence<D...>) {
  volatile std::uint64_t unknown = seed;
  std::uint64_t integers[] = {unknown + I...};
  double doubles[] = {static_cast<double>(unknown + D)...};
  for (int i = 0; i < kSwitches; ++i) {
    ((integers[I] = integers[I] * 6364136223846793005u + I), ...);
    ((doubles[D] += static_cast<double>(D + 1)), ...);
    change();
    ((integers[I] ^= integers[I] >> 29), ...);
    ((doubles[D] += 0.5), ...);
  }
  std::uint64_t answer = 0;
  ((answer = answer * 31 + integers[I]), ...);
  ((answer = answer * 31 + std::bit_cast<std::uint64_t>(doubles[D])), ...);
  return answer;
}

template <class Change>
CEDE_ALWAYS_INLINE std::uint64_t hold(std::uint64_t seed, Change change) {
  return hold(seed, change, std::make_index_sequence<14>(), std::make_index_sequence<20>());
}

// The answer when nothing is damaged.
CEDE_NOINLINE inline std::uint64_t expected_of_hold(std::uint64_t seed) {
  return hold(seed, [] {});
}

} // namespace cede::test
