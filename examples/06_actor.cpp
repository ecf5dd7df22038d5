// SPDX-License-Identifier: MIT
// An actor: a fiber that owns its state, and other threads that send it messages. Nobody locks.
#include <cede/cede.h>
#include <chrono>
#include <cstdio>
#include <deque>
#include <string>
#include <thread>
#include <vector>

// Lives on its scheduler's thread; others know only its address, a Remote and a Waker.
class Account {
public:
  // On the scheduler's thread.
  void deposit(int amount) { messages_.push_back(amount); }

  int serve(int expected) {
    for (int served = 0; served < expected; ++served) {
      while (messages_.empty())
        cede::park();
      balance_ += messages_.front();
      messages_.pop_front();
    }
    return balance_;
  }

private:
  std::deque<int> messages_;
  int balance_ = 0;
};

int main() {
  constexpr int kThreads = 4, kDeposits = 1000;
  Account account;
  cede::Scheduler scheduler({.post_limit = 100});
  auto actor =
      scheduler.spawn({.name = "account"}, [&] { return account.serve(kThreads * kDeposits); });
  std::vector<std::thread> customers;
  for (int i = 0; i < kThreads; ++i)
    customers.emplace_back([&account, wake = cede::waker(actor), remote = scheduler.remote()] {
      for (int deposit = 0; deposit < kDeposits;) {
        if (remote.post([&account] { account.deposit(1); })) {
          ++deposit;
          wake.wake();
        } else {
          std::this_thread::yield(); // as many wait as may
        }
      }
    });
  scheduler.run();
  for (std::thread& customer : customers)
    customer.join();
  std::printf("%d customers, balance %d\n", kThreads, actor.join());
}
