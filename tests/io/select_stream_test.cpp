// SPDX-License-Identifier: MIT
// Rows: P-79 P-81
// Streams among the branches of a select.
#include "support/backends.h"

#include <cede/cede.h>
#include <cede/select_stream.h>

#include <gtest/gtest.h>
#include <string>

using namespace cede;
using namespace cede::test;
using namespace std::chrono_literals;

namespace {

class SelectStreams : public WithBackend {};
CEDE_WITH_EACH_BACKEND(SelectStreams);

// The word for what a branch's function was given.
std::string text_of(const Result<void>& how) {
  return how ? "went" : how.error().message();
}

TEST_P(SelectStreams, are_taken_when_they_are_ready) {
  run([] {
    Pair pair = make_pair();
    std::string text;
    const auto note = [&](const Result<void>& how) { text = text_of(how); };
    EXPECT_EQ(select(on_readable(pair.one, note), otherwise()), 1u);
    EXPECT_EQ(select(on_readable(pair.one, note), on_writable(pair.one, note)), 1u);
    EXPECT_EQ(text, "went");
    EXPECT_TRUE(write_text(pair.other, "x"));
    EXPECT_EQ(select(on_readable(pair.one, note), otherwise()), 0u);
    EXPECT_EQ(read_text(pair.one), "x"); // it took nothing
  });
}

TEST_P(SelectStreams, are_waited_for_among_others) {
  run([] {
    Pair pair = make_pair();
    Channel<int> channel(0);
    Fiber<void> other = spawn([&] {
      sleep_for(1ms);
      EXPECT_TRUE(write_text(pair.other, "x"));
    });
    EXPECT_EQ(select(on_receive(channel, [](const Result<int>&) {}), on_readable(pair.one),
                     on_deadline(after(30s))),
              1u);
    other.join();
    EXPECT_EQ(read_text(pair.one), "x");
    EXPECT_EQ(select(on_readable(pair.one), on_deadline(after(1ms))), 1u);
    Fiber<void> sender = spawn([&] { EXPECT_TRUE(channel.send(5)); });
    EXPECT_EQ(select(on_receive(channel, [](const Result<int>&) {}), on_readable(pair.one)), 0u);
    sender.join();
    // Nothing is left of those that were not taken.
    EXPECT_TRUE(write_text(pair.other, "y"));
    EXPECT_EQ(read_text(pair.one), "y");
  });
}

TEST_P(SelectStreams, of_both_directions_of_one) {
  run([] {
    Pair pair = make_pair();
    fill(pair.one);
    Fiber<std::size_t> selecting =
        spawn([&] { return select(on_writable(pair.one), on_readable(pair.one)); });
    yield();
    EXPECT_TRUE(write_text(pair.other, "x"));
    EXPECT_EQ(selecting.join(), 1u);
  });
}

TEST_P(SelectStreams, that_are_closed_or_in_use_say_so) {
  run([] {
    Pair pair = make_pair();
    std::string text;
    const auto note = [&](const Result<void>& how) { text = text_of(how); };
    Fiber<Result<void>> reader = spawn([&] { return pair.one.readable(); });
    yield();
    EXPECT_EQ(select(on_readable(pair.one, note), on_deadline(after(30s))), 0u);
    EXPECT_EQ(text, make_error_code(Errc::busy).message());
    EXPECT_TRUE(write_text(pair.other, "x"));
    EXPECT_TRUE(reader.join());
    EXPECT_EQ(read_text(pair.one), "x");

    Fiber<std::size_t> selecting =
        spawn([&] { return select(on_readable(pair.one, note), on_deadline(after(30s))); });
    yield();
    EXPECT_EQ(pair.one.readable().error(), Errc::busy);
    pair.one.close().value();
    EXPECT_EQ(selecting.join(), 0u);
    EXPECT_EQ(text, make_error_code(Errc::closed).message());
    text.clear();
    EXPECT_EQ(select(on_readable(pair.one, note), on_deadline(after(30s))), 0u);
    EXPECT_EQ(text, make_error_code(Errc::closed).message());
  });
}

TEST_P(SelectStreams, of_a_cancelled_fiber_are_free_again) {
  run([] {
    Pair pair = make_pair();
    Fiber<void> selecting = spawn([&] { select(on_readable(pair.one), on_deadline(after(30s))); });
    yield();
    selecting.cancel();
    EXPECT_EQ(selecting.AnyFiber::join(kForever).error(), Errc::cancelled);
    EXPECT_TRUE(write_text(pair.other, "x"));
    EXPECT_EQ(read_text(pair.one), "x");
  });
}

TEST_P(SelectStreams, of_two_with_the_same_stream_are_refused_the_second_time) {
  run([] {
    Pair pair = make_pair();
    std::string text;
    EXPECT_EQ(select(on_readable(pair.one),
                     on_readable(pair.one, [&](const Result<void>& how) { text = text_of(how); })),
              1u);
    EXPECT_EQ(text, make_error_code(Errc::busy).message());
  });
}

} // namespace
