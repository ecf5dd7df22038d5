// SPDX-License-Identifier: MIT
#include <cede/result.h>

namespace cede {
namespace {

class Category final : public std::error_category {
public:
  const char* name() const noexcept override { return "cede"; }

  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
    case Errc::no_memory:
      return "the system has no memory or address space left";
    case Errc::mapping_limit:
      return "the limit on memory mappings is reached: raise vm.max_map_count (sysctl)";
    case Errc::invalid_argument:
      return "a size or an option that can never work";
    case Errc::busy:
      return "it is in use already";
    case Errc::closed:
      return "it has ended";
    case Errc::timed_out:
      return "the deadline has passed";
    case Errc::cancelled:
      return "it was cancelled";
    case Errc::again:
      return "there is no room now: try later";
    case Errc::not_a_fiber:
      return "only a fiber can wait here: call it in one, for example by cede::run";
    case Errc::failed:
      return "an exception ended it";
    case Errc::already_joined:
      return "its result was moved out by an earlier join";
    case Errc::deadlock:
      return "this wait could never end: it is for oneself, or closes a circle of joins";
    }
    return "unknown error";
  }

  std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Errc>(code)) {
    case Errc::no_memory:
    case Errc::mapping_limit:
      return std::errc::not_enough_memory;
    case Errc::invalid_argument:
      return std::errc::invalid_argument;
    case Errc::busy:
      return std::errc::device_or_resource_busy;
    case Errc::timed_out:
      return std::errc::timed_out;
    case Errc::cancelled:
      return std::errc::operation_canceled;
    case Errc::again:
      return std::errc::resource_unavailable_try_again;
    case Errc::not_a_fiber:
      return std::errc::operation_not_permitted;
    case Errc::deadlock:
      return std::errc::resource_deadlock_would_occur;
    case Errc::closed:
    case Errc::failed:
    case Errc::already_joined:
      break;
    }
    return {code, *this};
  }
};

// Never destroyed: an error may be looked at in any static destructor.
union Storage {
  Category category;
  constexpr Storage() : category() {}
  ~Storage() {}
};
constinit Storage storage;

} // namespace

const std::error_category& category() noexcept {
  return storage.category;
}

} // namespace cede
