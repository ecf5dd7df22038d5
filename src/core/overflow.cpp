// SPDX-License-Identifier: MIT
#include "overflow.h"

#include "../os/fault.h"
#include "check.h"
#include "slab.h"
#include "stack.h"

#include <atomic>

namespace cede::core {
namespace {

enum class Reporting { undecided, on, off };
std::atomic<Reporting> reporting{Reporting::undecided};

// Runs in an OS-signal handler.
bool report_fault(std::byte* address, std::byte* sp) {
  const Found found = find_stack(address, false);
  if (found.name == nullptr || address >= found.low)
    return false; // not in a guard
  // A frame that is larger than the guard has sp below it; code on another stack may have strayed.
  const bool overflows = find_stack(sp, false).name == found.name;
  Line line;
  line << (overflows ? "cede: stack overflow in process "
                     : "cede: stack overflow by a frame larger than the guard, or a stray access, "
                       "at process ")
       << (found.name[0] != '\0' ? std::string_view(found.name) : "(unnamed)") << ": access to "
       << address << ", " << static_cast<std::size_t>(found.low - address)
       << " bytes below its stack " << found.low << " to " << found.high << " ("
       << static_cast<std::size_t>(found.high - found.low) << " bytes), stack pointer " << sp;
  line.print();
  return true;
}

} // namespace

void report_overflows() noexcept {
  if (reporting.load(std::memory_order_acquire) != Reporting::undecided)
    return;
  Reporting undecided = Reporting::undecided;
  const Reporting wanted = settings().report_overflow ? Reporting::on : Reporting::off;
  if (reporting.compare_exchange_strong(undecided, wanted) && wanted == Reporting::on)
    os::install_fault_handler(report_fault);
}

bool are_overflows_reported() noexcept {
  return reporting.load(std::memory_order_acquire) == Reporting::on;
}

} // namespace cede::core
