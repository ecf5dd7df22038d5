// SPDX-License-Identifier: MIT
// Field reports: 17
// The library holds no lock when it runs code of the user's: at a switch, at an entry's move and in
// destructors that an unwinding runs. Seen by this program's own pthread_mutex_lock, which the
// linker puts in place of the C library's.
#include "support/environment.h"
#include "support/in_process.h"

#include <gtest/gtest.h>

#ifdef _WIN32
TEST(Locks, are_not_held_at_a_switch) {
  GTEST_SKIP() << "the emulated thread_local takes a lock itself, so it can't count them";
}
#else
#include <atomic>
#include <deque>
#include <pthread.h>

namespace {

constinit thread_local int held = 0;
constinit std::atomic<int> taken{0};

} // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap gives these names
extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  ++held;
  ++taken;
  return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  --held;
  return __real_pthread_mutex_unlock(mutex);
}

} // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

namespace cede {
namespace {

struct Witness {
  Witness() = default;
  Witness(Witness&&) noexcept { EXPECT_EQ(held, 0); }
  ~Witness() { EXPECT_EQ(held, 0); }
};

TEST(Locks, are_not_held_at_a_switch) {
  const int before = taken;
  Process main;
  std::deque<Process> workers;
  for (std::size_t i = 0; i < 300; ++i) {
    Process& worker = workers.emplace_back();
    newprocess(worker,
               [&, witness = Witness()](void*) {
                 Witness local;
                 EXPECT_EQ(held, 0);
                 transfer(worker, main);
                 EXPECT_EQ(held, 0);
                 return Next{main};
               },
               {.bytes = i % 2 * 100000})
        .value();
    EXPECT_EQ(held, 0);
    if (i % 3 != 0)
      transfer(main, worker);
    EXPECT_EQ(held, 0);
  }
  workers.clear();
  trim();
  EXPECT_EQ(held, 0);
  EXPECT_GT(taken, before);
}

} // namespace
} // namespace cede
#endif
