// SPDX-License-Identifier: MIT
#include "sanitizers.h"

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
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

#if defined(__ELF__)
namespace {

std::size_t bytes_of(detail::Stack& stack) noexcept {
  return static_cast<std::size_t>(stack.high() - stack.low);
}

} // namespace

bool are_switches_observed() noexcept {
  return __sanitizer_start_switch_fiber != nullptr || __tsan_create_fiber != nullptr;
}

void tell_of_new_process(detail::Stack& stack) noexcept {
  // An earlier owner's frames may have left redzones behind.
  if (__asan_unpoison_memory_region != nullptr)
    __asan_unpoison_memory_region(stack.low, bytes_of(stack));
  // Else what only a suspended process refers to would count as leaked.
  if (__lsan_register_root_region != nullptr)
    __lsan_register_root_region(stack.low, bytes_of(stack));
  if (__tsan_create_fiber != nullptr)
    stack.tsan_fiber = __tsan_create_fiber(0);
}

void tell_of_ended_process(detail::Stack& stack) noexcept {
  if (__lsan_unregister_root_region != nullptr)
    __lsan_unregister_root_region(stack.low, bytes_of(stack));
  if (__tsan_destroy_fiber != nullptr && stack.tsan_fiber != nullptr)
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
void tell_of_new_process(detail::Stack&) noexcept {}
void tell_of_ended_process(detail::Stack&) noexcept {}
Identity current_identity() noexcept {
  return {};
}
void tell_of_switch(void**, const Identity&) noexcept {}
void tell_of_arrival(void*, Identity*) noexcept {}

#endif

void tell_valgrind_of_stack([[maybe_unused]] std::byte* low,
                            [[maybe_unused]] std::byte* high) noexcept {
#ifdef VALGRIND_STACK_REGISTER
  VALGRIND_STACK_REGISTER(low, high);
#endif
}

} // namespace cede::core
