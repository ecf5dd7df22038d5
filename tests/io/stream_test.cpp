// SPDX-License-Identifier: MIT
// Rows: L-03 L-14 C-15 C-16 D-16 D-18 D-24 P-70 P-74 P-79 P-80 P-81
// Field reports: 59 61 62 64 67
// Streams: waiting for bytes and for room, deadlines, cancellation, and what becomes of it when
// they are closed.
#include "support/backends.h"

#include <cede/cede.h>

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace cede;
using namespace cede::test;
using namespace std::chrono_literals;

namespace {

class Streams : public WithBackend {};
CEDE_WITH_EACH_BACKEND(Streams);

std::error_code error_of(const auto& result) {
  return result ? std::error_code() : result.error();
}

TEST_P(Streams, a_read_waits_for_bytes_while_the_others_go_on) {
  run([] {
    Pipe pipe = Pipe::make().value();
    std::string trace;
    Fiber<void> reader = spawn([&] { trace += read_text(pipe.reader); });
    Fiber<void> other = spawn([&] {
      for (int i = 0; i < 3; ++i) {
        trace += '.';
        sleep_for(1ms);
      }
      EXPECT_TRUE(write_text(pipe.writer, "bytes"));
    });
    reader.join();
    EXPECT_EQ(trace, "...bytes");
    other.join();
  });
}

TEST_P(Streams, the_end_is_no_bytes_and_stays_the_end) {
  run([] {
    Pipe pipe = Pipe::make().value();
    EXPECT_TRUE(write_text(pipe.writer, "last"));
    pipe.writer.close().value();
    EXPECT_EQ(read_text(pipe.reader), "last");
    EXPECT_EQ(read_text(pipe.reader), "");
    EXPECT_EQ(read_text(pipe.reader), "");
  });
}

TEST_P(Streams, ten_megabytes_go_through_a_pipe_of_a_page) {
  run([] {
    Pipe pipe = Pipe::make().value();
    ASSERT_EQ(fcntl(pipe.writer.native_handle(), F_SETPIPE_SZ, 4096), 4096);
    std::vector<std::byte> sent(10'000'000);
    for (std::size_t i = 0; i < sent.size(); ++i)
      sent[i] = static_cast<std::byte>(i * 7 + i / 256);
    Fiber<void> writer = spawn([&] {
      const IoCount count = pipe.writer.write_all(std::span(sent));
      EXPECT_EQ(count.bytes, sent.size());
      EXPECT_FALSE(count.error);
      pipe.writer.close().value();
    });
    std::vector<std::byte> received;
    std::vector<std::byte> some(10'000);
    while (const std::size_t count = pipe.reader.read(some).value())
      received.insert(received.end(), some.begin(), some.begin() + static_cast<long>(count));
    EXPECT_TRUE(received == sent);
    writer.join();
  });
}

TEST_P(Streams, several_buffers_are_read_and_written_as_one) {
  run([] {
    Pair pair = make_pair();
    const std::string words[] = {"one", "", "three"};
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(words[0])),
                                                std::as_bytes(std::span(words[1])),
                                                std::as_bytes(std::span(words[2]))};
    EXPECT_EQ(pair.one.write(parts).value(), 8u);
    std::string first(4, ' ');
    std::string second(9, ' ');
    const std::span<std::byte> into[] = {std::as_writable_bytes(std::span(first)),
                                         std::as_writable_bytes(std::span(second))};
    EXPECT_EQ(pair.other.read(into).value(), 8u);
    EXPECT_EQ(first + second, "onethree     ");
  });
}

TEST_P(Streams, a_deadline_ends_a_read_and_a_write_and_says_what_was_done) {
  run([] {
    Pipe pipe = Pipe::make().value();
    const TimePoint begin = now();
    EXPECT_EQ(error_of(pipe.reader.readable(after(10ms))), Errc::timed_out);
    EXPECT_EQ(read_text(pipe.reader, after(10ms)),
              "(" + make_error_code(Errc::timed_out).message() + ")");
    EXPECT_GE(now() - begin, 20ms);
    const std::vector<std::byte> bytes(1'000'000);
    const IoCount count = pipe.writer.write_all(std::span(bytes), after(10ms));
    EXPECT_EQ(count.error, Errc::timed_out);
    EXPECT_EQ(count.bytes, 65536u);
    EXPECT_EQ(error_of(pipe.writer.writable(after(1ms))), Errc::timed_out);
  });
}

