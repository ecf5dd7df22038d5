// SPDX-License-Identifier: MIT
// Memory faults as OS signals, on an alternate stack. Layer os.
#include "fault.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace cede::os {
namespace {

FaultReporter report = nullptr;
struct sigaction earlier_segv;
struct sigaction earlier_bus;

std::byte* stack_pointer(const void* context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<std::byte*>(machine.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return reinterpret_cast<std::byte*>(machine.sp);
#else
  static_cast<void>(machine);
  return nullptr;
#endif
}

// As the kernel would have called it, but for the stack, which is the alternate one in any case.
void call_earlier(struct sigaction& earlier, int number, siginfo_t* info, void* context) {
  const struct sigaction action = earlier;
  if (action.sa_flags & SA_RESETHAND)
    earlier = {}; // SIG_DFL
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, &action.sa_mask, &mask);
  if (action.sa_flags & SA_NODEFER) {
    sigset_t itself;
    sigemptyset(&itself);
    sigaddset(&itself, number);
    pthread_sigmask(SIG_UNBLOCK, &itself, nullptr);
  }
  if (action.sa_flags & SA_SIGINFO)
    action.sa_sigaction(number, info, context);
  else
    action.sa_handler(number);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void die_of(int number, const siginfo_t* info) {
  signal(number, SIG_DFL);
  if (info->si_code <= 0) // sent, not faulted: it won't come again by itself
    raise(number);
}

void on_fault(int number, siginfo_t* info, void* context) {
  struct sigaction& earlier = number == SIGSEGV ? earlier_segv : earlier_bus;
  const bool faulted = info->si_code > 0;
  if (faulted && report(static_cast<std::byte*>(info->si_addr), stack_pointer(context)))
    die_of(number, info); // the instruction is run again, and the core shows it
  else if (!(earlier.sa_flags & SA_SIGINFO) && earlier.sa_handler == SIG_IGN && !faulted)
    return;
  else if (!(earlier.sa_flags & SA_SIGINFO) &&
           (earlier.sa_handler == SIG_DFL || earlier.sa_handler == SIG_IGN))
    die_of(number, info);
  else
    call_earlier(earlier, number, info, context);
}

std::size_t fault_stack_bytes() noexcept {
  // SIGSTKSZ is a constant; the kernel knows what this processor's registers take.
#ifdef AT_MINSIGSTKSZ
  const std::size_t minimum = getauxval(AT_MINSIGSTKSZ);
#else
  const std::size_t minimum = 0;
#endif
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = std::max<std::size_t>(64 * 1024, minimum + 32 * 1024);
  return (bytes + page - 1) / page * page;
}

thread_local void* fault_stack = nullptr;

} // namespace

void install_fault_handler(FaultReporter reporter) noexcept {
  report = reporter;
  // Known before the handler can be called.
  sigaction(SIGSEGV, nullptr, &earlier_segv);
  sigaction(SIGBUS, nullptr, &earlier_bus);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

void enter_fault_stack() noexcept {
  stack_t present;
  if (sigaltstack(nullptr, &present) != 0 || !(present.ss_flags & SS_DISABLE))
    return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = fault_stack_bytes();
  void* base = mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (base == MAP_FAILED)
    return;
  mprotect(base, page, PROT_NONE);
  stack_t wanted = {};
  wanted.ss_sp = static_cast<std::byte*>(base) + page;
  wanted.ss_size = bytes;
  if (sigaltstack(&wanted, nullptr) == 0)
    fault_stack = base;
  else
    munmap(base, page + bytes);
}

void leave_fault_stack() noexcept {
  if (fault_stack == nullptr)
    return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  stack_t present;
  if (sigaltstack(nullptr, &present) == 0 &&
      present.ss_sp == static_cast<std::byte*>(fault_stack) + page) {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  munmap(fault_stack, page + fault_stack_bytes());
  fault_stack = nullptr;
}

void write_error(const char* text, std::size_t bytes) noexcept {
  while (bytes > 0) {
    const ssize_t written = write(STDERR_FILENO, text, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return;
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

} // namespace cede::os
