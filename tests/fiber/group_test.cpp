// SPDX-License-Identifier: MIT
// Field reports: 38 49
// Groups: fibers that may not outlive a scope.
#include <cede/group.h>
#include <cede/remote.h>
#include <cede/scheduler.h>

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTest{.has_test_clock = true};

// Says in a trace that a scope was left.
struct Leaves {
  std::string& trace;
  const char* what;
  ~Leaves() { trace += what; }
};

// What run's scheduler was told of, as text.
std::string unhandled_of(auto main) {
  std::string told;
  Scheduler scheduler(kTest);
  scheduler.set_unhandled([&](const AnyFiber& fiber, std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      told += std::string(fiber.name()) + ":" + exception.what() + " ";
    }
  });
  scheduler.spawn(main);
  scheduler.run();
  return told;
}

auto throws(const char* what) {
  return [what] { throw std::runtime_error(what); };
}

TEST(Group, join_waits_for_every_member_and_for_those_that_they_spawn) {
  std::string trace;
  run(kTest, [&] {
    Group group;
    group.spawn([&] {
      sleep_for(2ms);
      group.spawn([&] {
        sleep_for(2ms);
        trace += "grandchild ";
      });
      trace += "child ";
    });
    group.spawn([&] { trace += "sibling "; });
    EXPECT_EQ(group.size(), 2u);
    group.join();
    trace += "joined";
    EXPECT_EQ(group.size(), 0u);
  });
  EXPECT_EQ(trace, "sibling child grandchild joined");
}

TEST(Group, a_member_gives_its_result_to_its_own_handle) {
  run(kTest, [] {
    Group group;
    Fiber<int> seven = group.spawn([] { return 7; });
    Fiber<void> named = group.spawn({.name = "named", .priority = 2}, [] {});
    EXPECT_EQ(named.name(), "named");
    EXPECT_EQ(named.priority(), 2);
    group.join();
    EXPECT_EQ(seven.join(), 7);
  });
}

TEST(Group, its_end_cancels_the_members_and_waits_for_them) {
  std::string trace;
  run(kTest, [&] {
    {
      Group group;
      group.spawn([&] {
        Leaves first{trace, "first "};
        park();
        trace += "never ";
      });
      group.spawn([&] {
        Leaves second{trace, "second "};
        const Shield shield;
        sleep_for(5ms);
      });
      yield();
    }
    trace += "after";
  });
  EXPECT_EQ(trace, "first second after");
}