TEST_P(Streams, a_deadline_that_has_passed_still_tries_once) {
  run([] {
    Pair pair = make_pair();
    EXPECT_EQ(read_text(pair.one, now()), "(" + make_error_code(Errc::timed_out).message() + ")");
    EXPECT_TRUE(write_text(pair.other, "a"));
    EXPECT_EQ(read_text(pair.one, now()), "a");
    // A short read has drained it; what came since is there all the same.
    EXPECT_TRUE(write_text(pair.other, "b"));
    EXPECT_EQ(read_text(pair.one, now()), "b");
  });
}

TEST_P(Streams, what_is_ready_beats_a_deadline_that_came_with_it) {
  run([] {
    Pair pair = make_pair();
    std::string text;
    Fiber<void> reader = spawn([&] { text = read_text(pair.one, after(5ms)); });
    yield();
    EXPECT_TRUE(write_text(pair.other, "late"));
    std::this_thread::sleep_for(20ms); // the scheduler stalls, and sees both at once
    reader.join();
    EXPECT_EQ(text, "late");
  });
}

// The same where the pump sees both, since somebody is always ready.
TEST_P(Streams, what_is_ready_beats_a_deadline_in_the_pump_too) {
  run([] {
    Pair pair = make_pair();
    std::string text;
    Fiber<void> reader = spawn([&] { text = read_text(pair.one, after(5ms)); });
    yield();
    EXPECT_EQ(::write(pair.other.native_handle(), "late", 4), 4); // which waits for nothing
    std::this_thread::sleep_for(20ms);
    for (int i = 0; i < 1000; ++i)
      yield();
    EXPECT_EQ(text, "late");
    reader.join();
  });
}

TEST_P(Streams, one_fiber_reads_while_another_writes) {
  run([] {
    Pair pair = make_pair();
    std::string text;
    Fiber<void> reader = spawn([&] { text = read_text(pair.one); });
    Fiber<IoCount> writer = spawn([&] {
      const std::vector<std::byte> bytes(1'000'000);
      return pair.one.write_all(std::span(bytes));
    });
    sleep_for(1ms);
    std::vector<std::byte> drained(1'000'000);
    for (std::size_t count = 0; count < drained.size();)
      count += pair.other.read(std::span(drained).subspan(count)).value();
    EXPECT_EQ(writer.join().bytes, 1'000'000u);
    EXPECT_TRUE(write_text(pair.other, "then"));
    reader.join();
    EXPECT_EQ(text, "then");
  });
}

TEST_P(Streams, one_direction_that_times_out_leaves_the_other_waiting) {
  run([] {
    Pair pair = make_pair();
    fill(pair.one);
    Fiber<Result<void>> writer = spawn([&] { return pair.one.writable(); });
    EXPECT_EQ(error_of(pair.one.readable(after(2ms))), Errc::timed_out);
    std::vector<std::byte> some(1 << 16);
    while (pair.other.read(some, now())) {
    }
    EXPECT_TRUE(writer.join());
  });
}

TEST_P(Streams, a_second_reader_or_writer_is_refused) {
  run([] {
    Pair pair = make_pair();
    fill(pair.one);
    Fiber<void> reader = spawn([&] { read_text(pair.one); });
    Fiber<void> writer = spawn([&] { std::ignore = pair.one.write_all("x"); });
    yield();
    std::array<std::byte, 1> byte{};
    EXPECT_EQ(error_of(pair.one.read(byte)), Errc::busy);
    EXPECT_EQ(error_of(pair.one.readable()), Errc::busy);
    EXPECT_EQ(error_of(pair.one.write(byte)), Errc::busy);
    EXPECT_EQ(pair.one.write_all("y").error, Errc::busy);
    EXPECT_EQ(error_of(pair.one.release()), Errc::busy);
    reader.cancel();
    writer.cancel();
    std::ignore = reader.AnyFiber::join(kForever);
    std::ignore = writer.AnyFiber::join(kForever);
    EXPECT_TRUE(write_text(pair.other, "z"));
    EXPECT_EQ(read_text(pair.one), "z");
  });
}

