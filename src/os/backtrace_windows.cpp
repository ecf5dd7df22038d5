// SPDX-License-Identifier: MIT
// There is no way here to have a thread look at its own stack. Layer os.
#include "backtrace.h"

namespace cede::os {

BacktraceTarget::BacktraceTarget() noexcept = default;
BacktraceTarget::~BacktraceTarget() = default;

std::size_t BacktraceTarget::take(void* (&)[kMostFrames], std::chrono::nanoseconds) noexcept {
  return 0;
}

std::string name_of_address(const void*) {
  return {};
}

} // namespace cede::os
