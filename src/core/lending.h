// SPDX-License-Identifier: MIT
// Priorities that are lent along chains of those who wait for one another. Layer core.
#pragma once

#include <cede/detail/fiber_record.h>
#include <cede/detail/lender.h>

namespace cede::core {

// `fiber`, which is about to wait for it or does, lends.
void lend(detail::Lender& lender, detail::FiberRecord& fiber) noexcept;
// It waits no longer.
void withdraw(detail::Lender& lender, detail::FiberRecord& fiber) noexcept;
// From now on `holder` has it; null if nobody has.
void change_holder(detail::Lender& lender, detail::FiberRecord* holder) noexcept;
// What `fiber` has when nobody lends it more.
void set_own_priority(detail::FiberRecord& fiber, int priority) noexcept;

} // namespace cede::core