TEST_P(Streams, whoever_waits_is_told_that_it_was_closed) {
  run([] {
    Pair pair = make_pair();
    fill(pair.one);
    std::string trace;
    Fiber<void> reader = spawn([&] {
      std::array<std::byte, 1> byte{};
      trace += error_of(pair.one.read(byte)) == Errc::closed ? "r" : "?";
    });
    Fiber<void> writer =
        spawn([&] { trace += pair.one.write_all("x").error == Errc::closed ? "w" : "?"; });
    yield();
    EXPECT_TRUE(pair.one.close());
    yield();
    EXPECT_EQ(trace, "rw");
    EXPECT_EQ(error_of(pair.one.close()), Errc::closed);
    EXPECT_EQ(error_of(pair.one.readable()), Errc::closed);
    reader.join();
    writer.join();
  });
}

TEST_P(Streams, a_stream_may_be_gone_when_who_waited_for_it_goes_on) {
  run([] {
    auto pair = std::make_unique<Pair>(make_pair());
    Fiber<Result<void>> reader = spawn([&one = pair->one] { return one.readable(); });
    yield();
    pair.reset();
    EXPECT_EQ(error_of(reader.join()), Errc::closed);
  });
}

TEST_P(Streams, a_shutdown_and_a_close_straight_after_it_say_closed) {
  run([] {
    Pair pair = make_pair();
    Fiber<Result<void>> reader = spawn([&] { return pair.one.readable(); });
    yield();
    shutdown(pair.one.native_handle(), SHUT_RDWR);
    EXPECT_TRUE(pair.one.close());
    EXPECT_EQ(error_of(reader.join()), Errc::closed);
  });
}

TEST_P(Streams, a_hang_up_wakes_a_reader_and_costs_nothing_afterwards) {
  run([] {
    Pipe pipe = Pipe::make().value();
    Fiber<std::string> reader = spawn([&] { return read_text(pipe.reader); });
    yield();
    pipe.writer.close().value(); // a hang-up, and nothing to read
    EXPECT_EQ(reader.join(), "");
    const auto before = processor_time();
    sleep_for(100ms);
    EXPECT_LT(processor_time() - before, 50ms);
  });
}

TEST_P(Streams, a_writer_whose_reader_has_gone_gets_an_error_and_no_signal) {
  run([] {
    Pipe pipe = Pipe::make().value();
    fill(pipe.writer);
    Fiber<IoCount> writer = spawn([&] { return pipe.writer.write_all("x"); });
    yield();
    pipe.reader.close().value(); // an error, and no room
    EXPECT_EQ(writer.join().error, std::errc::broken_pipe);
    EXPECT_EQ(pipe.writer.write_all("x").error, std::errc::broken_pipe);
    Pair pair = make_pair();
    pair.other.close().value();
    EXPECT_EQ(pair.one.write_all("x").error, std::errc::broken_pipe);
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  });
}

TEST_P(Streams, a_cancelled_read_loses_nothing) {
  run([] {
    Pair pair = make_pair();
    Fiber<void> reader = spawn([&] {
      std::array<std::byte, 8> bytes{};
      std::ignore = pair.one.read(bytes);
      ADD_FAILURE() << "it went on";
    });
    yield();
    reader.cancel();
    EXPECT_EQ(error_of(reader.AnyFiber::join(kForever)), Errc::cancelled);
    EXPECT_TRUE(write_text(pair.other, "kept"));
    EXPECT_EQ(read_text(pair.one), "kept");
  });
}

TEST_P(Streams, what_was_read_before_a_cancellation_is_given) {
  run([] {
    Pair pair = make_pair();
    std::string trace;
    Fiber<void> reader = spawn([&] {
      trace += read_text(pair.one);
      sleep_for(1s);
      trace += "went on";
    });
    yield();
    EXPECT_TRUE(write_text(pair.other, "read"));
    sleep_for(0s); // a service: its wait has ended
    sleep_for(0s);
    reader.cancel();
    std::ignore = reader.AnyFiber::join(kForever);
    EXPECT_EQ(trace.substr(0, 4), trace.empty() ? "" : "read");
    if (trace.empty()) {
      EXPECT_EQ(read_text(pair.one), "read");
    }
  });
}

TEST_P(Streams, a_read_that_ends_between_a_cancellation_and_its_fiber_s_turn_counts) {
  run([] {
    Pair pair = make_pair();
    std::string text;
    Fiber<void> reader = spawn(FiberOptions{.priority = kPriorityMin}, [&] {
      text = read_text(pair.one);
      yield(); // the cancellation
    });
    sleep_for(1ms);
    reader.cancel();
    EXPECT_EQ(::write(pair.other.native_handle(), "read", 4), 4); // which waits for nothing
    for (int i = 0; i < 1000; ++i)
      yield(); // services, and no turn for the reader
    EXPECT_EQ(text, "");
    std::ignore = reader.AnyFiber::join(kForever);
    EXPECT_EQ(text, "read");
  });
}