TEST(Group, its_end_waits_even_if_its_fiber_is_cancelled_and_unwinds) {
  std::string trace;
  run(kTest, [&] {
    Fiber<void> owner = spawn([&] {
      Leaves out{trace, "owner"};
      Group group;
      group.spawn([&] {
        Leaves in{trace, "member "};
        const Shield shield;
        sleep_for(5ms);
      });
      group.join();
    });
    yield();
    yield();
    owner.cancel();
    EXPECT_EQ(AnyFiber(owner).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "member owner");
}

TEST(Group, its_end_waits_though_its_fiber_is_cancelled_and_nothing_unwinds) {
  std::string trace;
  run(kTest, [&] {
    Fiber<void> owner = spawn([&] {
      Group group;
      group.spawn([&] {
        Leaves in{trace, "member"};
        const Shield shield;
        sleep_for(5ms);
      });
      yield();
      current().cancel();
    });
    owner.join();
    trace += " owner";
  });
  EXPECT_EQ(trace, "member owner");
}

TEST(Group, the_first_exception_cancels_the_others_and_join_throws_it) {
  std::string trace;
  run(kTest, [&] {
    Group group;
    group.spawn([&] {
      Leaves leaves{trace, "cancelled "};
      park();
    });
    group.spawn(throws("first"));
    Fiber<void> unborn = group.spawn([&] { trace += "never "; });
    try {
      group.join();
    } catch (const std::runtime_error& error) {
      trace += error.what();
    }
    EXPECT_EQ(AnyFiber(unborn).join().error(), Errc::cancelled);
    EXPECT_TRUE(group.is_ending());
  });
  EXPECT_EQ(trace, "cancelled first");
}

TEST(Group, join_throws_the_failure_as_often_as_asked) {
  const std::string told = unhandled_of([] {
    Group group;
    group.spawn(throws("broken"));
    EXPECT_THROW(group.join(), std::runtime_error);
    EXPECT_THROW(group.join(), std::runtime_error);
    EXPECT_THROW((void)group.join(after(1ms)), std::runtime_error);
  });
  EXPECT_EQ(told, "");
}

TEST(Group, cancelled_members_are_no_failure) {
  const std::string told = unhandled_of([] {
    Group group;
    Fiber<void> one = group.spawn([] { park(); });
    group.spawn([] { sleep_for(1ms); });
    yield();
    one.cancel();
    EXPECT_NO_THROW(group.join());
    EXPECT_FALSE(group.is_ending());
    group.spawn([] { park(); });
    group.cancel();
    EXPECT_TRUE(group.join(after(1ms)));
  });
  EXPECT_EQ(told, "");
}

TEST(Group, a_failure_that_nobody_joins_goes_to_the_schedulers_handler) {
  std::string before;
  const std::string told = unhandled_of([&] {
    {
      Group group;
      group.spawn({.name = "one"}, throws("lost"));
      sleep_for(1ms);
      before = group.size() == 0 ? "ended" : "left";
    }
    sleep_for(1ms);
  });
  EXPECT_EQ(before, "ended");
  EXPECT_EQ(told, "one:lost ");
}

TEST(Group, a_failure_while_its_end_waits_goes_to_the_schedulers_handler) {
  const std::string told = unhandled_of([] {
    Group group;
    group.spawn({.name = "it"}, [] {
      try {
        park();
      } catch (const Cancelled&) {
        throw std::runtime_error("late");
      }
    });
    yield();
  });
  EXPECT_EQ(told, "it:late ");
}

TEST(Group, a_failure_after_the_first_goes_to_the_schedulers_handler) {
  const std::string told = unhandled_of([] {
    Group group;
    group.spawn({.name = "second"}, [] {
      try {
        park();
      } catch (const Cancelled&) {
        throw std::runtime_error("late");
      }
    });
    group.spawn({.name = "first"}, throws("early"));
    EXPECT_THROW(group.join(), std::runtime_error);
  });
  EXPECT_EQ(told, "second:late ");
}

TEST(Group, a_failure_that_its_own_handle_joins_is_seen) {
  const std::string told = unhandled_of([] {
    Group group;
    Fiber<void> handle = group.spawn(throws("broken"));
    EXPECT_THROW(handle.join(), std::runtime_error);
    EXPECT_TRUE(group.is_ending());
  });
  EXPECT_EQ(told, "");
}

TEST(Group, a_failure_left_by_its_group_is_its_handles) {
  std::string seen;
  std::string told = unhandled_of([&] {
    Fiber<void> handle;
    {
      Group group;
      handle = group.spawn({.name = "it"}, throws("broken"));
      sleep_for(1ms);
    }
    try {
      handle.join();
    } catch (const std::runtime_error& error) {
      seen = error.what();
    }
    {
      Group group;
      handle = group.spawn({.name = "other"}, throws("broken"));
      sleep_for(1ms);
    }
    handle = {};
  });
  EXPECT_EQ(seen, "broken");
  EXPECT_EQ(told, "other:broken ");
}

TEST(Group, a_spawn_into_one_that_is_ending_is_cancelled_at_birth) {
  auto held = std::make_shared<int>();
  std::string trace;
  run(kTest, [&] {
    Group group;
    group.cancel();
    Fiber<void> late = group.spawn([&trace, held] { trace += "never "; });
    EXPECT_TRUE(late.is_cancelled());
    EXPECT_EQ(group.size(), 1u);
    EXPECT_EQ(held.use_count(), 2);
    group.join();
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(AnyFiber(late).join().error(), Errc::cancelled);
  });
  EXPECT_EQ(trace, "");
}

TEST(Group, a_member_that_spawns_while_it_is_cancelled_is_not_outlived) {
  std::string trace;
  run(kTest, [&] {
    {
      Group group;
      group.spawn([&] {
        try {
          park();
        } catch (const Cancelled&) {
          group.spawn([&] { trace += "never "; });
          throw;
        }
      });
      yield();
    }
    trace += "after";
  });
  EXPECT_EQ(trace, "after");
}

TEST(Group, a_member_leaves_when_it_ends) {
  run(kTest, [] {
    Group group;
    std::vector<Fiber<int>> handles;
    for (int i = 0; i < 1000; ++i) {
      handles.push_back(group.spawn([i] { return i; }));
      if (i % 2 == 0)
        yield();
      EXPECT_LE(group.size(), 2u);
    }
    group.spawn([] { sleep_for(1ms); });
    Fiber<void> middle = group.spawn([] { park(); });
    group.spawn([] { sleep_for(1ms); });
    yield();
    middle.cancel();
    yield();
    EXPECT_EQ(group.size(), 2u);
    group.join();
  });
}

TEST(Group, cancel_reaches_the_members_in_the_order_of_their_birth) {
  std::string trace;
  run(kTest, [&] {
    Group group;
    for (const char* name : {"a ", "b ", "c "})
      group.spawn([&trace, name] {
        Leaves leaves{trace, name};
        park();
      });
    yield();
    group.cancel();
    group.join();
  });
  EXPECT_EQ(trace, "a b c ");
}

TEST(Group, a_member_that_cancels_its_group_meets_it_at_its_next_wait) {
  std::string trace;
  run(kTest, [&] {
    Group group;
    group.spawn([&] {
      group.cancel();
      trace += "still ";
      yield();
      trace += "never ";
    });
    group.join();
  });
  EXPECT_EQ(trace, "still ");
}

TEST(Group, a_join_that_times_out_leaves_the_members_alone) {
  run(kTest, [] {
    Group group;
    bool is_done = false;
    group.spawn([&] {
      sleep_for(5ms);
      is_done = true;
    });
    EXPECT_EQ(group.join(after(1ms)).error(), Errc::timed_out);
    EXPECT_EQ(group.join(after(-1ms)).error(), Errc::timed_out);
    EXPECT_FALSE(is_done);
    EXPECT_TRUE(group.join(after(10ms)));
    EXPECT_TRUE(is_done);
    EXPECT_TRUE(group.join(after(-1ms)));
  });
}

TEST(Group, several_join_and_one_that_was_woken_does_not_touch_it_after_its_end) {
  std::string trace;
  run(kTest, [&] {
    auto group = std::make_unique<Group>();
    Fiber<void> joiner = spawn({.priority = kPriorityMin}, [&, it = group.get()] {
      try {
        it->join();
      } catch (const std::runtime_error& error) {
        trace += error.what();
      }
    });
    group->spawn([] {
      sleep_for(2ms);
      throw std::runtime_error("broken");
    });
    sleep_for(1ms);
    {
      const Shield shield;
      sleep_for(1ms);
    }
    group.reset();
    trace += "gone ";
    joiner.join();
  });
  EXPECT_EQ(trace, "gone broken");
}

TEST(Group, a_join_by_a_member_would_never_end) {
  run(kTest, [] {
    Group group;
    group.spawn([&] {
      EXPECT_EQ(group.join(kForever).error(), Errc::deadlock);
      EXPECT_EQ(group.join(after(1ms)).error(), Errc::timed_out);
      try {
        group.join();
        ADD_FAILURE();
      } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), Errc::deadlock);
      }
    });
    group.join();
  });
}

