// SPDX-License-Identifier: MIT
// What cede needs to know of an OS thread. Layer os.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cede::os {

// Calls `at_exit(argument)` when this thread ends, after its thread_local objects are destroyed.
// Once a thread; a later call replaces the argument. Not called for a thread that ends the program.
// False if the system has no key left for it.
bool call_at_thread_exit(void (*at_exit)(void* argument), void* argument) noexcept;

// Calls `before` ahead of every fork of this program, on the thread that forks, and `after` behind
// it, in the parent and in the child. Nothing to do where there is no fork.
void call_around_fork(void (*before)(), void (*after)()) noexcept;

// While one is in scope no OS signal is delivered to this thread, nor to those that it starts,
// ever.
class WithoutSignals {
public:
  WithoutSignals() noexcept;
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals();

private:
  alignas(8) std::byte before_[128]; // which were kept from it
};

// This thread, as the system and debuggers number it.
std::uint64_t thread_number() noexcept;

struct Bounds {
  std::byte* low = nullptr;
  std::byte* high = nullptr;
};

// The stack that the system gave to this thread; null bounds where it won't say.
Bounds thread_stack() noexcept;

} // namespace cede::os
