// SPDX-License-Identifier: MIT
// Rows: P-78
// Lines, however their bytes come.
#include "support/backends.h"

#include <cede/cede.h>
#include <cede/line_reader.h>

#include <gtest/gtest.h>
#include <random>
#include <string>

using namespace cede;
using namespace cede::test;
using namespace std::chrono_literals;

namespace {

// Lines until the first error, and that.
std::string all_lines(LineReader& lines) {
  std::string trace;
  for (;;) {
    const Result<std::string_view> line = lines.read_line(after(10s));
    if (!line)
      return trace + (line.error() == Errc::closed ? "." : line.error().message());
    trace += "[" + std::string(*line) + "]";
  }
}

std::string lines_of(std::string_view text, std::size_t limit = LineReader::kUsualLimit) {
  return run([=] {
    Pipe pipe = Pipe::make().value();
    Fiber<void> writer = spawn([&] {
      std::ignore = pipe.writer.write_all(text);
      pipe.writer.close().value();
    });
    LineReader lines(pipe.reader, limit);
    std::string trace = all_lines(lines);
    pipe.reader.close().value();
    writer.join();
    return trace;
  });
}

TEST(LineReader, gives_lines_without_their_ends) {
  EXPECT_EQ(lines_of("a\nbc\r\n\n\r\nd\n"), "[a][bc][][][d].");
  EXPECT_EQ(lines_of(""), ".");
  EXPECT_EQ(lines_of("\n"), "[].");
}

TEST(LineReader, gives_a_last_line_without_an_end) {
  EXPECT_EQ(lines_of("a\nb"), "[a][b].");
  EXPECT_EQ(lines_of("a\nb\r"), "[a][b\r].");
}

TEST(LineReader, keeps_a_carriage_return_that_ends_no_line) {
  EXPECT_EQ(lines_of("a\rb\n\r\r\n"), "[a\rb][\r].");
}

TEST(LineReader, takes_no_line_beyond_its_limit) {
  const std::string error = std::make_error_code(std::errc::message_size).message();
  EXPECT_EQ(lines_of("abc\nabcd\n", 3), "[abc]" + error);
  EXPECT_EQ(lines_of("abc\r\nabcd\r\n", 3), "[abc]" + error);
  EXPECT_EQ(lines_of("abc\nabcdefghi", 3), "[abc]" + error);
  EXPECT_EQ(lines_of("abc", 3), "[abc].");
  EXPECT_EQ(lines_of(std::string(100'000, 'x')), error);
}

TEST(LineReader, goes_on_with_the_bytes_of_a_line_that_is_too_long) {
  run([] {
    Pipe pipe = Pipe::make().value();
    EXPECT_TRUE(write_text(pipe.writer, "a\nlong line\n"));
    LineReader lines(pipe.reader, 4);
    EXPECT_EQ(lines.read_line().value(), "a");
    EXPECT_EQ(lines.read_line().error(), std::errc::message_size);
    EXPECT_EQ(lines.read_line().error(), std::errc::message_size);
    std::array<std::byte, 5> bytes{};
    EXPECT_EQ(lines.read(bytes).value(), 5u);
    EXPECT_EQ(static_cast<char>(bytes[0]), 'l');
    EXPECT_EQ(lines.read_line().value(), "line");
    EXPECT_TRUE(write_text(pipe.writer, "z"));
    EXPECT_EQ(lines.read(bytes).value(), 1u);
    EXPECT_EQ(static_cast<char>(bytes[0]), 'z');
  });
}

TEST(LineReader, keeps_what_had_come_before_a_deadline_and_a_cancellation) {
  run([] {
    Pipe pipe = Pipe::make().value();
    LineReader lines(pipe.reader);
    EXPECT_TRUE(write_text(pipe.writer, "be"));
    EXPECT_EQ(lines.read_line(after(1ms)).error(), Errc::timed_out);
    EXPECT_TRUE(write_text(pipe.writer, "gi"));
    Fiber<void> reader = spawn([&] { std::ignore = lines.read_line(); });
    sleep_for(1ms);
    reader.cancel();
    std::ignore = reader.AnyFiber::join(kForever);
    EXPECT_TRUE(write_text(pipe.writer, "n\n"));
    EXPECT_EQ(lines.read_line().value(), "begin");
  });
}

// Whatever the pieces that the bytes come in.
TEST(LineReader, gives_the_same_lines_of_any_pieces) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::string text;
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    const std::string line(random() % 3 == 0 ? 0 : random() % 9000,
                           static_cast<char>('a' + i % 26));
    text += line + (random() % 2 == 0 ? "\n" : "\r\n");
    expected += "[" + line + "]";
  }
  const std::string trace = run([&] {
    Pipe pipe = Pipe::make().value();
    Fiber<void> writer = spawn([&] {
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t piece = std::min<std::size_t>(1 + random() % 5000, text.size() - at);
        EXPECT_TRUE(write_text(pipe.writer, std::string_view(text).substr(at, piece)));
        at += piece;
        yield();
      }
      pipe.writer.close().value();
    });
    LineReader lines(pipe.reader);
    std::string all = all_lines(lines);
    writer.join();
    return all;
  });
  EXPECT_TRUE(trace == expected + ".");
}

} // namespace
