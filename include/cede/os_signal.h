// SPDX-License-Identifier: MIT
// OS signals as something to wait for.
#pragma once

#include <cede/file.h>

#include <initializer_list>

namespace cede {

// From now on these OS signals interrupt nothing and are waited for:
//
//   cede::OsSignals signals = cede::OsSignals::watch({SIGINT, SIGTERM}).value();
//   int number = signals.next().value();
//
// They are kept from this thread and from those that it starts; so it is to be made before other
// threads are, which would take them. When it is gone they do again what they did before; those
// that came and were not waited for do it then.
//   Thread    the one that made it
class OsSignals {
public:
  //   Fails     what the system says: invalid_argument for a number that is none
  static Result<OsSignals> watch(std::initializer_list<int> numbers) noexcept;

  OsSignals(OsSignals&&) noexcept = default;
  OsSignals& operator=(OsSignals&& other) noexcept;
  ~OsSignals() { stop(); }

  // The number of the next one. Several of one number that come before it are one.
  //   Blocks    the calling fiber
  //   Fails     busy, timed_out, cancelled
  //   Throws    Cancelled
  Result<int> next(Deadline deadline = kForever);

private:
  explicit OsSignals(File file) noexcept : file_(std::move(file)) {}
  void stop() noexcept;

  File file_;                 // closed if it was moved from
  std::uint64_t watched_ = 0; // by number: those that were not kept from the thread before
};

} // namespace cede
