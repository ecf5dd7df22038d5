// SPDX-License-Identifier: MIT
#include "check.h"

#include "../os/fault.h"
#include "slab.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace cede::core {

Line& Line::operator<<(std::string_view text) noexcept {
  const std::size_t room = sizeof text_ - 1 - bytes_; // the last byte is the newline's
  const std::size_t taken = text.size() < room ? text.size() : room;
  std::memcpy(text_ + bytes_, text.data(), taken);
  bytes_ += taken;
  return *this;
}

Line& Line::operator<<(std::size_t number) noexcept {
  char digits[20];
  std::size_t at = sizeof digits;
  do
    digits[--at] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  return *this << std::string_view(digits + at, sizeof digits - at);
}

Line& Line::operator<<(const void* address) noexcept {
  char digits[16];
  auto value = reinterpret_cast<std::uintptr_t>(address);
  std::size_t at = sizeof digits;
  do
    digits[--at] = "0123456789abcdef"[value % 16];
  while ((value /= 16) != 0);
  return *this << "0x" << std::string_view(digits + at, sizeof digits - at);
}

void Line::print() noexcept {
  text_[bytes_++] = '\n';
  os::write_error(text_, bytes_);
  bytes_ = 0;
}

void fail_check(const char* expression, const char* file, int line, const char* meaning) noexcept {
  const std::byte* here = static_cast<const std::byte*>(__builtin_frame_address(0));
  Line message;
  message << "cede: " << meaning << " (check `" << expression << "` failed at " << file << ":"
          << static_cast<std::size_t>(line) << ", in " << name_of_stack(here) << ")";
  message.print();
  std::abort();
}

} // namespace cede::core
