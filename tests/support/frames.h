// SPDX-License-Identifier: MIT
// What unwinders see from where they are asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unwind.h>
#include <vector>

namespace cede::test {

struct Backtrace {
  std::vector<std::uintptr_t> ips; // innermost first; an end that is shown as 0 left out
  _Unwind_Reason_Code reason;
};

inline _Unwind_Reason_Code collect_frame(_Unwind_Context* context, void* argument) {
  auto& ips = *static_cast<std::vector<std::uintptr_t>*>(argument);
  if (const std::uintptr_t ip = _Unwind_GetIP(context); ip != 0)
    ips.push_back(ip);
  return ips.size() < 200 ? _URC_NO_REASON : _URC_NORMAL_STOP; // an endless stack
}

inline Backtrace backtrace_here() {
  Backtrace result;
  result.reason = _Unwind_Backtrace(collect_frame, &result.ips);
  return result;
}

// Whether a return address lies in the first `bytes` bytes of a routine.
inline bool is_return_into(std::uintptr_t ip, void (*routine)(), std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(routine);
  return ip > begin && ip <= begin + bytes;
}

} // namespace cede::test
