// SPDX-License-Identifier: MIT
// What a fiber's body leaves in its record: itself, then its result or its exception.
#pragma once

#include <cede/detail/fiber_record.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

namespace cede::detail {

// A body and then its result, in the record or, if that is too small, elsewhere.
template <class F, class R>
struct FiberBody {
  using Value = std::conditional_t<
      std::is_reference_v<R>, std::remove_reference_t<R>*,
      std::conditional_t<std::is_void_v<R>, std::monostate, std::remove_cv_t<R>>>;

  union {
    F body;
    Value value;
  };

  explicit FiberBody(F&& callable) : body(std::move(callable)) {}
  ~FiberBody() {}

  static constexpr bool kIsInline();
  static FiberBody& of(FiberRecord& fiber) noexcept;

  // The body is destroyed before its result is stored, in the same memory.
  static void run(FiberRecord& fiber) {
    FiberBody& self = of(fiber);
    auto call = [&self]() -> R {
      struct End {
        FiberBody& self;
        ~End() { std::destroy_at(&self.body); }
      } end{self};
      return std::invoke(self.body);
    };
    if constexpr (std::is_void_v<R>) {
      call();
    } else if constexpr (std::is_reference_v<R>) {
      R value = call();
      ::new (static_cast<void*>(&self.value)) Value(&value);
    } else {
      Value value = call();
      ::new (static_cast<void*>(&self.value)) Value(std::move(value));
    }
  }

  static void discard(FiberRecord& fiber) noexcept { std::destroy_at(&of(fiber).body); }
  static void adopt(FiberRecord& fiber, void* value) {
    ::new (static_cast<void*>(&of(fiber).value)) Value(std::move(*static_cast<Value*>(value)));
  }
  static void drop(FiberRecord& fiber) noexcept { std::destroy_at(&of(fiber).value); }
  static void release(FiberRecord& fiber) noexcept {
    if constexpr (!kIsInline())
      ::operator delete(static_cast<void*>(&of(fiber)), std::align_val_t(alignof(FiberBody)));
  }
};

// Where the body and its result lie.
inline void* body_of(FiberRecord& fiber) noexcept {
  void* inside = fiber.storage;
  return fiber.kind->is_inline ? inside : *std::launder(static_cast<void**>(inside));
}

template <class R>
inline constexpr char kResultType = 0; // its address names the type

template <class F, class R>
inline constexpr FiberKind kFiberKind{FiberBody<F, R>::run,        FiberBody<F, R>::discard,
                                      FiberBody<F, R>::adopt,      FiberBody<F, R>::drop,
                                      FiberBody<F, R>::release,    &kResultType<R>,
                                      FiberBody<F, R>::kIsInline()};

// An exception lies behind the pointer to a body that lies elsewhere.
inline std::exception_ptr& error_of(FiberRecord& fiber) noexcept {
  return *std::launder(reinterpret_cast<std::exception_ptr*>(fiber.storage + sizeof(void*)));
}

template <class F, class R>
constexpr bool FiberBody<F, R>::kIsInline() {
  // NOLINTNEXTLINE(misc-redundant-expression): for bodies whose size is their alignment
  return sizeof(FiberBody) <= kInlineBodyBytes && alignof(FiberBody) <= alignof(std::max_align_t);
}

template <class F, class R>
FiberBody<F, R>& FiberBody<F, R>::of(FiberRecord& fiber) noexcept {
  return *std::launder(static_cast<FiberBody*>(body_of(fiber)));
}

} // namespace cede::detail
