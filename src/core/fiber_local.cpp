// SPDX-License-Identifier: MIT
#include <cede/fiber_local.h>

#include "check.h"
#include "fiber.h"
#include "scheduler_state.h"
#include "thread.h"

#include <cede/cancel.h>
#include <utility>
#include <vector>

namespace cede {

namespace detail {

// The values of a fiber or of a thread.
//
// Invariants: each is on the list and in the table. At least half of the table is empty, and no
// empty place lies between the one that a number asks for and the one that it stands at.
struct FiberValues {
  FiberValue* newest = nullptr;
  std::vector<FiberValue*> table; // by number; its size is a power of two
  std::size_t count = 0;
  // A circle of the owners on one thread, through the thread itself.
  FiberValues* next = this;
  FiberValues* prev = this;

  FiberValues() = default;
  FiberValues(const FiberValues&) = delete;
  FiberValues& operator=(const FiberValues&) = delete;
  ~FiberValues() {
    prev->next = next;
    next->prev = prev;
  }

  // Where it stands, or the empty place where it would.
  FiberValue*& place_of(std::uint64_t number) noexcept {
    std::size_t place = number & (table.size() - 1);
    while (table[place] != nullptr && table[place]->number != number)
      place = (place + 1) & (table.size() - 1);
    return table[place];
  }

  FiberValue* find(std::uint64_t number) noexcept {
    return table.empty() ? nullptr : place_of(number);
  }

  void insert(FiberValue& value) {
    if (2 * (count + 1) > table.size()) {
      std::vector<FiberValue*> larger(table.empty() ? 8 : 2 * table.size());
      table.swap(larger);
      for (FiberValue* other = newest; other != nullptr; other = other->older)
        place_of(other->number) = other;
    }
    place_of(value.number) = &value;
    value.older = std::exchange(newest, &value);
    ++count;
  }

  // Null if there is none of this number.
  FiberValue* remove(std::uint64_t number) noexcept {
    FiberValue* value = find(number);
    if (value == nullptr)
      return nullptr;
    FiberValue** link = &newest;
    while (*link != value)
      link = &(*link)->older;
    *link = value->older;
    --count;
    // Those behind it may have stood nearer to where they belong, but for it.
    FiberValue** place = &place_of(number);
    *place = nullptr;
    for (;;) {
      place = place == &table.back() ? table.data() : place + 1;
      FiberValue* other = std::exchange(*place, nullptr);
      if (other == nullptr)
        return value;
      place_of(other->number) = other;
    }
  }
};

namespace {

constexpr std::size_t kMostMadeByDestructors = 1000;

constinit std::atomic<std::uint64_t> last_number{0};

// The fiber whose own values are used now; null if it is the thread's.
FiberRecord* fiber_with_values() noexcept {
  FiberRecord* me = core::running_fiber();
  return me != nullptr && !me->uses_thread_values ? me : nullptr;
}

FiberValues& values_of_thread() {
  core::enter_thread(); // its end is to be told of
  FiberValues*& values = thread().values;
  if (values == nullptr)
    values = new FiberValues;
  return *values;
}

FiberValues& values_of(FiberRecord& fiber) {
  FiberExtras* extras = core::extras_of(fiber);
  if (extras == nullptr)
    throw std::bad_alloc();
  if (extras->values == nullptr) {
    FiberValues& neighbour = values_of_thread();
    auto* values = extras->values = new FiberValues;
    values->prev = &neighbour;
    values->next = std::exchange(neighbour.next, values);
    values->next->prev = values;
  }
  return *extras->values;
}

// One that was removed from its owner. The release is for the destructor of the key.
void destroy(FiberValue& value) noexcept {
  FiberLocalKey* key = value.key;
  value.destroy(value);
  if (key != nullptr)
    key->holders.fetch_sub(1, std::memory_order_release);
}

// A destructor that uses another value finds it, or makes it anew.
void destroy_all(FiberValues& values) noexcept {
  const Shield shield;
  std::size_t most = values.count + kMostMadeByDestructors;
  while (values.newest != nullptr) {
    CEDE_CHECK(most-- > 0, "the destructors of FiberLocals make values without end");
    destroy(*values.remove(values.newest->number));
  }
}

} // namespace

FiberLocalKey::FiberLocalKey() noexcept
    : number(last_number.fetch_add(1, std::memory_order_relaxed)) {}

// The values are collected first: a destructor may wait, and fibers come and go meanwhile.
FiberLocalKey::~FiberLocalKey() {
  const Shield shield;
  FiberValue* values = nullptr;
  if (FiberValues* first = thread().values) {
    FiberValues* owner = first;
    do {
      if (FiberValue* value = owner->remove(number)) {
        value->older = values;
        values = value;
      }
      owner = owner->next;
    } while (owner != first);
  }
  while (values != nullptr)
    destroy(*std::exchange(values, values->older));
  CEDE_CHECK(holders.load(std::memory_order_acquire) == 0, // with the release in destroy
             "a FiberLocal is destroyed while a fiber of another thread holds a value");
}

FiberValue* find_value(const FiberLocalKey& key) noexcept {
  const FiberRecord* me = fiber_with_values();
  FiberValues* values = nullptr;
  if (me == nullptr)
    values = thread().values;
  else if (me->extras != nullptr)
    values = me->extras->values;
  return values != nullptr ? values->find(key.number) : nullptr;
}

FiberValue& adopt_value(FiberLocalKey& key, FiberValue& value) {
  FiberRecord* me = fiber_with_values();
  FiberValues& values = me != nullptr ? values_of(*me) : values_of_thread();
  if (FiberValue* other = values.find(key.number)) {
    value.destroy(value);
    return *other;
  }
  value.number = key.number;
  values.insert(value);
  if (me != nullptr) {
    value.key = &key;
    key.holders.fetch_add(1, std::memory_order_relaxed);
  }
  return value;
}

} // namespace detail

namespace core {

void destroy_values(detail::FiberRecord& fiber) noexcept {
  if (fiber.extras == nullptr || fiber.extras->values == nullptr)
    return;
  detail::destroy_all(*fiber.extras->values);
  delete std::exchange(fiber.extras->values, nullptr);
}

// Where a scheduler is left, so are its fibers' places in the circle.
void destroy_values(detail::ThreadBlock& block) noexcept {
  if (block.values == nullptr)
    return;
  detail::destroy_all(*block.values);
  if (block.values->next == block.values)
    delete std::exchange(block.values, nullptr);
}

} // namespace core
} // namespace cede
