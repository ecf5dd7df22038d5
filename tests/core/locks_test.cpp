// SPDX-License-Identifier: MIT
// Field reports: 17
// The library holds no lock when it runs code of the user's: at a switch, at an entry's move and in
// destructors that an unwinding runs. Seen by this program's own pthread_mutex_lock, which stands
// in front of the C library's.
#include "support/environment.h"
#include "support/in_process.h"

#include <gtest/gtest.h>

#if !__has_include(<dlfcn.h>)
TEST(Locks, are_not_held_at_a_switch) {
  GTEST_SKIP() << "mutexes can't be watched on this system";
}
#else
#include <atomic>
#include <deque>
#include <dlfcn.h>
#include <pthread.h>

namespace {

constinit thread_local int held = 0;
constinit std::atomic<int> taken{0};

using Function = int (*)(pthread_mutex_t*);

} // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++held;
  ++taken;
  return real(mutex);
}

extern "C" int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_unlock"));
  --held;
  return real(mutex);
}

namespace cede {
namespace {

struct Witness {
  Witness() = default;
  Witness(Witness&&) noexcept { EXPECT_EQ(held, 0); }
  ~Witness() { EXPECT_EQ(held, 0); }
};

TEST(Locks, are_not_held_at_a_switch) {
  if (test::is_observed())
    GTEST_SKIP() << "the observer stands in front of the mutexes";
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
  if (taken == before)
    GTEST_SKIP() << "the library's mutexes can't be seen in this build";
}

} // namespace
} // namespace cede
#endif
