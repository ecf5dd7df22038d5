// SPDX-License-Identifier: MIT
// Field reports: 31
// What the standard library and the C library need of a stack fits the default one.
#include "support/in_process.h"

#include <cstdio>
#include <ctime>
#include <gtest/gtest.h>
#include <iomanip>
#include <limits>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

#if __has_include(<netdb.h>)
#include <netdb.h>
#endif

namespace cede {
namespace {

TEST(LibraryCall, prints_the_largest_long_double) {
  test::in_process([] {
    char text[8192];
    const int bytes =
        std::snprintf(text, sizeof text, "%Lf", std::numeric_limits<long double>::max());
    EXPECT_GT(bytes, 300);
  });
}

TEST(LibraryCall, prints_to_an_unbuffered_stream) {
  test::in_process([] { EXPECT_GT(std::fprintf(stderr, "%.17g and %s\n", 0.1, "text"), 0); });
}

#if __has_include(<netdb.h>)
TEST(LibraryCall, resolves_localhost) {
  test::in_process([] {
    addrinfo* found = nullptr;
    addrinfo wanted = {};
    wanted.ai_socktype = SOCK_STREAM;
    if (getaddrinfo("localhost", "80", &wanted, &found) == 0)
      freeaddrinfo(found);
    EXPECT_NE(getaddrinfo("127.0.0.256", "80", &wanted, &found), -12345);
  });
}
#endif

TEST(LibraryCall, matches_a_regular_expression) {
  test::in_process([] {
    const std::regex words("([a-z]+)-([0-9]+)\\s*(x|y)*");
    std::smatch match;
    const std::string text = "report-31 xyxy";
    ASSERT_TRUE(std::regex_match(text, match, words));
    EXPECT_EQ(match[2], "31");
  });
}

TEST(LibraryCall, streams_a_double) {
  test::in_process([] {
    std::ostringstream out;
    out << std::setprecision(17) << std::fixed << 0.5 << ' ' << std::numeric_limits<double>::max();
    EXPECT_EQ(out.str().substr(0, 5), "0.500");
  });
}

TEST(LibraryCall, formats_a_time) {
  test::in_process([] {
    char text[64];
    const std::time_t epoch = 0;
    EXPECT_GT(std::strftime(text, sizeof text, "%Y-%m-%d %A %Z", std::localtime(&epoch)), 10u);
  });
}

[[gnu::noinline]] int throw_from(int depth) {
  if (depth == 0)
    throw std::runtime_error("from below");
  return throw_from(depth - 1) + 1;
}

TEST(LibraryCall, throws_and_catches) {
  test::in_process([] { EXPECT_THROW(throw_from(50), std::runtime_error); });
  test::in_process({.bytes = kMinimumStackBytes},
                   [] { EXPECT_THROW(throw_from(5), std::runtime_error); });
}

} // namespace
} // namespace cede
