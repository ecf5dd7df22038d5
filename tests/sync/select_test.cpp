// SPDX-License-Identifier: MIT
// Rows: P-60 P-63 C-T8
// Field reports: 46 49
// select: one branch, chosen fairly, and nothing of the others.
#include "support/environment.h"

#include <cede/fiber.h>
#include <cede/remote.h>
#include <cede/scheduler.h>
#include <cede/select.h>
#include <cede/stop.h>

#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTestClock{.has_test_clock = true};

TEST(Select, takes_the_branch_that_can_go_and_returns_its_index) {
  run([] {
    Channel<int> one(1), other(1);
    Event event(Event::kAuto, true);
    std::ignore = other.send(7);
    int received = 0;
    const auto store = [&](Result<int> value) { received = value.value(); };
    EXPECT_EQ(select(on_receive(one, store), on_receive(other, store)), 1u);
    EXPECT_EQ(received, 7);
    int sent = 8;
    EXPECT_EQ(select(on_receive(one, store), on_receive(other, store), on_event(event)), 2u);
    EXPECT_FALSE(event.is_set());
    EXPECT_EQ(select(on_receive(other, store), on_send(one, sent)), 1u);
    EXPECT_EQ(one.receive().value(), 8);
  });
}

TEST(Select, waits_for_the_first_and_takes_nothing_of_the_others) {
  run([] {
    Channel<std::string> in, out;
    Semaphore semaphore(0);
    Signal signal;
    std::string value = "kept", received;
    std::size_t chosen = 9;
    auto selector = spawn([&] {
      chosen = select(on_receive(in, [&](Result<std::string> text) { received = text.value(); }),
                      on_send(out, value), on_semaphore(semaphore, 2), on_signal(signal));
    });
    yield();
    EXPECT_EQ(in.receivers(), 1u);
    EXPECT_EQ(out.senders(), 1u);
    EXPECT_EQ(semaphore.waiters(), 1u);
    EXPECT_TRUE(in.send("hello"));
    EXPECT_EQ(out.senders() + semaphore.waiters() + signal.waiters(), 0u); // before it has run
    semaphore.release(2);
    signal.send();
    EXPECT_EQ(out.try_receive().error(), Errc::again);
    selector.join();
    EXPECT_EQ(chosen, 0u);
    EXPECT_EQ(received, "hello");
    EXPECT_EQ(value, "kept");
    EXPECT_EQ(semaphore.count(), 2);
    EXPECT_TRUE(signal.is_set());
  });
}

TEST(Select, takes_nothing_of_a_second_branch_that_could_go_now) {
  run([] {
    Event one(Event::kAuto, true), other(Event::kAuto, true);
    for (int i = 0; i < 2; ++i) {
      const std::size_t chosen = select(on_event(one), on_event(other));
      EXPECT_EQ(one.is_set(), chosen == 1);
      EXPECT_EQ(other.is_set(), chosen == 0);
      one.set();
      other.set();
    }
  });
}

TEST(Select, sends_to_who_receives_and_moves_the_value_only_then) {
  run([] {
    Channel<std::unique_ptr<int>> one, other;
    auto value = std::make_unique<int>(3);
    bool was_told = false;
    auto selector = spawn([&] {
      return select(on_send(one, value),
                    on_send(other, value, [&](Result<void> sent) { was_told = sent.has_value(); }));
    });
    yield();
    EXPECT_NE(value, nullptr);
    EXPECT_EQ(*other.receive().value(), 3);
    EXPECT_EQ(selector.join(), 1u);
    EXPECT_EQ(value, nullptr);
    EXPECT_TRUE(was_told);
    EXPECT_EQ(one.senders(), 0u);
  });
}

TEST(Select, begins_with_each_branch_in_its_turn) {
  run([] {
    std::array<Channel<int>, 3> channels{Channel<int>(1), Channel<int>(1), Channel<int>(1)};
    std::array<int, 3> taken{};
    const auto drop = [](Result<int>) {};
    int other = 0;
    for (int i = 0; i < 3000; ++i) {
      for (auto& channel : channels)
        std::ignore = channel.try_send(1);
      ++taken[select(on_receive(channels[0], drop), on_receive(channels[1], drop),
                     on_receive(channels[2], drop))];
      Event set(Event::kManual, true); // another select each time must not take the turns
      other += select(on_event(set), on_event(set)) == 1 ? 1 : 0;
    }
    for (const int count : taken)
      EXPECT_NEAR(count, 1000, 20);
    EXPECT_NEAR(other, 1500, 20);
  });
}

