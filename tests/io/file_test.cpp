// SPDX-License-Identifier: MIT
// Rows: P-78 P-82
// Files on a disk, terminals and the standard streams.
#include "support/backends.h"

#include <cede/cede.h>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

using namespace cede;
using namespace cede::test;
using namespace std::chrono_literals;

namespace {

class Files : public WithBackend {
protected:
  void SetUp() override {
    WithBackend::SetUp();
    char name[] = "/tmp/cede_file_test_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override {
    std::filesystem::remove_all(folder);
    WithBackend::TearDown();
  }

  std::string path(const char* name) const { return folder + "/" + name; }

  std::string folder;
};
CEDE_WITH_EACH_BACKEND(Files);

TEST_P(Files, are_written_and_read_where_the_last_call_ended) {
  run([this] {
    File file = File::open(path("a"), OpenMode::create_new).value();
    EXPECT_TRUE(write_text(file, "one "));
    EXPECT_TRUE(write_text(file, "two"));
    EXPECT_EQ(read_text(file), "");
    file = File::open(path("a")).value();
    std::array<std::byte, 4> word{};
    EXPECT_EQ(file.read(word).value(), 4u);
    EXPECT_EQ(read_text(file), "two");
    EXPECT_EQ(read_text(file), "");
  });
}

TEST_P(Files, are_read_and_written_at_a_place) {
  run([this] {
    File file = File::open(path("a"), OpenMode::create_new).value();
    EXPECT_EQ(file.write_at(3, std::as_bytes(std::span("def", 3))).value(), 3u);
    EXPECT_EQ(file.write_at(0, std::as_bytes(std::span("abc", 3))).value(), 3u);
    std::array<std::byte, 2> two{};
    EXPECT_EQ(file.read_at(2, two).value(), 2u);
    EXPECT_EQ(static_cast<char>(two[0]), 'c');
    EXPECT_EQ(static_cast<char>(two[1]), 'd');
    EXPECT_EQ(read_text(file), "abcdef"); // from the beginning: nothing has moved its place
    EXPECT_EQ(file.read_at(100, two).value(), 0u);
  });
}

TEST_P(Files, open_as_they_are_asked_to) {
  run([this] {
    EXPECT_EQ(File::open(path("a")).error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(File::open(path("a"), OpenMode::read_write).error(),
              std::errc::no_such_file_or_directory);
    EXPECT_TRUE(File::open(path("a"), OpenMode::create_new));
    EXPECT_EQ(File::open(path("a"), OpenMode::create_new).error(), std::errc::file_exists);
    for (const char* text : {"x", "y"}) {
      File file = File::open(path("a"), OpenMode::append).value();
      EXPECT_TRUE(write_text(file, text));
    }
    EXPECT_EQ(read_text(File::open(path("a")).value()), "xy");
    EXPECT_TRUE(File::open(path("a"), OpenMode::write));
    EXPECT_EQ(read_text(File::open(path("a")).value()), "");
    EXPECT_EQ(File::open(std::string("a\0b", 3)).error(), Errc::invalid_argument);
    EXPECT_EQ(File::open(folder, OpenMode::write).error(), std::errc::is_a_directory);
    File directory = File::open(folder).value();
    std::array<std::byte, 1> byte{};
    EXPECT_EQ(directory.read(byte).error(), std::errc::is_a_directory);
  });
}

// Its numbers are never those of the standard streams, also where one of them is closed.
TEST_P(Files, never_have_the_number_of_a_standard_stream) {
  const int kept = dup(0);
  close(0);
  run([] {
    Pipe pipe = Pipe::make().value();
    EXPECT_GT(pipe.reader.native_handle(), 2);
    EXPECT_TRUE(write_text(pipe.writer, "x"));
    EXPECT_EQ(read_text(pipe.reader), "x");
    File file = File::open("/dev/null").value();
    EXPECT_GT(file.native_handle(), 2);
    EXPECT_EQ(standard_input().error(), std::errc::bad_file_descriptor);
  });
  dup2(kept, 0);
  close(kept);
}

// The standard input is a pipe that others may share: it is read without changing it.
TEST_P(Files, of_the_standard_streams_are_borrowed_as_they_are) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept = dup(0);
  ASSERT_EQ(dup2(ends[0], 0), 0);
  run([&] {
    std::string trace;
    File input = standard_input().value();
    EXPECT_EQ(input.native_handle(), 0);
    Fiber<void> reader = spawn([&] { trace += read_text(input); });
    sleep_for(2ms);
    trace += "timer ";
    EXPECT_EQ(write(ends[1], "typed", 5), 5);
    reader.join();
    EXPECT_EQ(trace, "timer typed");
    EXPECT_EQ(fcntl(0, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_TRUE(input.close());
    EXPECT_GE(fcntl(0, F_GETFD), 0);
    File again = standard_input().value();
    EXPECT_EQ(again.release().value(), 0);
    EXPECT_GE(fcntl(0, F_GETFD), 0);
  });
  dup2(kept, 0);
  close(kept);
  close(ends[0]);
  close(ends[1]);
}

TEST_P(Files, of_the_standard_streams_never_stop_the_thread_however_much_is_written) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept = dup(1);
  ASSERT_EQ(dup2(ends[1], 1), 1);
  run([&] {
    File output = standard_output().value();
    File reader = File::adopt(ends[0]).value();
    const std::vector<std::byte> bytes(1'000'000);
    Fiber<IoCount> writer = spawn([&] { return output.write_all(std::span(bytes)); });
    std::size_t count = 0;
    std::vector<std::byte> some(1 << 16);
    while (count < bytes.size())
      count += reader.read(some).value();
    EXPECT_EQ(writer.join().bytes, bytes.size());
  });
  dup2(kept, 1);
  close(kept);
  close(ends[1]);
}

TEST_P(Files, that_are_terminals_give_each_line) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(master, 0);
  ASSERT_EQ(grantpt(master), 0);
  ASSERT_EQ(unlockpt(master), 0);
  run([&] {
    File terminal = File::open(ptsname(master), OpenMode::read_write).value();
    Fiber<std::string> reader = spawn([&] {
      const std::string first = read_text(terminal);
      return first + "|" + read_text(terminal);
    });
    yield();
    EXPECT_EQ(write(master, "one\ntwo\n", 8), 8);
    EXPECT_EQ(reader.join(), "one\n|two\n");
  });
  close(master);
}

} // namespace
