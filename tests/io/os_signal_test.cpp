// SPDX-License-Identifier: MIT
// OS signals that are waited for.
#include "support/backends.h"

#include <cede/cede.h>
#include <cede/os_signal.h>

#include <csignal>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace cede;
using namespace cede::test;
using namespace std::chrono_literals;

namespace {

class Signals : public WithBackend {};
CEDE_WITH_EACH_BACKEND(Signals);

TEST_P(Signals, are_waited_for_while_the_others_go_on) {
  run([] {
    OsSignals signals = OsSignals::watch({SIGUSR1, SIGUSR2}).value();
    EXPECT_EQ(signals.next(after(1ms)).error(), Errc::timed_out);
    Fiber<int> waiting = spawn([&] { return signals.next().value(); });
    yield();
    kill(getpid(), SIGUSR2);
    EXPECT_EQ(waiting.join(), SIGUSR2);
    kill(getpid(), SIGUSR1); // before anybody waits
    EXPECT_EQ(signals.next().value(), SIGUSR1);
  });
}

volatile std::sig_atomic_t handled = 0;

TEST_P(Signals, do_afterwards_what_they_did_before) {
  struct sigaction before {};
  struct sigaction counting {};
  counting.sa_handler = [](int) { handled = handled + 1; };
  sigaction(SIGUSR1, &counting, &before);
  handled = 0;
  run([] {
    {
      OsSignals signals = OsSignals::watch({SIGUSR1}).value();
      OsSignals moved = std::move(signals);
      kill(getpid(), SIGUSR1);
      EXPECT_EQ(moved.next().value(), SIGUSR1);
      EXPECT_EQ(handled, 0);
      kill(getpid(), SIGUSR1);
    }
    EXPECT_EQ(handled, 1); // the one that nobody waited for
    raise(SIGUSR1);
    EXPECT_EQ(handled, 2);
  });
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(Signals, of_a_number_that_is_none_are_refused) {
  for (const int number : {0, -1, 65})
    EXPECT_EQ(OsSignals::watch({SIGUSR1, number}).error(), std::errc::invalid_argument);
}

} // namespace
