// SPDX-License-Identifier: MIT
// How the core reaches the target that it was built for. Layer core.
#pragma once

#include "../../arch/arch.h"

#include <cede/detail/config.h>
#include <cede/detail/stack.h>

namespace cede::core {

inline void set_first_context(detail::Stack& stack) noexcept {
  stack.entry = reinterpret_cast<void*>(&cede_entry);
  stack.fpenv = arch::Target::kDefaultFpenv;
}

} // namespace cede::core
