// SPDX-License-Identifier: MIT
// Rows: D-14 P-06
// Field reports: 9 10
// What Windows keeps of a stack in the thread information block, and what of the system relies on
// it.
#include "../../../arch/arch.h"
#include "support/text.h"

#include <cede/process.h>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <windows.h>

namespace cede {
namespace {

// Runs `f` in a process of `bytes`.
template <class F>
void in_process(F f, std::size_t bytes = 0) {
  Process main, process;
  newprocess(process,
             [&](void*) {
               f();
               return Next{main};
             },
             {.bytes = bytes})
      .value();
  transfer(main, process);
}

std::uintptr_t address_of(const void* object) {
  return reinterpret_cast<std::uintptr_t>(object);
}

// The block of this thread, never remembered over a switch.
volatile NT_TIB& block() {
  NT_TIB* self;
  asm volatile("movq %%gs:0x30, %0" : "=r"(self));
  return *self;
}

TEST(ThreadBlock, has_the_bounds_of_the_process_that_runs) {
  ULONG_PTR low = 0;
  ULONG_PTR high = 0;
  std::uintptr_t limit = 0;
  StackLimits limits;
  int* local_address = nullptr;
  in_process([&] {
    int local = 0;
    local_address = &local;
    GetCurrentThreadStackLimits(&low, &high);
    limit = address_of(block().StackLimit);
    limits = stack_limits();
  });
  EXPECT_EQ(high, address_of(limits.high));
  EXPECT_EQ(limit, address_of(limits.low));
  EXPECT_LT(low, limit);
  EXPECT_GT(low + 64 * 1024, limit); // within the guard region
  EXPECT_GT(address_of(local_address), limit);
  EXPECT_LT(address_of(local_address), high);
}

TEST(ThreadBlock, has_the_bounds_of_the_thread_again_after_a_process) {
  ULONG_PTR before[2], after[2];
  GetCurrentThreadStackLimits(&before[0], &before[1]);
  const std::uintptr_t limit = address_of(block().StackLimit);
  in_process([] {});
  GetCurrentThreadStackLimits(&after[0], &after[1]);
  EXPECT_EQ(before[0], after[0]);
  EXPECT_EQ(before[1], after[1]);
  EXPECT_GE(limit, address_of(block().StackLimit)); // it falls when the thread's stack grows
}

TEST(ThreadBlock, follows_memory_of_the_users) {
  alignas(16) static std::byte memory[64 * 1024];
  Process main, process;
  ULONG_PTR low = 0;
  ULONG_PTR high = 0;
  auto entry = [&](void*) {
    GetCurrentThreadStackLimits(&low, &high);
    return Next{main};
  };
  newprocess(process, entry, {.memory = memory}).value();
  transfer(main, process);
  EXPECT_EQ(low, address_of(memory));
  EXPECT_GT(high, low + sizeof memory - 1024);
  EXPECT_LE(high, low + sizeof memory);
}

// Probes every page of its frame first, as compilers do for large ones on this system.
[[gnu::noinline]] int use_large_frame() {
  volatile char large[64 * 1024];
  for (std::size_t i = 0; i < sizeof large; i += 512)
    large[i] = 1;
  return large[0] + large[sizeof large - 512];
}

TEST(ThreadBlock, lets_a_process_have_frames_of_many_pages) {
  int sum = 0;
  in_process([&] { sum = use_large_frame(); }, 256 * 1024);
  EXPECT_EQ(sum, 2);
}

TEST(ThreadBlock, lets_a_process_throw_and_catch) {
  std::string caught;
  in_process([&] {
    try {
      throw std::runtime_error("thrown");
    } catch (const std::exception& e) {
      caught = e.what();
    }
  });
  EXPECT_EQ(caught, "thrown");
}

TEST(ThreadBlock, lets_a_process_load_a_library) {
  bool is_loaded = false;
  in_process(
      [&] {
        HMODULE library = LoadLibraryW(L"winmm.dll");
        is_loaded = library != nullptr;
        FreeLibrary(library);
      },
      256 * 1024);
  EXPECT_TRUE(is_loaded);
}

// Sets the guarantee, waits, and returns what it is then.
ULONG set_guarantee_around(Process& self, Process& next, ULONG bytes) {
  SetThreadStackGuarantee(&bytes);
  transfer(self, next);
  ULONG present = 0;
  SetThreadStackGuarantee(&present); // asks only
  return present;
}

TEST(ThreadBlock, has_another_stack_guarantee_for_each_process) {
  Process main, first, second;
  ULONG of_first = 0;
  ULONG of_second = 0;
  auto entry = [&](Process& self, Process& next, ULONG bytes, ULONG& result) {
    return [&, bytes](void*) {
      result = set_guarantee_around(self, next, bytes);
      return Next{main};
    };
  };
  newprocess(first, entry(first, second, 0x6000, of_first)).value();
  newprocess(second, entry(second, main, 0x8000, of_second)).value();
  ULONG before = 0;
  SetThreadStackGuarantee(&before);
  transfer(main, first);
  transfer(main, second);
  transfer(main, first);
  ULONG after = 0;
  SetThreadStackGuarantee(&after);
  EXPECT_EQ(of_first, 0x6000u);
  EXPECT_EQ(of_second, 0x8000u);
  EXPECT_EQ(before, after);
}

TEST(ThreadBlock, has_another_fiber_for_each_process) {
  Process main, process;
  int of_thread = 0;
  int of_process = 0;
  void* const earlier = block().FiberData;
  void* first_seen = nullptr;
  void* kept = nullptr;
  auto entry = [&](void*) {
    first_seen = block().FiberData;
    block().FiberData = &of_process;
    transfer(process, main);
    kept = block().FiberData;
    return Next{main};
  };
  newprocess(process, entry).value();
  block().FiberData = &of_thread;
  transfer(main, process);
  EXPECT_EQ(block().FiberData, &of_thread);
  transfer(main, process);
  block().FiberData = earlier;
  EXPECT_EQ(first_seen, &of_thread); // it starts with that of who enters it
  EXPECT_EQ(kept, &of_process);
}

// Not on the stack that runs: there the system would call them.
EXCEPTION_REGISTRATION_RECORD list_of_thread, list_of_process;

TEST(ThreadBlock, has_another_list_of_handlers_for_each_process_and_none_at_first) {
  Process main, process;
  EXCEPTION_REGISTRATION_RECORD* const earlier = block().ExceptionList;
  std::uintptr_t first_seen = 0;
  void* kept = nullptr;
  auto entry = [&](void*) {
    first_seen = address_of(block().ExceptionList);
    block().ExceptionList = &list_of_process;
    transfer(process, main);
    kept = block().ExceptionList;
    return Next{main};
  };
  newprocess(process, entry).value();
  block().ExceptionList = &list_of_thread;
  transfer(main, process);
  EXPECT_EQ(block().ExceptionList, &list_of_thread);
  transfer(main, process);
  EXPECT_EQ(block().ExceptionList, &list_of_thread);
  block().ExceptionList = earlier;
  EXPECT_EQ(first_seen, static_cast<std::uintptr_t>(CEDE_FIRST_EXCEPTION_LIST));
  EXPECT_EQ(kept, &list_of_process);
}

TEST(ThreadBlock, has_the_same_stack_guarantee_for_every_new_process) {
  ULONG first_seen = 0;
  ULONG after = 0;
  std::thread([&] {
    ULONG of_thread = 0x6000;
    SetThreadStackGuarantee(&of_thread);
    in_process([&] { SetThreadStackGuarantee(&first_seen); }); // asks only
    SetThreadStackGuarantee(&after);
  }).join();
  EXPECT_EQ(first_seen, ULONG{CEDE_FIRST_GUARANTEED_BYTES});
  EXPECT_EQ(after, 0x6000u);
}

struct Visit {
  test::Trace trace;
  void* back = nullptr;
};

void WINAPI visited(void* argument) {
  auto& visit = *static_cast<Visit*>(argument);
  visit.trace << "fiber";
  SwitchToFiber(visit.back);
}

TEST(ThreadBlock, lets_a_process_switch_to_a_fiber_of_the_systems_and_back) {
  std::string trace;
  std::thread([&] {
    Visit visit;
    visit.back = ConvertThreadToFiber(nullptr);
    void* fiber = CreateFiber(0, visited, &visit);
    in_process([&] {
      const std::uintptr_t limit = address_of(block().StackLimit);
      visit.trace << "process";
      SwitchToFiber(fiber);
      visit.trace << (address_of(block().StackLimit) == limit ? "process" : "elsewhere");
    });
    visit.trace << "thread";
    DeleteFiber(fiber);
    ConvertFiberToThread();
    trace = visit.trace.text();
  }).join();
  EXPECT_EQ(trace, "process fiber process thread");
}

int fls_calls = 0;

void WINAPI on_fls_end(void* value) {
  fls_calls += *static_cast<int*>(value);
}

TEST(ThreadBlock, leaves_fiber_local_storage_to_the_thread) {
  const DWORD key = FlsAlloc(on_fls_end);
  int value = 1;
  void* seen = nullptr;
  std::thread([&] {
    in_process([&] { FlsSetValue(key, &value); });
    in_process([&] { seen = FlsGetValue(key); });
  }).join();
  EXPECT_EQ(seen, &value);
  EXPECT_EQ(fls_calls, 1);
  FlsFree(key);
  EXPECT_EQ(fls_calls, 1);
}

} // namespace
} // namespace cede