TEST(Select, with_otherwise_never_waits) {
  Channel<int> channel; // on a plain thread too
  int value = 1;
  bool was_called = false;
  EXPECT_EQ(select(on_receive(channel, [](Result<int>) {}), otherwise([&] { was_called = true; }),
                   on_send(channel, value)),
            1u);
  EXPECT_TRUE(was_called);
  EXPECT_EQ(channel.senders() + channel.receivers(), 0u);
  channel.close();
  std::error_code error;
  EXPECT_EQ(select(on_receive(channel, [&](Result<int> got) { error = got.error(); }), otherwise()),
            0u);
  EXPECT_EQ(error, Errc::closed);
  Channel<int> other;
  EXPECT_THROW(select(on_receive(other, [](Result<int>) {})), std::system_error);
}

TEST(Select, ends_at_the_earliest_of_its_deadlines) {
  run(kTestClock, [] {
    Channel<int> channel;
    const TimePoint begin = now();
    const auto drop = [](Result<int>) {};
    EXPECT_EQ(select(on_deadline(after(9ms)), on_receive(channel, drop), on_deadline(after(3ms)),
                     on_deadline(kForever)),
              2u);
    EXPECT_EQ(now() - begin, 3ms);
    EXPECT_EQ(channel.receivers(), 0u);
    Channel<int> ready(1);
    for (int turn = 0; turn < 4; ++turn) {
      std::ignore = ready.send(1);
      EXPECT_EQ(select(on_deadline(after(-1s)), on_receive(ready, drop)), 1u);
    }
    EXPECT_EQ(select(on_deadline(after(-1s)), on_receive(ready, drop)), 0u);
  });
}

TEST(Select, is_told_of_an_end_and_of_what_can_never_happen) {
  run([] {
    Channel<int> channel;
    std::error_code how;
    const auto note = [&](Result<void> result) { how = result ? Errc{} : result.error(); };
    auto done = spawn([] {});
    EXPECT_EQ(select(on_receive(channel, [](Result<int>) {}), on_join(done, note)), 1u);
    EXPECT_EQ(how, std::error_code(Errc{}));
    auto failing = spawn([] { throw std::runtime_error("no"); });
    select(on_join(failing, note));
    EXPECT_EQ(how, Errc::failed);
    EXPECT_THROW(failing.join(), std::runtime_error);
    select(on_join(current(), note));
    EXPECT_EQ(how, Errc::deadlock);
    select(on_join(AnyFiber(), note));
    EXPECT_EQ(how, Errc::deadlock);
    Semaphore semaphore(5);
    select(on_semaphore(semaphore, 0, note));
    EXPECT_EQ(how, Errc::invalid_argument);
    int value = 1;
    channel.close();
    select(on_send(channel, value, note));
    EXPECT_EQ(how, Errc::closed);
  });
}

TEST(Select, does_not_wait_for_a_fiber_of_another_scheduler) {
  Scheduler other(kTestClock);
  auto fiber = other.spawn([] {});
  run([&] {
    std::error_code how;
    select(on_join(fiber, [&](Result<void> result) { how = result.error(); }));
    EXPECT_EQ(how, Errc::invalid_argument);
  });
  other.run();
}

TEST(Select, is_told_how_what_it_waited_for_has_ended) {
  run([] {
    Channel<int> in, out;
    auto semaphore = std::make_unique<Semaphore>(0);
    std::error_code how;
    const auto note = [&](Result<void> result) { how = result ? Errc{} : result.error(); };
    const auto expect = [&](Errc error, auto wait, auto end) {
      how = Errc::again;
      auto fiber = spawn(wait);
      yield();
      end();
      fiber.join();
      EXPECT_EQ(how, error);
    };
    int value = 1;
    expect(
        Errc::closed, [&] { select(on_send(out, value, note)); }, [&] { out.close(); });
    expect(
        Errc::closed, [&] { select(on_receive(in, [&](Result<int> got) { note(got.error()); })); },
        [&] { in.close(); });
    expect(
        Errc::closed, [&] { select(on_semaphore(*semaphore, 1, note)); },
        [&] { semaphore.reset(); });
    auto fiber = spawn([] { yield(), yield(); });
    expect(
        Errc{}, [&] { select(on_join(fiber, note)); }, [&] { fiber.join(); });
  });
}

TEST(Select, hears_of_what_is_destroyed_and_touches_nothing_of_it) {
  run([] {
    auto channel = std::make_unique<Channel<int>>();
    auto event = std::make_unique<Event>(Event::kAuto);
    auto semaphore = std::make_unique<Semaphore>(0);
    std::error_code error;
    const auto start = [&] {
      return spawn([&, c = channel.get(), e = event.get(), s = semaphore.get()] {
        const auto note = [&](Result<void> result) { error = result.error(); };
        return select(on_receive(*c, [&](Result<int> value) { error = value.error(); }),
                      on_event(*e, note), on_semaphore(*s, 1, note));
      });
    };
    auto first = start();
    yield();
    event.reset();
    semaphore.reset();
    channel.reset();
    EXPECT_EQ(first.join(), 1u);
    EXPECT_EQ(error, Errc::closed);
  });
}

