// SPDX-License-Identifier: MIT
// Rows: P-63 C-13
// Field reports: 46 49
// Channels. What they do in every order of events is told by select_model_test.cpp.
#include "support/environment.h"

#include <cede/channel.h>
#include <cede/fiber.h>
#include <cede/group.h>
#include <cede/scheduler.h>

#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

static_assert(std::input_iterator<Channel<int>::iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, Channel<int>::iterator>);

TEST(Channel, of_no_capacity_is_a_rendezvous) {
  std::string trace;
  run([&] {
    Channel<std::string> channel;
    spawn([&] {
      trace += "s";
      EXPECT_TRUE(channel.send("hello"));
      trace += "e";
    });
    yield();
    EXPECT_EQ(channel.senders(), 1u);
    EXPECT_EQ(channel.size(), 0u); // it is the sender's still
    trace += "r";
    EXPECT_EQ(channel.receive().value(), "hello");
    EXPECT_EQ(channel.senders(), 0u);
    trace += "g";
    yield();
  });
  EXPECT_EQ(trace, "srge");
}

TEST(Channel, a_receiver_that_waits_is_handed_the_value_and_nobody_else) {
  run([] {
    Channel<int> channel(1);
    auto first = spawn([&] { return channel.receive().value(); });
    auto second = spawn([&] { return channel.receive().value(); });
    yield();
    EXPECT_EQ(channel.receivers(), 2u);
    EXPECT_TRUE(channel.send(1));
    EXPECT_EQ(channel.try_receive().error(), Errc::again); // first's, though it hasn't run
    EXPECT_EQ(channel.size(), 0u);
    EXPECT_TRUE(channel.send(2));
    EXPECT_TRUE(channel.send(3));
    EXPECT_EQ(first.join(), 1);
    EXPECT_EQ(second.join(), 2);
    EXPECT_EQ(channel.receive().value(), 3);
  });
}

TEST(Channel, holds_as_many_values_as_its_capacity_and_keeps_their_order) {
  run([] {
    Channel<int> channel(3);
    std::string trace;
    spawn([&] {
      for (int i = 0; i < 8; ++i) {
        EXPECT_TRUE(channel.send(i));
        trace += std::to_string(i);
      }
      channel.close();
    });
    yield();
    EXPECT_EQ(trace, "012");
    EXPECT_EQ(channel.size(), 3u);
    EXPECT_EQ(channel.capacity(), 3u);
    EXPECT_EQ(channel.try_send(9).error(), Errc::again);
    EXPECT_EQ(channel.receive().value(), 0);
    EXPECT_EQ(channel.size(), 3u); // the one who waited has sent
    std::string received;
    for (const int value : channel)
      received += std::to_string(value);
    EXPECT_EQ(received, "1234567");
  });
}

TEST(Channel, that_is_closed_gives_what_was_accepted_and_returns_the_rest_to_its_owners) {
  run([] {
    Channel<std::string> channel(1);
    EXPECT_TRUE(channel.send("accepted"));
    std::string kept = "kept";
    auto sender = spawn([&] { return channel.send(std::move(kept)).error() == Errc::closed; });
    yield();
    channel.close();
    channel.close();
    EXPECT_TRUE(channel.is_closed());
    EXPECT_TRUE(sender.join());
    EXPECT_EQ(kept, "kept");
    EXPECT_EQ(channel.send(std::move(kept)).error(), Errc::closed);
    EXPECT_EQ(channel.try_send(std::move(kept)).error(), Errc::closed);
    EXPECT_EQ(kept, "kept"); // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_EQ(channel.receive().value(), "accepted");
    EXPECT_EQ(channel.receive().error(), Errc::closed);
    EXPECT_EQ(channel.try_receive().error(), Errc::closed);
  });
}

TEST(Channel, that_is_closed_ends_the_wait_of_receivers) {
  run([] {
    Channel<int> channel(2);
    auto one = spawn([&] { return channel.receive().error() == Errc::closed; });
    auto other = spawn([&] {
      int count = 0;
      for ([[maybe_unused]] const int value : channel)
        ++count;
      return count;
    });
    yield();
    channel.close();
    EXPECT_TRUE(one.join());
    EXPECT_EQ(other.join(), 0);
  });
}

TEST(Channel, that_is_destroyed_is_not_touched_by_those_who_waited) {
  run([] {
    auto channel = std::make_unique<Channel<int>>();
    auto senders = std::make_unique<Channel<int>>();
    int kept = 7;
    auto receiver = spawn([&, c = channel.get()] { return c->receive(); });
    auto late = spawn([c = channel.get()] { return c->receive(); });
    auto sender = spawn([&, c = senders.get()] { return c->send(std::move(kept)).error(); });
    yield();
    EXPECT_TRUE(channel->send(1)); // whose wait has ended, but who has not run
    channel.reset();
    senders.reset();
    EXPECT_EQ(receiver.join().value(), 1);
    EXPECT_EQ(late.join().error(), Errc::closed);
    EXPECT_EQ(sender.join(), Errc::closed);
    EXPECT_EQ(kept, 7);
  });
}

