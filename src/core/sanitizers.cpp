// SPDX-License-Identifier: MIT
// Never instrumented: ThreadSanitizer counts the return from a function that switched as one of
// the fiber that it switched to.
#include "sanitizers.h"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define CEDE_VALGRIND RUNNING_ON_VALGRIND
#else
#define CEDE_VALGRIND 0
#define VALGRIND_STACK_REGISTER(low, high) 0
#define VALGRIND_STACK_DEREGISTER(id) static_cast<void>(id)
#define VALGRIND_MAKE_MEM_UNDEFINED(low, bytes) static_cast<void>(0)
#define VALGRIND_DISABLE_ERROR_REPORTING static_cast<void>(0)
#define VALGRIND_ENABLE_ERROR_REPORTING static_cast<void>(0)
#endif

#if defined(__ELF__)
#define CEDE_WEAK [[gnu::weak]]

// The sanitizers' public interfaces, declared weak: they are there if the program was linked with
// one. compiler-rt: sanitizer/common_interface_defs.h, asan_interface.h, tsan_interface.h,
// lsan_interface.h.
extern "C" {
CEDE_WEAK void __sanitizer_start_switch_fiber(void** fake, const void* bottom, std::size_t size);
CEDE_WEAK void __sanitizer_finish_switch_fiber(void* fake, const void** bottom, std::size_t* size);
CEDE_WEAK void __asan_unpoison_memory_region(const volatile void* begin, std::size_t size);
CEDE_WEAK void __lsan_register_root_region(const void* begin, std::size_t size);
CEDE_WEAK void __lsan_unregister_root_region(const void* begin, std::size_t size);
CEDE_WEAK void* __tsan_get_current_fiber();
CEDE_WEAK void* __tsan_create_fiber(unsigned flags);
CEDE_WEAK void __tsan_destroy_fiber(void* fiber);
CEDE_WEAK void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#endif

namespace cede::core {

namespace {

[[maybe_unused]] std::size_t bytes_of(detail::Stack& stack) noexcept {
  return static_cast<std::size_t>(stack.high() - stack.low);
}

// What frames that never returned have left on the stack is forgotten.
void tell_valgrind_of_new(detail::Stack& stack) noexcept {
  if (CEDE_VALGRIND)
    stack.valgrind_id = VALGRIND_STACK_REGISTER(stack.low, stack.high());
}

void tell_valgrind_of_ended(detail::Stack& stack) noexcept {
  if (!CEDE_VALGRIND)
    return;
  VALGRIND_STACK_DEREGISTER(stack.valgrind_id);
  VALGRIND_MAKE_MEM_UNDEFINED(stack.low, bytes_of(stack));
}

#if defined(__ELF__)
thread_local void* tsan_fiber_of_thread = nullptr;
#endif

} // namespace

bool are_processes_observed() noexcept {
  return CEDE_VALGRIND || are_switches_observed();
}

const std::byte* skip_bytes(const std::byte* low, const std::byte* high, std::byte value) noexcept {
  VALGRIND_DISABLE_ERROR_REPORTING;
  while (low != high && *low == value)
    ++low;
  VALGRIND_ENABLE_ERROR_REPORTING;
  return low;
}

#if defined(__ELF__)
bool are_switches_observed() noexcept {
  return __sanitizer_start_switch_fiber != nullptr || __tsan_create_fiber != nullptr;
}

void tell_of_new_thread() noexcept {
  if (__tsan_get_current_fiber != nullptr)
    tsan_fiber_of_thread = __tsan_get_current_fiber();
}

// Who joins the thread waits until the sanitizer has seen the end of its own fiber.
void tell_of_ended_thread() noexcept {
  if (__tsan_switch_to_fiber != nullptr && __tsan_get_current_fiber() != tsan_fiber_of_thread)
    __tsan_switch_to_fiber(tsan_fiber_of_thread, 0);
}

void tell_of_new_process(detail::Stack& stack) noexcept {
  tell_valgrind_of_new(stack);
  // Else what only a suspended process refers to would count as leaked.
  if (__lsan_register_root_region != nullptr)
    __lsan_register_root_region(stack.low, bytes_of(stack));
  if (__tsan_create_fiber != nullptr)
    stack.tsan_fiber = __tsan_create_fiber(0);
}

void tell_of_ended_process(detail::Stack& stack) noexcept {
  tell_valgrind_of_ended(stack);
  // Frames that never returned have left redzones behind.
  if (__asan_unpoison_memory_region != nullptr)
    __asan_unpoison_memory_region(stack.low, bytes_of(stack));
  if (__lsan_unregister_root_region != nullptr)
    __lsan_unregister_root_region(stack.low, bytes_of(stack));
  if (__tsan_destroy_fiber != nullptr)
    __tsan_destroy_fiber(stack.tsan_fiber);
  stack.tsan_fiber = nullptr;
}

Identity current_identity() noexcept {
  Identity identity;
  if (__tsan_get_current_fiber != nullptr)
    identity.tsan_fiber = __tsan_get_current_fiber();
  return identity;
}

void tell_of_switch(void** fake_stack, const Identity& to) noexcept {
  if (__sanitizer_start_switch_fiber != nullptr)
    __sanitizer_start_switch_fiber(fake_stack, to.low, to.bytes);
  if (__tsan_switch_to_fiber != nullptr)
    __tsan_switch_to_fiber(to.tsan_fiber, 0);
}

void tell_of_arrival(void* fake_stack, Identity* from) noexcept {
  if (__sanitizer_finish_switch_fiber == nullptr)
    return;
  const void* low = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &low, &bytes);
  if (from != nullptr) {
    from->low = static_cast<const std::byte*>(low);
    from->bytes = bytes;
  }
}

#else

bool are_switches_observed() noexcept {
  return false;
}
void tell_of_new_thread() noexcept {}
void tell_of_ended_thread() noexcept {}
void tell_of_new_process(detail::Stack& stack) noexcept {
  tell_valgrind_of_new(stack);
}
void tell_of_ended_process(detail::Stack& stack) noexcept {
  tell_valgrind_of_ended(stack);
}
Identity current_identity() noexcept {
  return {};
}
void tell_of_switch(void**, const Identity&) noexcept {}
void tell_of_arrival(void*, Identity*) noexcept {}

#endif

bool runs_on_valgrind() noexcept {
  return CEDE_VALGRIND != 0;
}

} // namespace cede::core
