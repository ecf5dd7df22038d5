// SPDX-License-Identifier: MIT
#include "signals.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <sys/signalfd.h>

namespace cede::os {

const std::size_t kSignalBytes = sizeof(signalfd_siginfo);
static_assert(offsetof(signalfd_siginfo, ssi_signo) == 0);

namespace {

constexpr int kMostSignals = 64;

sigset_t set_of(std::uint64_t signals) noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (int number = 1; number <= kMostSignals; ++number)
    if ((signals >> (number - 1) & 1) != 0)
      sigaddset(&set, number);
  return set;
}

} // namespace

Opened open_signals(std::uint64_t signals) noexcept {
  const sigset_t set = set_of(signals);
  const int number = not_standard(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  return {number, number < 0 ? errno : 0};
}

std::uint64_t hold_signals(std::uint64_t signals) noexcept {
  const sigset_t set = set_of(signals);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  std::uint64_t fresh = 0;
  for (int number = 1; number <= kMostSignals; ++number)
    if ((signals >> (number - 1) & 1) != 0 && sigismember(&before, number) == 0)
      fresh |= std::uint64_t{1} << (number - 1);
  return fresh;
}

void let_signals(std::uint64_t signals) noexcept {
  const sigset_t set = set_of(signals);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

} // namespace cede::os
