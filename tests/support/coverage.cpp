// SPDX-License-Identifier: MIT
// Part of the test programs that count lines: a failed check ends in abort() and a reported
// overflow in a fault, and both would lose the counts of the lines that led to them.
#include <csignal>

extern "C" {
void __gcov_dump();

using Handler = void (*)(int);
Handler __real_signal(int number, Handler handler);

// The linker puts it in front of signal(), which the fault handler calls before it lets the program
// die.
Handler __wrap_signal(int number, Handler handler) {
  if (handler == SIG_DFL)
    __gcov_dump();
  return __real_signal(number, handler);
}
}

namespace {

void dump_and_die(int number) {
  std::signal(number, SIG_DFL);
  std::raise(number);
}

[[maybe_unused]] const auto installed = std::signal(SIGABRT, dump_and_die);

} // namespace
