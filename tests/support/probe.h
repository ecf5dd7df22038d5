// SPDX-License-Identifier: MIT
// The probe that each target gives for tests, in its probe.S.
#pragma once

#include <cede/detail/context.h>

#include <cstdint>

// Calls cede_switch(from, to, nullptr) with each register of arch::Target::kSavedRegisters set to a
// value made from `seed`. Bit i of the answer is set if register i had another value afterwards.
extern "C" unsigned cede_probe(cede::detail::Context* from, cede::detail::Context* to,
                               std::uint64_t seed);
