// SPDX-License-Identifier: MIT
// What an error says, and what a Result gives.
#include <cede/result.h>

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <system_error>

namespace cede {
namespace {

TEST(Errc, says_what_to_do_and_compares_with_the_standards_conditions) {
  EXPECT_STREQ(category().name(), "cede");
  EXPECT_NE(make_error_code(Errc::mapping_limit).message().find("vm.max_map_count"),
            std::string::npos);
  EXPECT_EQ(make_error_code(Errc::no_memory), std::errc::not_enough_memory);
  EXPECT_EQ(make_error_code(Errc::mapping_limit), std::errc::not_enough_memory);
  EXPECT_EQ(make_error_code(Errc::invalid_argument), std::errc::invalid_argument);
  EXPECT_EQ(make_error_code(Errc::busy), std::errc::device_or_resource_busy);
  EXPECT_NE(make_error_code(Errc::closed), std::errc::invalid_argument);
}

TEST(Errc, has_a_text_of_its_own_for_every_code) {
  std::string all;
  for (Errc code :
       {Errc::no_memory, Errc::mapping_limit, Errc::invalid_argument, Errc::busy, Errc::closed}) {
    const std::string text = make_error_code(code).message();
    EXPECT_NE(text, "unknown error");
    EXPECT_EQ(all.find(text), std::string::npos) << text;
    all += text;
  }
  EXPECT_EQ(category().message(999), "unknown error");
}

TEST(Result, holds_a_value_or_the_reason_for_none) {
  Result<int> value = 5;
  Result<int> none = Errc::busy;
  EXPECT_EQ(value.value(), 5);
  EXPECT_EQ(none.error(), Errc::busy);
  EXPECT_EQ(none.value_or(7), 7);
  EXPECT_THROW(none.value(), std::system_error);
  EXPECT_EQ(*std::move(value).transform([](int i) { return i * 2; }), 10);
}

} // namespace
} // namespace cede
