// SPDX-License-Identifier: MIT
// What has one holder, for whom others wait and to whom they lend their priority.
//
// Invariants: a lender is on its holder's list exactly while somebody waits; `waiting` counts those
// who do by the priority that they have, their own or lent. A fiber's priority is the highest of
// its own and of those who wait for what it holds.
#pragma once

#include <cstdint>

namespace cede::detail {

struct FiberRecord;

struct Lender {
  FiberRecord* holder = nullptr; // a fiber; null if nobody holds it, or a plain thread
  Lender* next = nullptr;        // on the holder's list
  Lender* prev = nullptr;
  std::uint32_t waiting[8] = {}; // from the lowest priority up
};

} // namespace cede::detail
