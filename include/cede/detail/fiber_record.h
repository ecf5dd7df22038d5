// SPDX-License-Identifier: MIT
// A fiber as its scheduler and the inlined parts of cede see it.
//
// Invariants: a record that is created or ready and neither suspended nor held is on exactly one
// ready ring, that of its priority; one that waits is on none, and its waiter knows on which lists
// it is. The record stays until the fiber has ended and the last handle is gone, also if the
// scheduler is gone before.
#pragma once

#include <cede/detail/compiler.h>
#include <cede/detail/execution.h>
#include <cede/waiter.h>

#include <cstddef>
#include <cstdint>

namespace cede::core {
struct SchedulerState;
} // namespace cede::core

namespace cede::detail {

struct FiberAccess;
struct FiberExtras;
struct FiberRecord;
struct Lender;
struct WakerState;

// What a body is, for those who know only its record. One a type of body.
struct FiberKind {
  // Calls the body in its fiber, destroys it and stores what it returned; throws what it threw.
  void (*run)(FiberRecord& fiber);
  // Destroys a body that never ran.
  void (*discard)(FiberRecord& fiber) noexcept;
  // Stores a finish() value for the body, which was unwound.
  void (*adopt)(FiberRecord& fiber, void* value);
  // Destroys the stored result.
  void (*drop)(FiberRecord& fiber) noexcept;
  // Frees what lies outside the record.
  void (*release)(FiberRecord& fiber) noexcept;
  // Names the type of the result.
  const void* result_type;
  // Whether both lie in the record; else it holds a pointer to them.
  bool is_inline;
};

enum class FiberStage : std::uint8_t {
  created,  // it has never run
  starved,  // the same, and no stack could be had: it is on the scheduler's list of those
  ready,    // it runs, or would run if it were not suspended
  waiting,  // its waiter knows for what
  finished, // its end is known to everybody
};

enum class Outcome : std::uint8_t {
  none,      // it hasn't ended
  done,      // it returned, or called finish()
  cancelled, // it was unwound, or never ran
  failed,    // an exception left the body: it lies in the record
  no_memory, // no stack could be had: it never ran
};

inline constexpr std::size_t kInlineBodyBytes = 80;

struct FiberRecord {
  // What runs when the fiber is dispatched: whatever stack was running when it waited. Owns the
  // fiber's own stack from the first dispatch to the end. Its gate is `empty` before.
  Execution slot;

  // owner thread only: what waits and wake-ups look at is the second cache line
  FiberRecord* next = nullptr; // on the ready ring, or on a list of the scheduler's
  FiberRecord* prev = nullptr;
  core::SchedulerState* scheduler = nullptr; // null once that is gone
  Waiter* waiter = nullptr;                  // while it waits, and until it runs again
  std::uint16_t shields = 0;                 // Shields in scope
  std::uint8_t by_result = 0;                // CancelByResults in scope
  std::uint8_t no_suspends = 0;              // NoSuspends in scope
  std::int8_t priority = 0;                  // with what it is lent
  std::int8_t own_priority = 0;
  FiberStage stage = FiberStage::created;
  Outcome outcome = Outcome::none;
  std::uint16_t throws = 0;           // how often a cancellation was thrown in it; it has a limit
  std::uint16_t held = 0;             // mutexes
  bool is_cancelled : 1 = false;      // requested; stays
  bool is_finishing : 1 = false;      // the request is a finish()
  bool has_permit : 1 = false;        // a wake() came before its park()
  bool is_owned : 1 = false;          // a Fiber<R> exists that can join
  bool yields_quietly : 1 = false;    // suspended in a yield that doesn't throw, or will already
  bool is_raised : 1 = false;         // an exception waits for its next wait, in its extras
  bool is_watched : 1 = false;        // a NoSuspend is in scope, or its order of locks is checked
  bool has_order_checked : 1 = false; // its scheduler looks in which order it locks
  bool is_suspended : 1 = false;      // kept off the ready ring
  bool is_held : 1 = false;         // created, and the same until its limit has room: in the queue
  bool is_hooked : 1 = false;       // its extras say what to call at each switch
  bool is_result_taken : 1 = false; // by the join of one that can't be copied, or of an exception
  bool is_claimed : 1 = false;      // its exception is its group's, until that is gone
  bool uses_thread_values : 1 = false; // as its FiberLocals: the main of run()
  std::uint32_t references = 0;        // handles, and one for the fiber until it has ended
  const FiberKind* kind = nullptr;
  WaitList joiners; // those who wait for its end
  std::uint64_t id = 0;
  FiberExtras* extras = nullptr; // what few fibers have
  Lender* lenders = nullptr;     // what it holds and others wait for
  Place spawned;

  // The body, and after its end the result or the exception.
  alignas(16) std::byte storage[kInlineBodyBytes];
};

static_assert(sizeof(FiberRecord) <= 256);

// In front of `place`, which is on a ready ring: behind everybody else if that is the one that
// runs.
inline void link_before(FiberRecord& place, FiberRecord& fiber) noexcept {
  fiber.next = &place;
  fiber.prev = place.prev;
  place.prev->next = &fiber;
  place.prev = &fiber;
}

} // namespace cede::detail
