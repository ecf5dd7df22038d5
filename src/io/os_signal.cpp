// SPDX-License-Identifier: MIT
#include <cede/os_signal.h>

#include "handle.h"

#include "../os/signals.h"

#include <array>
#include <cstring>
#include <utility>

namespace cede {

namespace {
constexpr int kMostSignals = 64;
constexpr std::size_t kMostBytes = 256;
} // namespace

Result<OsSignals> OsSignals::watch(std::initializer_list<int> numbers) noexcept {
  std::uint64_t signals = 0;
  for (const int number : numbers) {
    if (number < 1 || number > kMostSignals)
      return std::make_error_code(std::errc::invalid_argument);
    signals |= std::uint64_t{1} << (number - 1);
  }
  const os::Opened opened = os::open_signals(signals);
  if (opened.error != 0)
    return io::system_error(opened.error);
  Result<File> file = File::adopt(opened.number);
  if (!file) {
    os::close_descriptor(opened.number);
    return file.error();
  }
  OsSignals watching(std::move(*file));
  watching.watched_ = os::hold_signals(signals);
  return watching;
}

OsSignals& OsSignals::operator=(OsSignals&& other) noexcept {
  stop();
  file_ = std::move(other.file_);
  watched_ = other.watched_;
  return *this;
}

void OsSignals::stop() noexcept {
  if (file_.is_open())
    os::let_signals(watched_);
}

Result<int> OsSignals::next(Deadline deadline) {
  std::array<std::byte, kMostBytes> bytes;
  const Result<std::size_t> count = file_.read(std::span(bytes).first(os::kSignalBytes), deadline);
  if (!count)
    return count.error();
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return static_cast<int>(number);
}

} // namespace cede
