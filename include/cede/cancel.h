// SPDX-License-Identifier: MIT
// Cancellation: a request that stays, which a fiber meets at each of its waits.
#pragma once

#include <cede/detail/fiber_record.h>

namespace cede {

// What a wait throws in a fiber that is asked to end. It is no std::exception, so that handlers of
// errors let it pass; a `catch (...)` that swallows it meets it again at the next wait, and the
// thousandth time fails a check. Its destructors run; code after the wait does not.
struct Cancelled {};

// Whether the fiber that runs is asked to end. False outside fibers.
bool cancel_requested() noexcept;

// While one is in scope, the fiber's waits go on as if nobody had asked it to end: for clean-up
// that has to wait. It may be nested.
//   Thread    its fiber
class Shield {
public:
  Shield() noexcept;
  Shield(const Shield&) = delete;
  Shield& operator=(const Shield&) = delete;
  ~Shield();

private:
  detail::FiberRecord* fiber_; // null outside fibers, where it has no effect
};

// While one is in scope, a wait of a cancelled fiber doesn't throw: forms that give a Result fail
// with Errc::cancelled after giving the others one turn, yield() and sleeps give one turn and
// return, and forms that can report nothing wait as under a Shield. The same holds, without it,
// while an exception unwinds the stack. For noexcept code and callbacks from C.
//   Thread    its fiber
class CancelByResult {
public:
  CancelByResult() noexcept;
  CancelByResult(const CancelByResult&) = delete;
  CancelByResult& operator=(const CancelByResult&) = delete;
  ~CancelByResult();

private:
  detail::FiberRecord* fiber_;
};

} // namespace cede
