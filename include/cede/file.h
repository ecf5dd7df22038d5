// SPDX-License-Identifier: MIT
// Files and pipes.
#pragma once

#include <cede/stream.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cede {

enum class OpenMode : std::uint8_t {
  read,
  write,      // made if it isn't there, emptied if it is
  append,     // made if it isn't there
  read_write, // has to be there
  create_new, // to read and write; must not be there
};

// A file, or whatever else has a descriptor: a pipe, a terminal, an eventfd.
//
//   cede::Result<cede::File> file = cede::File::open("notes.txt");
//   std::array<std::byte, 4096> some;
//   cede::Result<std::size_t> count = file->read(some);
//
// Where the system can't say when a file is ready, since it always is, a helper thread of the
// scheduler's reads and writes it, so that a slow disk stops nobody else.
class File : public Stream {
public:
  File() noexcept = default;

  // Opens one. `permissions` are those of one that it makes, less the program's mask.
  //   Blocks    the calling fiber, for as long as the system takes
  //   Fails     what the system says; invalid_argument for a path with a zero in it
  static Result<File> open(const std::string& path, OpenMode mode = OpenMode::read,
                           unsigned permissions = 0666, detail::Place made = CEDE_CALLER);

  // Owns a descriptor that the program has from elsewhere, and makes it not block. Those of the
  // standard streams, 0 to 2, are borrowed: they are never closed nor changed, since other
  // programs share them.
  //   Fails     what the system says, if it isn't open
  static Result<File> adopt(int number, detail::Place made = CEDE_CALLER) noexcept;

  // At a place of a file on a disk, which doesn't move the one at which read() and write() go on.
  // Any number of them at once.
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into,
                              Deadline deadline = kForever);
  Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::byte> bytes,
                               Deadline deadline = kForever);

private:
  friend struct Pipe;
  using Stream::Stream;
  // As adopt(), and it is closed if that fails.
  static Result<File> own(int number, detail::Place made) noexcept;
};

// A pipe: what is written into one end is read from the other.
struct Pipe {
  File reader;
  File writer;

  //   Fails     what the system says
  static Result<Pipe> make(detail::Place made = CEDE_CALLER) noexcept;
};

// The standard streams, borrowed.
//   Fails     what the system says, if the program was started without it
Result<File> standard_input() noexcept;
Result<File> standard_output() noexcept;
Result<File> standard_error() noexcept;

} // namespace cede