TEST(Select, that_has_a_branch_keeps_it_whatever_is_asked_of_its_fiber) {
  run([] {
    Channel<int> channel;
    int received = 0;
    auto selector = spawn([&] {
      select(on_receive(channel, [&](Result<int> value) { received = value.value(); }));
      yield();
      ADD_FAILURE();
    });
    yield();
    EXPECT_TRUE(channel.send(4));
    selector.cancel();
    EXPECT_EQ(selector.join(kForever).error(), Errc::cancelled);
    EXPECT_EQ(received, 4);
  });
}

TEST(Select, that_is_cancelled_has_no_branch) {
  run([] {
    Channel<int> channel(1);
    int calls = 0;
    const auto count = [&](Result<int>) { ++calls; };
    auto waiting = spawn([&] { select(on_receive(channel, count)); });
    yield();
    waiting.cancel();
    EXPECT_EQ(channel.receivers(), 0u);
    EXPECT_EQ(waiting.join(kForever).error(), Errc::cancelled);
    std::ignore = channel.send(1);
    auto by_result = spawn([&] {
      current().cancel();
      const CancelByResult scope;
      Channel<int> other;
      return select(on_receive(channel, count), on_receive(other, count));
    });
    EXPECT_EQ(by_result.join(), 2u);
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(channel.size(), 1u);
  });
}

TEST(Select, a_cancellation_that_is_reported_while_it_waits_is_not_the_deadline) {
  run(kTestClock, [] {
    Channel<int> channel;
    int calls = 0;
    auto fiber = spawn([&] {
      const CancelByResult scope;
      return select(on_deadline(after(1h), [&] { ++calls; }),
                    on_receive(channel, [&](Result<int>) { ++calls; }));
    });
    yield();
    fiber.cancel();
    EXPECT_EQ(fiber.join(), 2u);
    EXPECT_EQ(calls, 0);
  });
}

TEST(Select, two_that_offer_both_sides_of_a_rendezvous_meet) {
  run([] {
    Channel<int> channel;
    const auto both = [&](int mine) {
      return spawn([&channel, mine]() mutable {
        int received = 0;
        const std::size_t chosen =
            select(on_send(channel, mine),
                   on_receive(channel, [&](Result<int> value) { received = value.value(); }));
        return chosen == 0 ? 0 : received;
      });
    };
    auto first = both(1), second = both(2);
    const int one = first.join(), other = second.join();
    EXPECT_TRUE((one == 0 && other == 1) || (one == 2 && other == 0));
    EXPECT_EQ(channel.senders() + channel.receivers(), 0u);
  });
}

TEST(Select, runs_its_function_when_nothing_of_it_waits_any_more_and_lets_it_wait_and_throw) {
  run([] {
    Channel<int> one(1), other(1);
    std::ignore = one.send(1);
    EXPECT_THROW(select(on_receive(one,
                                   [&](Result<int>) {
                                     EXPECT_EQ(one.receivers() + other.receivers(), 0u);
                                     yield();
                                     throw std::runtime_error("from within");
                                   }),
                        on_receive(other, [](Result<int>) { return 5; })),
                 std::runtime_error);
    EXPECT_EQ(one.size(), 0u);
  });
}

