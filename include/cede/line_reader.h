// SPDX-License-Identifier: MIT
// Lines of a stream, however its bytes come.
#pragma once

#include <cede/stream.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace cede {

// Reads lines, each as long as `limit` at most:
//
//   cede::LineReader lines(socket);
//   while (cede::Result<std::string_view> line = lines.read_line())
//     std::cout << *line << '\n';
//
// It reads ahead, so the stream's bytes are read through it from then on. The stream has to live as
// long.
//   Thread    the stream's
class LineReader {
public:
  static constexpr std::size_t kUsualLimit = 64 * 1024;

  explicit LineReader(Stream& stream, std::size_t limit = kUsualLimit) noexcept
      : stream_(stream), limit_(limit) {}

  // The next line without its end, which is "\n" or "\r\n"; at the end of the stream also one
  // without. It is there until the next call. What has come of a line before an error or a deadline
  // is kept for the next call.
  //   Blocks    the calling fiber
  //   Fails     closed at the end; message_size, of std::errc, if the line is longer than the
  //   limit:
  //             it and what follows can still be read() as bytes. As Stream::read
  //   Throws    Cancelled; std::bad_alloc
  Result<std::string_view> read_line(Deadline deadline = kForever);

  // Bytes: those that were read ahead first, without waiting.
  //   Blocks, Fails, Throws    as Stream::read
  Result<std::size_t> read(std::span<std::byte> into, Deadline deadline = kForever);

private:
  std::string_view take(std::size_t end, std::size_t next) noexcept;

  Stream& stream_;
  const std::size_t limit_;
  std::string ahead_;        // what was read
  std::size_t begin_ = 0;    // of what hasn't been given yet
  std::size_t searched_ = 0; // to where there is no end of a line
};

} // namespace cede
