// SPDX-License-Identifier: MIT
// What backtraces.py looks at: two executions that switch to and fro in both forms.
#include <cede/process.h>

using cede::Process;

[[gnu::noinline]] void hop(Process& from, Process& to) {
  cede::transfer(from, to);
}

[[gnu::noinline]] void hop_out_of_line(Process& from, Process& to) {
  cede::detail::transfer_out_of_line(execution_of(from), execution_of(to), nullptr);
}

// The debugger's last stop.
extern "C" [[gnu::noinline]] void all_done() {
  asm volatile("");
}

[[gnu::noinline]] void body(Process& self, Process& main) {
  for (int i = 0; i < 2; ++i) {
    hop(self, main);
    hop_out_of_line(self, main);
  }
}

int main() {
  Process main, worker;
  cede::newprocess(worker, [&](void*) {
    body(worker, main);
    return cede::Next{main};
  }).value();
  for (int i = 0; i < 2; ++i) {
    hop(main, worker);
    hop_out_of_line(main, worker);
  }
  hop(main, worker);
  all_done();
}
