// SPDX-License-Identifier: MIT
// What generators and continuations share: a body in a process of its own, and whoever resumed it.
// Written on the public primitives only.
#pragma once

#include <cede/detail/compiler.h>
#include <cede/process.h>
#include <cede/result.h>

#include <exception>
#include <utility>

namespace cede::detail {

// Each has its own slot for whoever resumes it, filled anew by every resume: so bodies may resume
// one another, and any process may resume any of them, in any order.
class Resumable {
public:
  // `run` is called in the body's process; what it throws is thrown by the resume that it ends.
  template <class Run>
  void start(Run run, const StackOptions& options) {
    newprocess(
        body_,
        [this, run = std::move(run)](void*) mutable {
          try {
            run();
          }
          CEDE_PASS_FORCED_UNWIND
          catch (...) {
            error_ = std::current_exception();
          }
          done_ = true;
          return Next{resumer_};
        },
        options)
        .value();
  }

  // Runs the body until it suspends or ends.
  //   Throws    what the body threw; busy if it is running, closed if it has ended
  CEDE_ALWAYS_INLINE void resume() {
    if (running_ || done_) [[unlikely]]
      throw_error(running_ ? Errc::busy : Errc::closed);
    running_ = true;
    transfer(resumer_, body_);
    running_ = false;
    if (error_ != nullptr) [[unlikely]]
      std::rethrow_exception(std::exchange(error_, nullptr));
  }

  // In the body: goes back to whoever resumed it.
  CEDE_ALWAYS_INLINE void suspend() { transfer(body_, resumer_); }

  bool is_done() const noexcept { return done_; }

private:
  Process resumer_;
  bool running_ = false;
  bool done_ = false;
  std::exception_ptr error_;
  Process body_; // the last member: its destructor unwinds the body, which may use the others
};

} // namespace cede::detail