TEST(Channel, a_value_that_was_handed_over_is_not_lost_by_a_cancellation) {
  run([] {
    Channel<int> channel;
    int received = 0;
    auto receiver = spawn([&] {
      received = channel.receive().value();
      yield();
      ADD_FAILURE() << "the next wait throws";
    });
    yield();
    EXPECT_TRUE(channel.send(5));
    EXPECT_TRUE(receiver.cancel());
    EXPECT_EQ(receiver.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(received, 5);
  });
}

TEST(Channel, a_cancelled_sender_keeps_its_value_and_leaves_the_line) {
  run([] {
    Channel<std::string> channel;
    std::string value = "kept";
    auto sender = spawn([&] { std::ignore = channel.send(std::move(value)); });
    yield();
    sender.cancel();
    EXPECT_EQ(channel.senders(), 0u); // at once, before it has run
    EXPECT_EQ(channel.try_receive().error(), Errc::again);
    EXPECT_EQ(sender.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(value, "kept");
    EXPECT_EQ(channel.senders(), 0u);
  });
}

TEST(Channel, a_cancelled_fiber_takes_and_gives_nothing_that_could_go) {
  run([] {
    Channel<int> channel(1);
    std::ignore = channel.send(1);
    auto receiver = spawn([&] {
      current().cancel();
      std::ignore = channel.receive();
    });
    EXPECT_EQ(receiver.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(channel.size(), 1u);
    auto by_result = spawn([&] {
      current().cancel();
      const CancelByResult scope;
      int loops = 0;
      for ([[maybe_unused]] const int value : channel)
        ++loops;
      return channel.receive().error() == Errc::cancelled && loops == 0;
    });
    EXPECT_TRUE(by_result.join());
    EXPECT_EQ(channel.size(), 1u);
  });
}

TEST(Channel, a_cancelled_fiber_sends_nothing_that_would_fit) {
  run([] {
    Channel<int> channel(1);
    auto sender = spawn([&] {
      current().cancel();
      std::ignore = channel.send(1);
      ADD_FAILURE();
    });
    EXPECT_EQ(sender.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(channel.size(), 0u);
  });
}

TEST(Channel, what_can_go_now_beats_a_deadline_that_has_passed) {
  run(kTestClock, [] {
    Channel<int> channel(1);
    const Deadline passed = after(-1s);
    EXPECT_TRUE(channel.send(1, passed));
    EXPECT_EQ(channel.send(2, passed).error(), Errc::timed_out);
    EXPECT_EQ(channel.receive(passed).value(), 1);
    EXPECT_EQ(channel.receive(passed).error(), Errc::timed_out);
    EXPECT_EQ(channel.receive(after(5ms)).error(), Errc::timed_out);
    EXPECT_EQ(channel.receivers(), 0u);
  });
}

TEST(Channel, many_short_waits_leave_nothing_behind) {
  run([] {
    Channel<int> channel;
    int value = 1;
    const std::chrono::nanoseconds times[] = {-1ns, 0ns, 1ns, 1us};
    for (int i = 0; i < test::scaled(10'000, 1'000); ++i) {
      EXPECT_EQ(channel.receive(after(times[i % 4])).error(), Errc::timed_out);
      EXPECT_EQ(channel.send(std::move(value), after(times[i % 4])).error(), Errc::timed_out);
    }
    EXPECT_EQ(channel.senders() + channel.receivers(), 0u);
    EXPECT_EQ(value, 1);
  });
}

TEST(Channel, on_a_plain_thread_only_what_need_not_wait_can_be_done) {
  Channel<int> channel(1);
  EXPECT_TRUE(channel.send(1));
  EXPECT_EQ(channel.send(2).error(), Errc::not_a_fiber);
  EXPECT_EQ(channel.receive().value(), 1);
  EXPECT_EQ(channel.receive().error(), Errc::not_a_fiber);
  EXPECT_THROW(channel.begin(), std::system_error);
}

// ---------------------------------------------------------------------------------------------

TEST(Channel, carries_what_can_only_be_moved) {
  run([] {
    Channel<std::unique_ptr<int>> channel;
    auto receiver = spawn([&] {
      int sum = 0;
      for (auto& value : channel)
        sum += *value;
      return sum;
    });
    auto value = std::make_unique<int>(2);
    EXPECT_TRUE(channel.send(std::move(value)));
    EXPECT_EQ(value, nullptr); // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_TRUE(channel.send(std::make_unique<int>(3)));
    channel.close();
    EXPECT_EQ(receiver.join(), 5);
  });
}

struct ThrowsWhenCopied {
  int number = 0;
  explicit ThrowsWhenCopied(int n) : number(n) {}
  ThrowsWhenCopied(const ThrowsWhenCopied& other) : number(other.number) {
    if (number < 0)
      throw std::runtime_error("this one can't be copied");
  }
  ThrowsWhenCopied(ThrowsWhenCopied&& other) noexcept = default;
};

TEST(Channel, a_copy_that_throws_does_so_in_the_sender_before_anything_is_accepted) {
  run([] {
    Channel<ThrowsWhenCopied> channel(2);
    const ThrowsWhenCopied good(1), bad(-1);
    EXPECT_THROW(std::ignore = channel.send(bad), std::runtime_error);
    EXPECT_THROW(std::ignore = channel.try_send(bad), std::runtime_error);
    EXPECT_EQ(channel.size(), 0u);
    EXPECT_TRUE(channel.send(good));
    auto receiver = spawn([&] { return channel.receive().value().number; });
    EXPECT_EQ(receiver.join(), 1);
    receiver = spawn([&] { return channel.receive().value().number; });
    yield();
    EXPECT_THROW(std::ignore = channel.send(bad), std::runtime_error);
    EXPECT_EQ(channel.receivers(), 1u);
    EXPECT_TRUE(channel.send(ThrowsWhenCopied(-2)));
    EXPECT_EQ(receiver.join(), -2);
  });
}

struct alignas(128) OverAligned {
  int number;
};

TEST(Channel, keeps_the_alignment_of_what_it_carries) {
  const auto is_aligned = [](const OverAligned& value) {
    return reinterpret_cast<std::uintptr_t>(&value) % alignof(OverAligned) == 0;
  };
  run([&] {
    for (const std::size_t capacity : {0u, 3u}) {
      Channel<OverAligned> channel(capacity);
      spawn([&] {
        for (int i = 0; i < 10; ++i)
          std::ignore = channel.send(OverAligned{i});
        channel.close();
      });
      int next = 0;
      for (const OverAligned& value : channel) {
        EXPECT_TRUE(is_aligned(value));
        EXPECT_EQ(value.number, next++);
      }
      EXPECT_EQ(next, 10);
    }
  });
}

TEST(Channel, destroys_each_value_once) {
  const auto counted = std::make_shared<int>(0);
  run([&] {
    Channel<std::shared_ptr<int>> channel(3);
    for (int i = 0; i < 4; ++i) // so that they lie around the buffer's end
      EXPECT_TRUE(channel.send(counted).has_value() && channel.receive().has_value());
    for (int i = 0; i < 3; ++i)
      std::ignore = channel.send(counted);
    EXPECT_EQ(counted.use_count(), 4);
    {
      const std::shared_ptr<int> one = channel.receive().value();
      EXPECT_EQ(counted.use_count(), 4);
    }
    EXPECT_EQ(counted.use_count(), 3);
  });
  EXPECT_EQ(counted.use_count(), 1);
}

struct Counted {
  static inline int alive = 0;
  Counted() { ++alive; }
  Counted(Counted&&) noexcept { ++alive; }
  ~Counted() { --alive; }
};

TEST(Channel, destroys_also_what_it_has_moved_from) {
  run([] {
    Channel<Counted> channel(2);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(channel.send(Counted()));
      EXPECT_TRUE(channel.receive());
    }
    EXPECT_EQ(Counted::alive, 0);
    auto receiver = spawn([&] { EXPECT_TRUE(channel.receive()); });
    yield();
    EXPECT_TRUE(channel.send(Counted())); // from hand to hand
    receiver.join();
    EXPECT_EQ(Counted::alive, 0);
    EXPECT_TRUE(channel.send(Counted()));
  });
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Channel, delivers_values_that_are_false_or_empty) {
  run([] {
    Channel<std::optional<bool>> channel(3);
    for (const std::optional<bool> value :
         {std::optional<bool>(), std::optional<bool>(false), std::optional<bool>(true)})
      EXPECT_TRUE(channel.send(value));
    EXPECT_FALSE(channel.receive().value().has_value());
    EXPECT_FALSE(*channel.receive().value());
    EXPECT_TRUE(*channel.receive().value());
  });
}

// ---------------------------------------------------------------------------------------------

// A queue and its workers, and the three ways to end it.
struct Workshop {
  Channel<int> queue{4};
  Group workers;
  std::string trace;

  Workshop() {
    for (int i = 0; i < 2; ++i)
      workers.spawn([this] {
        for (const int item : queue) {
          yield();
          trace += std::to_string(item);
        }
      });
  }
};

TEST(QueueAndWorkers, to_stop_is_to_close_to_finish_is_to_join_too_to_abandon_is_to_cancel) {
  run([] {
    Workshop stopped;
    for (int i = 0; i < 4; ++i)
      std::ignore = stopped.queue.send(i);
    stopped.queue.close(); // nothing new; what is there is worked on
    EXPECT_EQ(stopped.trace, "");
    stopped.workers.join(); // the last has been worked on, not only taken
    EXPECT_EQ(stopped.trace, "0123");

    Workshop abandoned;
    for (int i = 0; i < 4; ++i)
      std::ignore = abandoned.queue.send(i);
    yield(); // two of them are being worked on
    abandoned.workers.cancel();
    abandoned.workers.join();
    EXPECT_EQ(abandoned.trace, "");
    EXPECT_EQ(abandoned.queue.size(), 2u); // nobody took the others
  });
}

} // namespace
} // namespace cede