// Each that wakes leaves the other line, where it held up the next, who leaves the first line then:
// a chain as long as the lines, and no recursion.
TEST(Select, a_long_chain_of_those_who_leave_lines_ends) {
  run([] {
    const long fibers = test::scaled(5'000, 100);
    Semaphore one(0), other(fibers);
    int gone = 0;
    for (long i = 0; i < fibers; ++i)
      spawn([&, i] {
        select(on_semaphore(one, 1), on_semaphore(other, i % 2 == 0 ? 2 * fibers : 1));
        ++gone;
      });
    yield();
    EXPECT_EQ(other.waiters(), static_cast<std::size_t>(fibers));
    one.release(fibers);
    while (gone < fibers)
      yield();
    EXPECT_EQ(one.waiters() + other.waiters(), 0u);
    EXPECT_EQ(one.count() + other.count(), fibers);
  });
}

TEST(NoSuspend, refuses_also_waits_that_need_not_wait) {
  const auto inside = [](auto wait) {
    run([wait] {
      Channel<int> channel(2);
      Semaphore semaphore(1);
      Signal signal;
      Event event(Event::kManual, true);
      auto ended = spawn([] {});
      std::ignore = channel.send(1);
      signal.send();
      yield();
      const NoSuspend whole;
      wait(channel, semaphore, signal, event, ended);
    });
  };
  const char* message = "a wait inside a NoSuspend scope";
  EXPECT_DEATH(inside([](auto& c, auto&, auto&, auto&, auto&) { std::ignore = c.send(1); }),
               message);
  EXPECT_DEATH(inside([](auto& c, auto&, auto&, auto&, auto&) { std::ignore = c.receive(); }),
               message);
  EXPECT_DEATH(inside([](auto&, auto& s, auto&, auto&, auto&) { s.acquire(); }), message);
  EXPECT_DEATH(inside([](auto&, auto&, auto& s, auto&, auto&) { s.wait(); }), message);
  EXPECT_DEATH(inside([](auto&, auto&, auto&, auto& e, auto&) { e.wait(); }), message);
  EXPECT_DEATH(inside([](auto&, auto&, auto&, auto&, auto& f) { f.join(); }), message);
  EXPECT_DEATH(inside([](auto&, auto&, auto&, auto& e, auto&) { select(on_event(e)); }), message);
  inside([](auto& c, auto& s, auto& signal, auto&, auto&) { // none of these is a wait
    EXPECT_TRUE(c.try_receive() && c.try_send(1) && s.try_acquire() && signal.try_wait());
  });
}

// ---------------------------------------------------------------------------------------------

TEST(StopEvent, ends_a_wait_when_a_stop_is_requested_on_another_thread) {
  run([] {
    std::stop_source source;
    Channel<int> channel;
    std::thread other;
    {
      StopEvent stop(source.get_token());
      EXPECT_FALSE(stop.is_set());
      other = std::thread([&] {
        std::this_thread::sleep_for(20ms);
        source.request_stop();
      });
      EXPECT_EQ(select(on_receive(channel, [](Result<int>) {}), on_event(stop)), 1u);
      EXPECT_TRUE(stop.is_set());
    }
    other.join();
  });
}

TEST(StopEvent, of_this_thread_is_set_at_once_and_one_that_is_late_from_the_start) {
  run([] {
    std::stop_source source;
    StopEvent stop(source.get_token());
    source.request_stop();
    EXPECT_TRUE(stop.is_set());
    stop.wait();
    const StopEvent late(source.get_token());
    EXPECT_TRUE(late.is_set());
    const StopEvent never{std::stop_token()};
    EXPECT_FALSE(never.is_set());
  });
  EXPECT_THROW(StopEvent{std::stop_token()}, std::system_error);
}

TEST(StopEvent, that_is_gone_is_not_touched_by_a_request_on_its_way) {
  for (int i = 0; i < test::scaled(200, 20); ++i)
    run([] {
      std::stop_source source;
      auto stop = std::make_unique<StopEvent>(source.get_token());
      std::thread other([&] { source.request_stop(); });
      if (source.stop_requested())
        yield();
      stop.reset();
      other.join();
      yield();
    });
}

TEST(StopEvent, of_another_thread_is_set_when_its_own_scheduler_comes_to_it) {
  run([] {
    std::stop_source source;
    StopEvent stop(source.get_token());
    std::thread([&] { run([&] { source.request_stop(); }); }).join();
    EXPECT_FALSE(stop.is_set());
    stop.wait();
    stop.wait(); // as of a manual event
  });
}

TEST(StopEvent, that_is_gone_sets_nothing_that_lies_where_it_was) {
  run([] {
    union Memory {
      StopEvent stop;
      Event event;
      Memory() {}
      ~Memory() {}
    } memory;
    std::stop_source source;
    std::construct_at(&memory.stop, source.get_token());
    std::thread([&] { source.request_stop(); }).join();
    std::destroy_at(&memory.stop); // with the request on its way
    std::construct_at(&memory.event, Event::kManual);
    bool was_posted = false;
    EXPECT_TRUE(remote().post([&] { was_posted = true; }));
    while (!was_posted) // behind that request
      yield();
    EXPECT_FALSE(memory.event.is_set());
    std::destroy_at(&memory.event);
  });
}

TEST(StopEvent, that_is_gone_or_can_never_come_ends_no_wait) {
  std::stop_source source;
  Scheduler scheduler(kTestClock);
  scheduler.spawn([&] {
    {
      const StopEvent stop(source.get_token());
      yield();
    }
    const StopEvent never{std::stop_token()};
    park();
  });
  EXPECT_EQ(scheduler.run_until(kForever), Progress::deadlock);
}

} // namespace
} // namespace cede
