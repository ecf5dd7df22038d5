// SPDX-License-Identifier: MIT
#include <cede/line_reader.h>

#include <algorithm>
#include <cstring>

namespace cede {

namespace {
constexpr std::size_t kAtOnce = 4096;
} // namespace

Result<std::string_view> LineReader::read_line(Deadline deadline) {
  searched_ = std::max(searched_, begin_);
  for (;;) {
    const std::size_t end = ahead_.find('\n', searched_);
    searched_ = std::min(end, ahead_.size());
    // Its end, and the '\r' that may come before it, don't count.
    if (searched_ - begin_ > limit_ + 1)
      return std::make_error_code(std::errc::message_size);
    if (end != std::string::npos) {
      const std::string_view line = take(end, end + 1);
      if (line.size() > limit_) {
        begin_ = static_cast<std::size_t>(line.data() - ahead_.data());
        return std::make_error_code(std::errc::message_size);
      }
      return line;
    }
    ahead_.erase(0, begin_);
    searched_ -= std::exchange(begin_, 0);
    const std::size_t had = ahead_.size();
    ahead_.resize(had + kAtOnce);
    struct Shrink { // also if it is cancelled
      std::string& text;
      std::size_t size;
      ~Shrink() { text.resize(size); }
    } shrink{ahead_, had};
    const Result<std::size_t> count =
        stream_.read(std::as_writable_bytes(std::span(ahead_)).subspan(had), deadline);
    if (!count)
      return count.error();
    shrink.size += *count;
    if (*count > 0)
      continue;
    if (had == 0)
      return Errc::closed;
    return take(had, had);
  }
}

// The line that ends there; the next one begins at `next`.
std::string_view LineReader::take(std::size_t end, std::size_t next) noexcept {
  std::string_view line = std::string_view(ahead_).substr(begin_, end - begin_);
  if (line.ends_with('\r') && next > end)
    line.remove_suffix(1);
  begin_ = next;
  return line;
}

Result<std::size_t> LineReader::read(std::span<std::byte> into, Deadline deadline) {
  const std::size_t count = std::min(ahead_.size() - begin_, into.size());
  if (count == 0)
    return stream_.read(into, deadline);
  std::memcpy(into.data(), ahead_.data() + begin_, count);
  begin_ += count;
  return count;
}

} // namespace cede