TEST_P(Streams, a_cancelled_fiber_that_must_not_throw_is_told) {
  run([] {
    Pair pair = make_pair();
    std::error_code error;
    Fiber<void> reader = spawn([&] {
      const CancelByResult scope;
      error = error_of(pair.one.readable());
    });
    yield();
    reader.cancel();
    reader.join();
    EXPECT_EQ(error, Errc::cancelled);
  });
}

TEST_P(Streams, what_is_always_ready_does_not_keep_a_timer_from_firing) {
  run([] {
    File zeros = File::open("/dev/zero").value();
    bool has_fired = false;
    Fiber<void> timer = spawn([&] {
      sleep_for(1ms);
      has_fired = true;
    });
    std::array<std::byte, 16> bytes{};
    const TimePoint begin = now();
    while (!has_fired && now() - begin < 10s)
      EXPECT_EQ(zeros.read(bytes).value(), bytes.size());
    EXPECT_TRUE(has_fired);
    timer.join();
  });
}

TEST_P(Streams, two_that_always_have_bytes_share) {
  run([] {
    File zeros[] = {File::open("/dev/zero").value(), File::open("/dev/zero").value()};
    std::size_t counts[2] = {};
    Group group;
    for (int i = 0; i < 2; ++i)
      group.spawn([&, i] {
        std::array<std::byte, 16> bytes{};
        while (counts[0] + counts[1] < 20'000) {
          EXPECT_TRUE(zeros[i].read(bytes));
          ++counts[i];
        }
      });
    group.join();
    EXPECT_GE(std::min(counts[0], counts[1]), 6'000u);
  });
}

// Its own event ends the wait of the only busy fiber where it stands: the pump isn't run for it.
TEST_P(Streams, the_only_busy_fiber_polls_itself) {
  Scheduler scheduler(with(GetParam()));
  Pair pair = make_pair();
  const int far = pair.other.native_handle();
  ASSERT_EQ(fcntl(far, F_SETFL, 0), 0); // the peer is a thread that blocks
  std::thread peer([far] {
    for (char byte = 0; ::read(far, &byte, 1) == 1;) {
      std::this_thread::sleep_for(50us); // by then it waits
      EXPECT_EQ(::write(far, &byte, 1), 1);
    }
  });
  Fiber<void> fiber = scheduler.spawn([&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(write_text(pair.one, "x"));
      EXPECT_EQ(read_text(pair.one), "x");
    }
    EXPECT_EQ(shutdown(pair.one.native_handle(), SHUT_RDWR), 0);
  });
  scheduler.run();
  peer.join();
  EXPECT_GE(scheduler.metrics().idle_waits, 500u);
  EXPECT_LE(scheduler.metrics().services, 100u);
}

TEST_P(Streams, an_event_costs_one_switch) {
  Scheduler scheduler(with(GetParam()));
  Pair pairs[] = {make_pair(), make_pair()};
  std::vector<Fiber<void>> fibers;
  for (Pair& pair : pairs) {
    fibers.push_back(scheduler.spawn([&pair] {
      for (int i = 0; i < 1000; ++i) {
        EXPECT_TRUE(write_text(pair.one, "x"));
        EXPECT_EQ(read_text(pair.one), "y");
      }
    }));
    fibers.push_back(scheduler.spawn([&pair] {
      for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(read_text(pair.other), "x");
        EXPECT_TRUE(write_text(pair.other, "y"));
      }
    }));
  }
  scheduler.run();
  // The end of a write is one where the ring sends it.
  const std::uint64_t events = GetParam() == Backend::io_uring ? 8'000 : 4'000;
  EXPECT_LE(scheduler.metrics().switches, events + events / 16 + 20);
}

TEST_P(Streams, readiness_of_an_old_descriptor_does_not_reach_the_new_one_of_its_number) {
  run([] {
    Pair old = make_pair();
    const int number = old.one.native_handle();
    EXPECT_EQ(error_of(old.one.readable(after(1ms))), Errc::timed_out);
    EXPECT_TRUE(write_text(old.other, "for the old one"));
    old.one.close().value();
    Pipe pipe = Pipe::make().value();
    ASSERT_EQ(pipe.reader.native_handle(), number);
    EXPECT_EQ(error_of(pipe.reader.readable(after(5ms))), Errc::timed_out);
    EXPECT_TRUE(write_text(pipe.writer, "for the new one"));
    EXPECT_EQ(read_text(pipe.reader), "for the new one");
  });
}

