// SPDX-License-Identifier: MIT
// Rows: P-30 P-31 P-32
// Variables of which each fiber, and each thread outside fibers, has its own.
#include <cede/fiber_local.h>
#include <cede/process.h>
#include <cede/remote.h>
#include <cede/scheduler.h>

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cede {
namespace {

using namespace std::chrono_literals;

constexpr SchedulerOptions kTest{.has_test_clock = true};

// Says its name in a trace when it is destroyed.
struct Named {
  std::string* trace = nullptr;
  std::string name;
  ~Named() {
    if (trace != nullptr)
      *trace += name + " ";
  }
};

// Made before main, as a library that knows no scheduler would.
FiberLocal<int> before_main;
const bool was_set = (*before_main = 41, true);

TEST(FiberLocal, is_the_threads_before_any_scheduler_and_runs_main_goes_on_with_it) {
  ASSERT_TRUE(was_set);
  EXPECT_EQ(*before_main, 41);
  run(kTest, [] {
    EXPECT_EQ(*before_main, 41);
    *before_main = 42;
    spawn([] { EXPECT_EQ(*before_main, 0); }).join();
  });
  EXPECT_EQ(*before_main, 42);
  Scheduler scheduler(kTest);
  scheduler.spawn([] { EXPECT_EQ(*before_main, 0); });
  scheduler.remote().post([] { EXPECT_EQ(*before_main, 42); }).value();
  scheduler.run();
}

TEST(FiberLocal, each_fiber_has_its_own_value) {
  FiberLocal<std::string> word;
  std::string trace;
  run(kTest, [&] {
    for (const char* name : {"a", "b", "c"})
      spawn([&, name] {
        for (int i = 0; i < 3; ++i) {
          *word += name;
          yield();
        }
        trace += word.get() + std::to_string(word->size()) + " ";
      });
    sleep_for(1ms);
    EXPECT_EQ(*word, "");
  });
  EXPECT_EQ(trace, "aaa3 bbb3 ccc3 ");
}

TEST(FiberLocal, a_fiber_on_a_reused_stack_and_record_begins_anew) {
  FiberLocal<int> count;
  run(kTest, [&] {
    for (int i = 0; i < 100; ++i)
      spawn([&] { EXPECT_EQ(++*count, 1); }).join();
  });
}

TEST(FiberLocal, each_thread_has_its_own_value_which_ends_with_it) {
  std::string trace;
  FiberLocal<Named> named;
  named->trace = &trace;
  named->name = "main";
  std::thread([&] {
    EXPECT_EQ(named->name, "");
    named->trace = &trace;
    named->name = "thread";
    run(kTest, [&] { EXPECT_EQ(named->name, "thread"); });
    EXPECT_EQ(trace, "");
  }).join();
  EXPECT_EQ(trace, "thread ");
}

TEST(FiberLocal, is_made_at_first_use_by_its_initialiser) {
  std::string trace;
  int next = 0;
  FiberLocal<const int> number([&] { return ++next; });
  run(kTest, [&] {
    auto shows = [&] {
      const int first = *number;
      trace += std::to_string(first) + std::to_string(*number) + " ";
    };
    spawn(shows).join();
    spawn([] {}).join();
    spawn(shows).join();
    shows();
  });
  EXPECT_EQ(trace, "11 22 33 ");
}

TEST(FiberLocal, its_initialiser_may_wait_fail_and_make_what_cannot_move) {
  int calls = 0;
  FiberLocal<std::atomic<int>> slow([&]() -> std::atomic<int> {
    yield();
    if (++calls == 1)
      throw std::runtime_error("first");
    return std::atomic<int>(calls);
  });
  run(kTest, [&] {
    Fiber<void> one = spawn([&] {
      EXPECT_THROW((void)*slow, std::runtime_error);
      EXPECT_EQ(slow->load(), 2);
    });
    one.join();
  });
  EXPECT_EQ(calls, 2);
}

TEST(FiberLocal, one_that_its_initialiser_has_made_meanwhile_stays) {
  std::string trace;
  int made = 0;
  FiberLocal<Named>* self = nullptr;
  FiberLocal<Named> named([&]() -> Named {
    if (++made == 2)
      return {&trace, "inner"};
    EXPECT_EQ((*self)->name, "inner");
    return {&trace, "outer"};
  });
  self = &named;
  run(kTest, [&] {
    spawn([&] {
      EXPECT_EQ(named->name, "inner");
      EXPECT_EQ(trace, "outer ");
    }).join();
  });
  EXPECT_EQ(trace, "outer inner ");
}

TEST(FiberLocal, values_are_destroyed_in_their_fiber_newest_first_before_its_end_is_known) {
  std::string trace;
  struct Says : Named {
    ~Says() { *trace += std::to_string(current().id()); }
  };
  FiberLocal<Says> a, b, c;
  run(kTest, [&] {
    Fiber<void> fiber = spawn([&] {
      *b = {{&trace, "b"}};
      *a = {{&trace, "a"}};
      *c = {{&trace, "c"}};
      trace.clear(); // of what was assigned from
      trace += "end ";
    });
    fiber.join();
    trace += "joined";
  });
  EXPECT_EQ(trace, "end 2c 2a 2b joined");
}

TEST(FiberLocal, values_are_destroyed_however_the_fiber_ends) {
  std::string trace;
  FiberLocal<Named> named;
  run(kTest, [&] {
    const auto holds = [&](const char* name) {
      named->trace = &trace;
      named->name = name;
    };
    Fiber<void> failed = spawn([&] {
      holds("failed");
      throw std::runtime_error("failed");
    });
    EXPECT_THROW(failed.join(), std::runtime_error);
    Fiber<int> finished = spawn([&]() -> int {
      holds("finished");
      finish(3);
    });
    EXPECT_EQ(finished.join(), 3);
    spawn([&] {
      holds("cancelled");
      park();
    });
    yield();
  });
  EXPECT_EQ(trace, "failed finished cancelled ");
}

TEST(FiberLocal, destructors_may_wait_also_in_a_cancelled_fiber) {
  std::string trace;
  struct Waits {
    std::string* trace = nullptr;
    ~Waits() {
      if (trace != nullptr) {
        sleep_for(1ms);
        *trace += "waited ";
      }
    }
  };
  FiberLocal<Waits> waits;
  run(kTest, [&] {
    Fiber<void> fiber = spawn([&] {
      waits->trace = &trace;
      park();
    });
    yield();
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
    trace += "joined";
  });
  EXPECT_EQ(trace, "waited joined");
}

TEST(FiberLocal, a_destructor_may_use_and_make_others) {
  std::string trace;
  FiberLocal<Named> log;
  struct Uses {
    FiberLocal<Named>* log = nullptr;
    FiberLocal<Named>* late = nullptr;
    ~Uses() {
      if (log == nullptr)
        return;
      (*log)->name += "+";
      *late->get().trace += "late-" + (*log)->name + " ";
    }
  };
  FiberLocal<Uses> uses;
  FiberLocal<Named> makes([&] { return Named{&trace, "makes"}; });
  run(kTest, [&] {
    spawn([&] {
      log->trace = &trace;
      log->name = "log";
      uses->log = &log;
      uses->late = &makes;
    }).join();
  });
  EXPECT_EQ(trace, "late-log+ makes log+ ");
}

TEST(FiberLocal, its_end_destroys_the_values_of_its_threads_fibers) {
  std::string trace;
  run(kTest, [&] {
    std::optional<FiberLocal<Named>> first(std::in_place), second(std::in_place);
    const auto hold = [&](FiberLocal<Named>& local, const char* name) {
      local->trace = &trace;
      local->name = name;
    };
    hold(*first, "main-1");
    Fiber<void> fiber = spawn([&] {
      hold(*first, "fiber-1");
      hold(*second, "fiber-2");
      park();
    });
    yield();
    first.reset();
    EXPECT_TRUE(trace == "main-1 fiber-1 " || trace == "fiber-1 main-1 ") << trace;
    trace.clear();
    fiber.cancel();
    EXPECT_EQ(AnyFiber(fiber).join().error(), Errc::cancelled);
    EXPECT_EQ(trace, "fiber-2 ");
  });
  EXPECT_EQ(trace, "fiber-2 ");
}

TEST(FiberLocal, numbers_are_not_reused) {
  std::thread([] {
    std::optional<FiberLocal<int>> local(std::in_place);
    **local = 1;
    std::thread other([&] {
      **local = 2;
      std::thread([&] { local.reset(); }).join(); // this thread's value is left to it
      local.emplace();
      EXPECT_EQ(**local, 0);
    });
    other.join();
    EXPECT_EQ(**local, 0);
  }).join();
}

TEST(FiberLocal, many_are_found_though_some_are_gone) {
  run(kTest, [] {
    spawn([] {
      std::vector<std::unique_ptr<FiberLocal<int>>> locals;
      for (int i = 0; i < 300; ++i) {
        locals.push_back(std::make_unique<FiberLocal<int>>());
        if (i % 3 != 1)
          **locals.back() = i;
      }
      for (int i = 0; i < 300; i += 2)
        locals[static_cast<std::size_t>(i)].reset();
      for (int i = 1; i < 300; i += 2)
        EXPECT_EQ(**locals[static_cast<std::size_t>(i)], i % 3 != 1 ? i : 0) << i;
    }).join();
  });
}

TEST(FiberLocal, those_that_share_a_place_in_the_table_are_found_when_one_is_gone) {
  run(kTest, [] {
    spawn([] {
      std::vector<std::unique_ptr<FiberLocal<int>>> locals(20);
      std::vector<std::unique_ptr<FiberLocal<int>>> between;
      for (int i = 0; i < 20; ++i) {
        auto& local = locals[static_cast<std::size_t>(i)] = std::make_unique<FiberLocal<int>>();
        **local = i;
        for (int other = 0; other < 63; ++other) // none of which is used
          between.push_back(std::make_unique<FiberLocal<int>>());
      }
      for (std::size_t gone : {3, 4, 0, 11})
        locals[gone].reset();
      for (std::size_t i = 0; i < locals.size(); ++i)
        EXPECT_TRUE(locals[i] == nullptr || **locals[i] == static_cast<int>(i)) << i;
    }).join();
  });
}

TEST(FiberLocal, is_the_threads_in_a_process_and_the_fibers_in_a_process_of_a_fiber) {
  FiberLocal<int> local;
  *local = 7;
  const auto adds = [&] {
    Process main, worker;
    newprocess(worker, [&](void*) {
      ++*local;
      return Next{main};
    }).value();
    transfer(main, worker);
  };
  adds();
  EXPECT_EQ(*local, 8);
  run(kTest, [&] {
    spawn([&] {
      adds();
      EXPECT_EQ(*local, 1);
    }).join();
  });
  EXPECT_EQ(*local, 8);
}

TEST(FiberLocalMisuse, destroyed_while_a_fiber_of_another_thread_holds_a_value) {
  EXPECT_DEATH(run(kTest,
                   [] {
                     auto* local = new FiberLocal<int>;
                     spawn([=] {
                       **local = 1;
                       std::thread([=] { delete local; }).join();
                     }).join();
                   }),
               "a FiberLocal is destroyed while a fiber of another thread holds a value");
}

TEST(FiberLocalMisuse, a_destructor_that_makes_a_new_value_each_time) {
  struct Endless {
    FiberLocal<Endless>* local = nullptr;
    ~Endless() { (*local)->local = local; }
  };
  EXPECT_DEATH(run(kTest,
                   [] {
                     auto* local = new FiberLocal<Endless>;
                     spawn([=] { (*local)->local = local; }).join();
                   }),
               "the destructors of FiberLocals make values without end");
}

} // namespace
} // namespace cede
