// SPDX-License-Identifier: MIT
#include "heartbeat.h"

#include "fiber.h"

#include <cstring>

namespace cede::core {

void Heartbeat::beat(const detail::FiberRecord* fiber) noexcept {
  count(0);
  id_.store(fiber != nullptr ? fiber->id : 0, std::memory_order_release);
  std::uint64_t words[kWords] = {};
  static_assert(sizeof words == sizeof detail::FiberExtras::name);
  if (fiber != nullptr && fiber->extras != nullptr)
    std::memcpy(words, fiber->extras->name, sizeof words);
  for (std::size_t i = 0; i < kWords; ++i)
    name_[i].store(words[i], std::memory_order_release);
}

bool Heartbeat::describe(std::uint64_t beat, std::uint64_t& id, std::string& name) const {
  std::uint64_t words[kWords];
  id = id_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < kWords; ++i)
    words[i] = name_[i].load(std::memory_order_acquire);
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  name = text;
  return now() == beat;
}

} // namespace cede::core
