// SPDX-License-Identifier: MIT
// A parser that is fed piece by piece: it waits for more in the middle of its loops, and its state
// is its place in the code.
#include <cede/cede.h>
#include <cstdio>
#include <string>

// Takes any text, returns the words that it has completed so far.
using Words = cede::Continuation<std::string(std::string_view)>;

Words make_parser() {
  return Words([](auto& yield, std::string_view input) {
    std::string completed, word;
    auto next = [&]() -> char {
      while (input.empty()) {
        input = yield(completed);
        completed.clear();
      }
      const char c = input.front();
      input.remove_prefix(1);
      return c;
    };
    for (char c = next(); c != '.'; c = next()) {
      if (c != ' ') {
        word += c;
        continue;
      }
      completed += "[" + word + "]";
      word.clear();
    }
    return completed + "[" + word + "]";
  });
}

int main() {
  Words parse = make_parser();
  for (const char* piece : {"co", "operative pro", "cesses with stacks", "."})
    std::printf("%-20s -> %s\n", piece, parse(piece).c_str());
  std::printf("%s\n", parse.done() ? "done" : "waiting");
}