TEST_P(Streams, a_descriptor_that_others_have_too_is_forgotten_when_it_is_closed) {
  run([] {
    Pair pair = make_pair();
    EXPECT_EQ(error_of(pair.one.readable(after(1ms))), Errc::timed_out);
    const int copy = dup(pair.one.native_handle());
    pair.one.close().value();
    EXPECT_TRUE(write_text(pair.other, "x")); // the system tells of it, if it was asked
    sleep_for(2ms);
    File other = File::adopt(copy).value();
    EXPECT_EQ(read_text(other), "x");
  });
}

// What is written to the other copy is not told to a scheduler that has closed its own.
TEST_P(Streams, a_descriptor_that_others_have_too_wakes_nobody_once_it_is_closed) {
  Scheduler scheduler(with(GetParam()));
  Pair pair = make_pair();
  Pair quiet = make_pair();
  const int copy = dup(pair.one.native_handle());
  std::thread peer;
  Fiber<void> fiber = scheduler.spawn([&] {
    EXPECT_EQ(error_of(pair.one.readable(after(1ms))), Errc::timed_out);
    pair.one.close().value();
    peer = std::thread([number = pair.other.native_handle()] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(::write(number, "x", 1), 1);
        std::this_thread::sleep_for(1ms);
      }
    });
    EXPECT_EQ(error_of(quiet.one.readable(after(100ms))), Errc::timed_out);
  });
  scheduler.run();
  peer.join();
  close(copy);
  EXPECT_LE(scheduler.metrics().idle_waits, 10u);
}

TEST_P(Streams, readiness_is_a_state) {
  run([] {
    Pair pair = make_pair();
    EXPECT_TRUE(write_text(pair.other, "abc"));
    EXPECT_TRUE(pair.one.readable());
    EXPECT_TRUE(pair.one.readable());
    std::array<std::byte, 1> byte{};
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(pair.one.readable(after(1s)));
      EXPECT_EQ(pair.one.read(byte).value(), 1u);
    }
    EXPECT_EQ(error_of(pair.one.readable(after(1ms))), Errc::timed_out);
    EXPECT_TRUE(pair.one.writable());
  });
}

TEST_P(Streams, messages_that_are_shorter_than_the_buffer_are_all_read) {
  run([] {
    Pair pair = make_pair(SOCK_SEQPACKET);
    for (const char* text : {"a", "bc", "def"})
      EXPECT_TRUE(write_text(pair.other, text));
    EXPECT_EQ(read_text(pair.one), "a");
    EXPECT_EQ(read_text(pair.one), "bc");
    EXPECT_EQ(read_text(pair.one), "def");
  });
}

TEST_P(Streams, an_eventfd_is_read_as_it_counts) {
  run([] {
    File counter = File::adopt(eventfd(0, EFD_CLOEXEC)).value();
    Fiber<std::uint64_t> reader = spawn([&] {
      std::uint64_t count = 0;
      EXPECT_EQ(counter.read(std::as_writable_bytes(std::span(&count, 1))).value(), 8u);
      return count;
    });
    yield();
    const std::uint64_t three = 3;
    EXPECT_EQ(counter.write(std::as_bytes(std::span(&three, 1))).value(), 8u);
    EXPECT_EQ(reader.join(), 3u);
  });
}

TEST_P(Streams, a_post_ends_the_wait_for_streams_without_a_timer) {
  run([] {
    Pair pair = make_pair();
    Fiber<Result<void>> reader = spawn([&] { return pair.one.readable(); });
    const Waker waker = cede::waker();
    std::thread other([waker] {
      std::this_thread::sleep_for(20ms);
      waker.wake();
    });
    EXPECT_EQ(park(after(30s)), WakeReason::woken);
    other.join();
    pair.one.close().value();
    EXPECT_EQ(error_of(reader.join()), Errc::closed);
  });
}

TEST_P(Streams, a_test_clock_stands_while_a_stream_is_waited_for) {
  SchedulerOptions options = with(GetParam());
  options.has_test_clock = true;
  cede::run(options, [] {
    Pair pair = make_pair();
    const int far = pair.other.native_handle();
    std::thread peer([far] {
      std::this_thread::sleep_for(5ms);
      EXPECT_EQ(::write(far, "x", 1), 1);
    });
    EXPECT_EQ(read_text(pair.one, after(1h)), "x");
    peer.join();
    EXPECT_EQ(error_of(pair.one.readable(now())), Errc::timed_out);
  });
}

