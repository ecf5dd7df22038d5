// SPDX-License-Identifier: MIT
// Exceptions that nobody is left to take. Layer core.
#pragma once

#include <cede/fiber.h>
#include <exception>

namespace cede::core {

class Line;
struct SchedulerState;

// Counts it and hands it to the scheduler's handler; without one it is a line on standard error
// that names the fiber. A handler that throws ends the program.
void report_unhandled(SchedulerState& scheduler, const AnyFiber& fiber,
                      const std::exception_ptr& error) noexcept;

// Prints `line`, which says what it ended, and what it was.
void print_unhandled(Line& line, const std::exception_ptr& error) noexcept;

} // namespace cede::core
