// SPDX-License-Identifier: MIT
#include "unhandled.h"

#include "check.h"
#include "scheduler_state.h"

#include <cede/remote.h>

namespace cede::core {

namespace {

void print(const AnyFiber& fiber, const std::exception_ptr& error) noexcept {
  Line line;
  line << "cede: an exception ended ";
  if (!fiber)
    line << "a post";
  else if (fiber.name().empty())
    line << "fiber " << static_cast<std::size_t>(fiber.id());
  else
    line << "fiber " << fiber.name();
  print_unhandled(line, error);
}

} // namespace

void print_unhandled(Line& line, const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    line << ": " << exception.what();
  } catch (...) {
  }
  line.print();
}

void report_unhandled(SchedulerState& scheduler, const AnyFiber& fiber,
                      const std::exception_ptr& error) noexcept {
  ++scheduler.unhandled_errors;
  if (scheduler.on_unhandled == nullptr)
    return print(fiber, error);
  try {
    scheduler.on_unhandled(fiber, error);
  } catch (...) { // nobody is left to handle that one
    print(fiber, error);
    Line line;
    line << "cede: the handler of unhandled errors failed with that";
    print_unhandled(line, std::current_exception());
  }
}

} // namespace cede::core

namespace cede::detail {

void report_post_error(core::SchedulerState& scheduler, const std::exception_ptr& error) noexcept {
  core::report_unhandled(scheduler, AnyFiber(), error);
}

} // namespace cede::detail
