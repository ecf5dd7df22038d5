// SPDX-License-Identifier: MIT
// Names the process whose entry an exception is about to leave, for every unwinder. Layer core.
#include "check.h"
#include "slab.h"
#include "target.h"

extern "C" void cede_report_escape(const void* on_its_stack) noexcept {
  cede::core::Line line;
  line << "cede: an exception leaves the entry of process "
       << cede::core::name_of_stack(static_cast<const std::byte*>(on_its_stack));
  line.print();
}
