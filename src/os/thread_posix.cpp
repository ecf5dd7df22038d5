// SPDX-License-Identifier: MIT
// OS threads by pthreads. Layer os.
#include "thread.h"

#include <csignal>
#include <initializer_list>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cede::os {

// A key of pthreads, since its destructors run after those of thread_local objects, which may still
// switch. One key serves all: there is one `at_exit` in the library.
bool call_at_thread_exit(void (*at_exit)(void*), void* argument) noexcept {
  static pthread_key_t key;
  static const bool made = pthread_key_create(&key, at_exit) == 0;
  return made && pthread_setspecific(key, argument) == 0;
}

void call_around_fork(void (*before)(), void (*after)()) noexcept {
  pthread_atfork(before, after, after); // fails for want of memory only: forks are then as without
}

// By number: gettid() is younger than some C libraries.
std::uint64_t thread_number() noexcept {
  return static_cast<std::uint64_t>(syscall(SYS_gettid));
}

static_assert(sizeof(sigset_t) <= 128);

// Not those that an instruction of this thread raises: their handlers tell of faults.
WithoutSignals::WithoutSignals() noexcept {
  sigset_t all;
  sigfillset(&all);
  for (const int raised : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    sigdelset(&all, raised);
  pthread_sigmask(SIG_BLOCK, &all, reinterpret_cast<sigset_t*>(before_));
}

WithoutSignals::~WithoutSignals() {
  pthread_sigmask(SIG_SETMASK, reinterpret_cast<sigset_t*>(before_), nullptr);
}

Bounds thread_stack() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0)
    return {};
  void* low = nullptr;
  std::size_t bytes = 0;
  const bool known = pthread_attr_getstack(&attributes, &low, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  auto* begin = static_cast<std::byte*>(low);
  return known ? Bounds{begin, begin + bytes} : Bounds{};
}

} // namespace cede::os
