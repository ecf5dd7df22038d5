// SPDX-License-Identifier: MIT
// What tests share: a trace of what happened, compared whole.
#pragma once

#include <string>

namespace cede::test {

// Appends words, separated by spaces.
class Trace {
public:
  Trace& operator<<(const std::string& word) {
    text_ += (text_.empty() ? "" : " ") + word;
    return *this;
  }
  Trace& operator<<(int number) { return *this << std::to_string(number); }
  const std::string& text() const { return text_; }

private:
  std::string text_;
};

} // namespace cede::test
