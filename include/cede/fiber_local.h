// SPDX-License-Identifier: MIT
// Variables of which each fiber has its own.
#pragma once

#include <cede/detail/compiler.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace cede {

namespace detail {

struct FiberLocalKey;

// A value, as one of those of its owner: a fiber or a thread.
struct FiberValue {
  FiberLocalKey* key = nullptr; // of a fiber's; null in a thread's, which may outlive it
  std::uint64_t number = 0;     // the key's
  FiberValue* older = nullptr;  // the owner's next, last made first
  void (*destroy)(FiberValue& value) noexcept = nullptr;
};

struct FiberLocalKey {
  FiberLocalKey() noexcept;
  FiberLocalKey(const FiberLocalKey&) = delete;
  FiberLocalKey& operator=(const FiberLocalKey&) = delete;
  ~FiberLocalKey();

  const std::uint64_t number; // never used again
  // any thread: the fibers that hold a value
  std::atomic<std::size_t> holders{0};
};

} // namespace detail

// A variable of which each fiber has a value of its own, made at its first use there:
//
//   static cede::FiberLocal<Request*> request;      // begins as T()
//   static cede::FiberLocal<Random> dice([] { return Random(seed()); });
//   *request = &mine;
//
// It needs no scheduler: outside fibers each thread has a value, and the main fiber of run() goes
// on with that of its thread. A fiber's values are destroyed in it when its body has ended, those
// made last first, before anybody learns of its end. Their destructors may wait, as under a Shield,
// and may use other FiberLocals; what they make is destroyed next. A thread's values end with it,
// those of the thread that ends the program only with their FiberLocals.
//
// Destroying it destroys, there, the values of this thread and of its fibers; while a fiber of
// another thread holds one, it fails a check. T is destroyed without exceptions.
//   Thread    any; a reference to a value is for its fiber, or thread, and good until the value
//   ends
template <class T>
class FiberLocal {
public:
  FiberLocal() requires std::default_initializable<T>
  = default;
  // `T make()` is called at each first use, in the fiber that uses it, and may wait.
  template <class F>
  requires(std::is_invocable_r_v<T, F&> &&
           !std::is_same_v<F, FiberLocal>) explicit FiberLocal(F make)
      : make_(std::move(make)) {}

  // The value of whoever runs.
  //   Throws    what making it throws; std::bad_alloc
  T& get() const;
  T& operator*() const { return get(); }
  T* operator->() const { return &get(); }

private:
  struct Value;

  std::function<T()> make_; // empty for T()
  // Last: its destructor destroys values, and may wait for it while others use this.
  mutable detail::FiberLocalKey key_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

// Null if whoever runs has none.
FiberValue* find_value(const FiberLocalKey& key) noexcept;

// Gives `value`, which is new, to whoever runs. If making it has made another one meanwhile, that
// one stays and the new one is destroyed. Returns the one that stays.
//   Throws    std::bad_alloc, and then `value` is still the caller's
FiberValue& adopt_value(FiberLocalKey& key, FiberValue& value);

} // namespace detail

template <class T>
struct FiberLocal<T>::Value : detail::FiberValue {
  T value;

  Value() : detail::FiberValue{.destroy = destroy_value}, value() {}
  explicit Value(const std::function<T()>& make)
      : detail::FiberValue{.destroy = destroy_value}, value(make()) {}

  static void destroy_value(detail::FiberValue& value) noexcept {
    delete static_cast<Value*>(&value);
  }
  static Value* make(const std::function<T()>& initialiser) {
    if constexpr (std::default_initializable<T>)
      if (!initialiser)
        return new Value;
    return new Value(initialiser);
  }
};

template <class T>
T& FiberLocal<T>::get() const {
  if (detail::FiberValue* found = detail::find_value(key_)) [[likely]]
    return static_cast<Value*>(found)->value;
  Value* made = Value::make(make_);
  try {
    return static_cast<Value&>(detail::adopt_value(key_, *made)).value;
  } catch (...) {
    delete made;
    throw;
  }
}

} // namespace cede
