// SPDX-License-Identifier: MIT
// Tests of I/O, run with every back end that the machine has, and what they are made of.
#pragma once

#include <cede/cede.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <gtest/gtest.h>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace cede::test {

inline std::string name_of(Backend backend) {
  return backend == Backend::epoll ? "epoll" : "io_uring";
}

inline SchedulerOptions with(Backend backend) {
  SchedulerOptions options;
  options.backend = backend;
  return options;
}

inline std::vector<Backend> backends() {
  std::vector<Backend> had;
  for (const Backend backend : {Backend::epoll, Backend::io_uring}) {
    Scheduler scheduler(with(backend));
    if (scheduler.backend_name())
      had.push_back(backend);
  }
  return had;
}

// A test with a back end. When it is over no descriptor is left.
class WithBackend : public testing::TestWithParam<Backend> {
protected:
  static std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  void SetUp() override { before_ = open_descriptors(); }
  void TearDown() override { EXPECT_EQ(open_descriptors(), before_); }

  template <class F>
  static auto run(F main) {
    return cede::run(with(GetParam()), std::move(main));
  }

private:
  std::size_t before_ = 0;
};

#define CEDE_WITH_EACH_BACKEND(suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Each, suite, testing::ValuesIn(cede::test::backends()),                 \
                           [](const auto& info) { return cede::test::name_of(info.param); })

// Two streams that are connected.
struct Pair {
  File one;
  File other;
};

inline Pair make_pair(int type = SOCK_STREAM) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
  return {File::adopt(ends[0]).value(), File::adopt(ends[1]).value()};
}

// What one read gives, or the word for why there is nothing.
inline std::string read_text(Stream& stream, Deadline deadline = kForever) {
  std::array<std::byte, 4096> bytes;
  const Result<std::size_t> count = stream.read(bytes, deadline);
  if (!count)
    return "(" + count.error().message() + ")";
  return {reinterpret_cast<const char*>(bytes.data()), *count};
}

inline std::string read_text(Stream&& stream) {
  return read_text(stream);
}

inline bool write_text(Stream& stream, std::string_view text) {
  return static_cast<bool>(stream.write_all(text));
}

// Writes until there is no room. How much that was.
inline std::size_t fill(Stream& stream) {
  const std::vector<std::byte> bytes(1 << 16);
  return stream.write_all(std::span(bytes), now()).bytes == bytes.size()
             ? bytes.size() + fill(stream)
             : 0;
}

// Processor time of this thread.
inline std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

} // namespace cede::test