TEST(Group, outside_fibers_nobody_can_wait_for_members) {
  std::optional<Group> group(std::in_place);
  EXPECT_TRUE(group->join(after(1ms)));
  EXPECT_THROW(group->spawn([] {}), std::system_error);
  Scheduler scheduler(kTest);
  scheduler.spawn([&] {
    group->spawn([] { sleep_for(1ms); });
    std::thread([&] { EXPECT_EQ(group->join(kForever).error(), Errc::not_a_fiber); }).join();
  });
  EXPECT_EQ(scheduler.run_until(scheduler.now()), Progress::timed_out);
  EXPECT_EQ(group->join(kForever).error(), Errc::not_a_fiber);
  scheduler.run();
  EXPECT_TRUE(group->join(kForever));
  group.reset();
}

TEST(Group, a_post_may_spawn_into_it) {
  std::string trace;
  Scheduler scheduler(kTest);
  Group group;
  scheduler.remote().post([&] { group.spawn([&] { trace += "member "; }); }).value();
  scheduler.run();
  EXPECT_EQ(trace, "member ");
}

TEST(Group, its_members_are_of_one_scheduler) {
  Scheduler other(kTest);
  Group group;
  std::string trace;
  other.spawn([&] { group.spawn([] { sleep_for(1ms); }); });
  EXPECT_EQ(other.run_until(other.now()), Progress::timed_out);
  run(kTest, [&] {
    EXPECT_THROW(group.spawn([&] { trace += "never"; }), std::system_error);
    EXPECT_EQ(group.join(kForever).error(), Errc::invalid_argument);
  });
  group.cancel();
  other.run();
  EXPECT_EQ(group.size(), 0u);
  EXPECT_EQ(trace, "");
}

TEST(Group, a_member_without_a_stack_is_a_failure) {
  Group group;
  Scheduler scheduler(kTest);
  scheduler.spawn([&] {
    group.spawn({.stack = {.bytes = std::size_t{1} << 62}}, [] {});
    group.spawn([] { park(); });
  });
  scheduler.run();
  EXPECT_EQ(group.join(kForever).error(), Errc::no_memory);
  EXPECT_TRUE(group.is_ending());
}

TEST(GroupMisuse, destroyed_by_a_member) {
  EXPECT_DEATH(run(kTest,
                   [] {
                     auto* group = new Group;
                     group->spawn([=] { delete group; });
                     park();
                   }),
               "a group is destroyed by one of its members");
}

TEST(GroupMisuse, destroyed_outside_fibers_with_members_left) {
  EXPECT_DEATH(
      {
        auto* scheduler = new Scheduler(kTest);
        auto* group = new Group;
        scheduler->spawn([=] { group->spawn([] { park(); }); });
        (void)scheduler->run_until(scheduler->now());
        delete group;
      },
      "a group is destroyed where nobody can wait");
}

TEST(GroupMisuse, cancelled_on_another_thread) {
  EXPECT_DEATH(run(kTest,
                   [] {
                     Group group;
                     group.spawn([] { park(); });
                     std::thread([&] { group.cancel(); }).join();
                   }),
               "on another thread than its scheduler's");
}

} // namespace
} // namespace cede
