// SPDX-License-Identifier: MIT
#include <cede/condition.h>

#include "../core/check.h"

namespace cede {

ConditionVariable::~ConditionVariable() {
  CEDE_CHECK(waiters_.is_empty(), "a condition variable is destroyed that is waited for");
}

} // namespace cede