TEST_P(Streams, a_stream_outlives_the_scheduler_that_knew_it) {
  Pair pair = make_pair();
  for (const char* text : {"first", "second"})
    run([&] {
      Fiber<std::string> reader = spawn([&] { return read_text(pair.one); });
      yield();
      EXPECT_TRUE(write_text(pair.other, text));
      EXPECT_EQ(reader.join(), text);
    });
}

TEST_P(Streams, what_is_released_can_be_adopted_by_another_scheduler) {
  Pair pair = make_pair();
  int number = -1;
  run([&] {
    EXPECT_EQ(error_of(pair.one.readable(after(1ms))), Errc::timed_out);
    number = pair.one.release().value();
    EXPECT_FALSE(pair.one.is_open());
    std::thread([&] {
      run([&] {
        File moved = File::adopt(number).value();
        EXPECT_EQ(moved.native_handle(), number);
        Fiber<std::string> reader = spawn([&] { return read_text(moved); });
        yield();
        EXPECT_EQ(::write(pair.other.native_handle(), "x", 1), 1);
        EXPECT_EQ(reader.join(), "x");
      });
    }).join();
  });
}

TEST_P(Streams, schedulers_end_with_streams_that_are_waited_for) {
  Pair pair = make_pair();
  run([&] {
    const AnyFiber left = spawn([&] { read_text(pair.one); });
    yield();
  });
  run([&] {
    EXPECT_TRUE(write_text(pair.other, "x"));
    EXPECT_EQ(read_text(pair.one), "x");
  });
}

TEST(Stream, blocks_a_plain_thread) {
  Pair pair = make_pair();
  std::thread peer([&] {
    std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(write_text(pair.other, "x"));
  });
  EXPECT_EQ(read_text(pair.one), "x");
  peer.join();
  EXPECT_EQ(error_of(pair.one.readable(after(5ms))), Errc::timed_out);
  const std::size_t room = fill(pair.one);
  std::vector<std::byte> bytes(1000);
  const IoCount count = pair.one.write_all(std::span(bytes), after(5ms));
  EXPECT_EQ(count.error, Errc::timed_out);
  EXPECT_GT(room, 0u);
}

TEST(Stream, is_moved_with_what_it_has) {
  run([] {
    Pair pair = make_pair();
    File moved = std::move(pair.one);
    EXPECT_FALSE(pair.one.is_open());
    EXPECT_EQ(pair.one.native_handle(), -1);
    EXPECT_TRUE(write_text(pair.other, "x"));
    EXPECT_EQ(read_text(moved), "x");
    const int number = pair.other.native_handle();
    pair.other = std::move(moved);
    EXPECT_EQ(fcntl(number, F_GETFD), -1);
  });
}

TEST(Stream, of_a_number_that_is_not_open_is_refused) {
  EXPECT_EQ(error_of(File::adopt(12345)), std::errc::bad_file_descriptor);
  EXPECT_EQ(error_of(File::adopt(-1)), std::errc::bad_file_descriptor);
}

TEST(StreamDeathTest, that_waited_elsewhere_fails_a_check) {
  Pair pair = make_pair();
  run([&] {
    EXPECT_EQ(error_of(pair.one.readable(after(1ms))), Errc::timed_out);
    EXPECT_DEATH(std::thread([&] { run([&] { read_text(pair.one); }); }).join(),
                 "release\\(\\) it there");
  });
}

TEST(Backend, is_named_and_a_wrong_name_is_refused) {
  Scheduler scheduler(with(Backend::epoll));
  EXPECT_STREQ(scheduler.backend_name().value(), "epoll");
  EXPECT_DEATH(
      {
        setenv("CEDE_POLLER", "kqueue", 1);
        Scheduler wrong;
        std::ignore = wrong.backend_name();
      },
      "set it to epoll or io_uring");
}

TEST(Backend, is_chosen_by_the_environment) {
  const char* before = getenv("CEDE_POLLER");
  const std::string kept = before != nullptr ? before : "";
  setenv("CEDE_POLLER", "epoll", 1);
  Scheduler scheduler;
  EXPECT_STREQ(scheduler.backend_name().value(), "epoll");
  if (before != nullptr)
    setenv("CEDE_POLLER", kept.c_str(), 1);
  else
    unsetenv("CEDE_POLLER");
}

} // namespace
