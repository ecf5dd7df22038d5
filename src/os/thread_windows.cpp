// SPDX-License-Identifier: MIT
// OS threads on Windows. Layer os.
#include "thread.h"

#include <atomic>
#include <windows.h>

namespace cede::os {
namespace {

std::atomic<void (*)(void*)> call_at_exit{nullptr};
DWORD slot = TLS_OUT_OF_INDEXES;

void NTAPI on_thread_exit(void*, DWORD reason, void*) {
  void (*call)(void*) = call_at_exit.load(std::memory_order_acquire); // pairs with the store
  if (reason != DLL_THREAD_DETACH || call == nullptr)
    return;
  if (void* argument = TlsGetValue(slot)) {
    TlsSetValue(slot, nullptr);
    call(argument);
  }
}

} // namespace

// Read by the loader, which calls what lies in .CRT$XL? in the order of the sections' names (PE
// format, the .tls section). This one comes behind the C runtime's, which destroys thread_local
// objects. A callback of fiber-local storage would run before it.
extern "C" {
extern const PIMAGE_TLS_CALLBACK cede_on_thread_exit;
[[gnu::section(".CRT$XLY"), gnu::used]] const PIMAGE_TLS_CALLBACK cede_on_thread_exit =
    on_thread_exit;
}

bool call_at_thread_exit(void (*at_exit)(void*), void* argument) noexcept {
  static const bool made = [at_exit] {
    slot = TlsAlloc();
    if (slot == TLS_OUT_OF_INDEXES)
      return false;
    call_at_exit.store(at_exit, std::memory_order_release);
    return true;
  }();
  return made && TlsSetValue(slot, argument);
}

void call_around_fork(void (*)(), void (*)()) noexcept {} // there is none

std::uint64_t thread_number() noexcept {
  return GetCurrentThreadId();
}

// The bounds that the thread information block has now: on a process's stack, those of the process.
// There are none that a thread could be interrupted by.
WithoutSignals::WithoutSignals() noexcept = default;
WithoutSignals::~WithoutSignals() = default;

Bounds thread_stack() noexcept {
  ULONG_PTR low = 0;
  ULONG_PTR high = 0;
  GetCurrentThreadStackLimits(&low, &high);
  return {reinterpret_cast<std::byte*>(low), reinterpret_cast<std::byte*>(high)};
}

} // namespace cede::os
