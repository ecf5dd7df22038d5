// SPDX-License-Identifier: MIT
// Running a function on the stack of a process of its own.
#pragma once

#include <cede/process.h>

#include <cstddef>

namespace cede::test {

// An address on the stack that runs: locals may lie elsewhere under AddressSanitizer.
[[gnu::noinline]] inline std::byte* here() {
  return static_cast<std::byte*>(__builtin_frame_address(0));
}

template <class F>
void in_process(StackOptions options, F&& f) {
  Process main, worker;
  newprocess(
      worker,
      [&](void*) {
        f();
        return Next{main};
      },
      options)
      .value();
  transfer(main, worker);
}

template <class F>
void in_process(F&& f) {
  in_process(StackOptions{}, f);
}

} // namespace cede::test
