// SPDX-License-Identifier: MIT
// Schedulers: what runs the fibers of a thread, and the ways to drive one.
#pragma once

#include <cede/fiber.h>
#include <cede/result.h>
#include <cede/time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cede {

class Remote;
class Watchdog;

// How the next of those who are ready is chosen.
enum class ReadyOrder : std::uint8_t {
  by_priority, // strictly; first in, first out among equals
  in_turn,     // first in, first out, whatever the priorities
  at_random,   // drawn from SchedulerOptions::seed, whatever the priorities: for tests
};

// Told of an exception that ended a fiber which nobody can join. It runs between fibers and must
// not wait.
using UnhandledError = std::function<void(const AnyFiber& fiber, std::exception_ptr error)>;

// Called when no fiber is ready and nothing that is known could ever make one ready. It runs
// between fibers and must not wait; it may spawn, wake or post. False, or nobody ready after it,
// means that this is the end: the deadlock is reported and the program exits with status 51.
using IdleHook = std::function<bool()>;

// What the system has to wait for files and sockets.
enum class Backend : std::uint8_t {
  automatic, // what the environment's CEDE_POLLER names; else io_uring where it may be used
  epoll,
  io_uring,
};

// Told of orders of locking that can end in a deadlock, with the fibers that locked so and the
// addresses of the mutexes. It runs in the fiber that locks, and must not wait.
using LockOrderReport = std::function<void(const std::string& report)>;

struct SchedulerOptions {
  ReadyOrder order = ReadyOrder::by_priority;
  std::uint64_t seed = 0;
  // Posts from other threads that may wait to be run; more are refused.
  std::size_t post_limit = 1024;
  // The clock stands still while fibers run and jumps to the next deadline when none is ready;
  // Scheduler::advance moves it too. It starts at the real now.
  bool has_test_clock = false;
  // For SchedulerMetrics::longest_slice: the clock is read twice at every dispatch, 50 ns, and no
  // yield is taken inline.
  bool times_slices = false;
  // For development: tells when mutexes are locked in orders by which two fibers could wait for
  // each other, though they didn't. Locks are no longer taken inline then.
  bool checks_lock_order = false;
  Backend backend = Backend::automatic;
  // Threads that do what blocking() is given, at most, and the calls that may wait for one.
  std::size_t helpers = 4;
  std::size_t helper_queue = 256;
};

// What a scheduler was driven to.
enum class Progress : std::uint8_t {
  worked,    // something ran
  timed_out, // the time was up, or nothing was ready; somebody is left
  closed,    // nobody is left and nothing is to be run
  deadlock,  // somebody is left whom nothing that is known could ever make ready
};

// What a fiber is seen to do.
struct FiberInfo {
  std::uint64_t id = 0;
  std::string name;
  FiberState state = FiberState::created;
  int priority = 0;
  const char* waits_for = nullptr; // null while it doesn't wait
  std::uint64_t waits_for_id = 0;  // of the fiber that is joined or holds the mutex; else 0
  Deadline deadline = kForever;    // of that wait
  std::string spawned_at;          // file:line
};

// How many waits that ended by time were woken how late: the first of them less than a microsecond
// after its deadline, number n less than 2^n, the last one later than that too. A wait whose
// deadline had passed before it began isn't counted.
using LatenessHistogram = std::array<std::uint64_t, 24>;

// Times are of the scheduler's clock.
struct SchedulerMetrics {
  std::size_t alive = 0;           // fibers that have not ended
  std::size_t stacks = 0;          // of them, those with a stack
  std::size_t deadlines = 0;       // waits that end by time
  std::uint64_t spawned = 0;       // fibers made so far
  std::uint64_t switches = 0;      // dispatches so far
  std::uint64_t services = 0;      // looks at posts and deadlines so far
  std::uint64_t idle_waits = 0;    // how often the thread slept, since nobody was ready
  std::uint64_t posts_refused = 0; // since the limit was reached
  std::size_t posts_waiting = 0;   // accepted and not yet run
  std::uint64_t unhandled_errors = 0;
  // From one service to the next, with fibers running between, while run or run_until drives it. If
  // it is long, one of them computes, or calls what blocks the thread. It costs nothing, so it is
  // known only while there are waits with a deadline, for which the clock is read anyway; or with
  // SchedulerOptions::times_slices.
  std::chrono::nanoseconds longest_round{0};
  // From a fiber's dispatch to its next wait, yield or end, and whose it was. With
  // SchedulerOptions::times_slices only; else no time, of nobody.
  std::chrono::nanoseconds longest_slice{0};
  std::uint64_t longest_slice_id = 0;
  char longest_slice_name[32] = {};
  LatenessHistogram late{};
};

// One line of key=value, in the order above; times in microseconds, rounded down. Of the histogram
// what isn't zero: late_below_1us to late_below_4194304us, and late_above_4194304us.
std::string to_text(const SchedulerMetrics& metrics);

// Runs fibers on the thread that made it; they never leave it. One at a time is driven on a thread,
// and not from within its own fibers.
//
//   cede::Scheduler scheduler;
//   scheduler.spawn([] { cede::sleep_for(10ms); });
//   scheduler.run();
//
// Destroying it cancels what is left and runs that to its end; if that can never be, it fails a
// check that says who is left.
//   Thread    owner only; another one fails a check. remote() serves the others
class Scheduler {
public:
  // Throws    std::bad_alloc
  explicit Scheduler(SchedulerOptions options = {});
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler();

