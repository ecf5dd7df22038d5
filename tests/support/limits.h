// SPDX-License-Identifier: MIT
// What tests of limits look at.
#pragma once

#include <cede/limit.h>
#include <cede/result.h>

#include <new>
#include <string>
#include <system_error>

namespace cede::test {

// The error that a call throws. Without memory there may be none for an error that says so.
inline std::error_code error_of(auto call) {
  try {
    call();
  } catch (const std::system_error& error) {
    return error.code();
  } catch (const std::bad_alloc&) {
    return Errc::no_memory;
  }
  return {};
}

// How many run and how many are queued, as "1 0".
inline std::string counts(const Limit& limit) {
  return std::to_string(limit.running()) + " " + std::to_string(limit.queued());
}

} // namespace cede::test
