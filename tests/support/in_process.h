// SPDX-License-Identifier: MIT
// Running a function on the stack of a process of its own.
#pragma once

#include <cede/process.h>

namespace cede::test {

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
