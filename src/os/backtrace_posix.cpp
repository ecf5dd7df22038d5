// SPDX-License-Identifier: MIT
// Backtraces by an OS signal, whose handler walks the stack that it interrupted. Layer os.
//
// SIGURG, since what nobody handles is ignored: a program that doesn't know of it isn't ended by
// it.
#include "backtrace.h"

#include "fault.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
namespace {
int backtrace(void**, int) {
  return 0;
}
char** backtrace_symbols(void* const*, int) {
  return nullptr;
}
} // namespace
#endif

namespace cede::os {
namespace {

constexpr int kSignal = SIGURG;
struct sigaction earlier;

// Of this thread; they follow by older(). Atomic, since the handler may interrupt a change.
constinit thread_local std::atomic<BacktraceTarget*> newest{nullptr};

const void* program_counter(const void* context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(machine.pc);
#else
  static_cast<void>(machine);
  return nullptr;
#endif
}

void on_signal(int number, siginfo_t* info, void* context) {
  const int error = errno;
  bool is_ours = false;
  for (BacktraceTarget* target = newest.load(std::memory_order_relaxed); target != nullptr;
       target = target->older())
    is_ours = target->answer(program_counter(context)) || is_ours;
  if (!is_ours && (earlier.sa_flags & SA_SIGINFO))
    earlier.sa_sigaction(number, info, context);
  else if (!is_ours && earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN)
    earlier.sa_handler(number);
  errno = error;
}

bool install_handler() noexcept {
  void* frame = nullptr;
  backtrace(&frame, 1); // its first call may load a library, which no handler may
  sigaction(kSignal, nullptr, &earlier);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  return sigaction(kSignal, &action, nullptr) == 0;
}

} // namespace

BacktraceTarget::BacktraceTarget() noexcept : older_(newest.load()) {
  static_assert(sizeof(pthread_t) <= sizeof thread_);
  thread_ = (unsigned long long)pthread_self(); // a number or a pointer
  enter_fault_stack();                          // a fiber's may be too small to walk it on
  newest.store(this);
  [[maybe_unused]] static const bool is_installed = install_handler();
}

BacktraceTarget::~BacktraceTarget() {
  std::atomic<BacktraceTarget*>* place = &newest;
  while (place->load() != this)
    place = &place->load()->older_;
  place->store(older());
}

std::size_t BacktraceTarget::take(void* (&frames)[kMostFrames],
                                  std::chrono::nanoseconds patience) noexcept {
  stage_.store(Stage::asked);
  if (pthread_kill((pthread_t)thread_, kSignal) != 0) {
    stage_.store(Stage::idle);
    return 0;
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  while (stage_.load() == Stage::asked && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Stage asked = Stage::asked;
  if (stage_.compare_exchange_strong(asked, Stage::idle))
    return 0;
  while (stage_.load() != Stage::answered)
    std::this_thread::yield();
  std::copy_n(frames_, count_, frames);
  stage_.store(Stage::idle);
  return count_;
}

// The frames of the handler itself are left out.
bool BacktraceTarget::answer(const void* interrupted_at) noexcept {
  Stage asked = Stage::asked;
  if (!stage_.compare_exchange_strong(asked, Stage::answering))
    return false;
  void** end = frames_ + std::max(backtrace(frames_, kMostFrames), 0);
  void** first = std::find(frames_, end, interrupted_at);
  if (first != end)
    end = std::copy(first, end, frames_);
  count_ = static_cast<std::size_t>(end - frames_);
  stage_.store(Stage::answered);
  return true;
}

std::string name_of_address(const void* address) {
  void* frame = const_cast<void*>(address);
  char** names = backtrace_symbols(&frame, 1);
  std::string name = names != nullptr ? names[0] : "";
  std::free(names);
  return name;
}

} // namespace cede::os