  // As cede::spawn, but from outside its fibers too.
  template <class F>
  auto spawn(F body, detail::Place place = CEDE_CALLER) -> Fiber<std::invoke_result_t<F&>> {
    return detail::spawn_on(state_.get(), nullptr, body, place);
  }
  template <class F>
  auto spawn(FiberOptions options, F body, detail::Place place = CEDE_CALLER)
      -> Fiber<std::invoke_result_t<F&>> {
    return detail::spawn_on(state_.get(), &options, body, place);
  }

  // Drives it until nobody is left. A deadlock is reported and ends the program with status 51,
  // unless the idle hook helps.
  //   Blocks    the thread
  void run();
  // The same until `deadline`; a deadline that has passed runs what is ready once. It gives
  // `closed`, `timed_out` or `deadlock`, and reports nothing.
  Progress run_until(Deadline deadline);
  // Runs at most one post and one fiber, and never blocks.
  Progress step();
  // Waits until something can run, but at most that long, and does one step.
  Progress poll_until(Deadline deadline);
  template <class Rep, class Period>
  Progress poll_for(std::chrono::duration<Rep, Period> duration) {
    return poll_until(Deadline::from_nanoseconds(
        detail::add_saturated(now().time_since_epoch().count(), detail::nanoseconds_of(duration))));
  }

  // The time by its clock; cede::now() is the same in its fibers.
  TimePoint now() const noexcept;

  // Fibers that have not ended.
  std::size_t alive() const noexcept;

  // Cancels all fibers, and from now on those that are spawned; posts are refused. It has to be
  // driven on for them to end.
  void close() noexcept;
  // Closes it and drives it until all fibers have ended or `deadline`: says who is left.
  std::vector<FiberInfo> drain(Deadline deadline);

  // What other threads use to reach it.
  Remote remote();

  // What it waits for files and sockets with: "epoll" or "io_uring". Chosen by the first that it
  // waits for, or by this.
  //   Fails     function_not_supported, of std::errc, if what is asked for isn't there; what else
  //             the system says
  Result<const char*> backend_name();

  void set_unhandled(UnhandledError handler);
  void set_idle(IdleHook hook);
  // Instead of a line on standard error. No effect without SchedulerOptions::checks_lock_order.
  void set_lock_order(LockOrderReport report);

  // Moves a test clock; any other fails a check.
  void advance(std::chrono::nanoseconds duration);

  std::vector<FiberInfo> fibers() const;
  // The same as text, a line each, and circles of joins.
  std::string dump() const;
  SchedulerMetrics metrics() const noexcept;

private:
  friend class Watchdog;
  std::unique_ptr<core::SchedulerState> state_;
};

// Makes a scheduler, runs `main` as its first fiber, cancels and runs to their end those that are
// left, and returns what `main` returned or throws what it threw.
//   Blocks    the thread
//   Throws    what `main` threw; std::system_error as spawn
template <class F>
auto run(SchedulerOptions options, F main, detail::Place place = CEDE_CALLER)
    -> std::invoke_result_t<F&>;
template <class F>
auto run(F main, detail::Place place = CEDE_CALLER) -> std::invoke_result_t<F&> {
  return run(SchedulerOptions{}, std::move(main), place);
}

// As run() on each of `threads` threads at once, the calling one among them, with a scheduler each.
// All call the one `main`, as `main(unsigned thread)` if it takes a number: from 0, which is the
// calling thread's. It returns when the last has ended, whatever befell the others; what `main`
// returned is dropped.
//   Blocks    the thread
//   Throws    what `main` threw, of several the one of the lowest number; the others are a line
//   each
//             on standard error. std::system_error: invalid_argument for no thread or no main; and
//             if a thread can't be had, when none has called `main`
template <class F>
void run_on(unsigned threads, SchedulerOptions options, F main);
template <class F>
void run_on(unsigned threads, F main) {
  run_on(threads, SchedulerOptions{}, std::move(main));
}

// ---------------------------------------------------------------------------------------------

namespace detail {
// Drives it until `main` has ended, and then as its end asks for.
void run_main(Scheduler& scheduler, const AnyFiber& main);

// Calls `body(argument, number)` on that many threads, on this one with 0; on all or on none.
void run_on_threads(unsigned threads, void (*body)(void* argument, unsigned number),
                    void* argument);
} // namespace detail

template <class F>
auto run(SchedulerOptions options, F main, detail::Place place) -> std::invoke_result_t<F&> {
  using R = std::invoke_result_t<F&>;
  Scheduler scheduler(options);
  Fiber<R> first = scheduler.spawn(FiberOptions{.name = "main"}, std::move(main), place);
  detail::run_main(scheduler, first);
  return first.join();
}

template <class F>
void run_on(unsigned threads, SchedulerOptions options, F main) {
  if (detail::is_null(main))
    detail::throw_error(Errc::invalid_argument);
  auto body = [&](unsigned number) {
    run(options, [&main, number] {
      if constexpr (std::is_invocable_v<F&, unsigned>)
        std::invoke(main, number);
      else
        std::invoke(main);
    });
  };
  detail::run_on_threads(
      threads,
      [](void* argument, unsigned number) { (*static_cast<decltype(body)*>(argument))(number); },
      &body);
}

} // namespace cede
