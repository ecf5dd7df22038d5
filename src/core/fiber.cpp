// SPDX-License-Identifier: MIT
#include "fiber.h"

#include "check.h"
#include "scheduler_state.h"
#include "unhandled.h"

#include <exception>
#include <memory>
#include <thread>

namespace cede {

using core::Interruption;
using core::running_fiber;
using core::SchedulerState;
using detail::FiberExtras;
using detail::FiberRecord;
using detail::FiberStage;
using detail::kPark;
using detail::Outcome;

namespace {

// A wait for a particular call is told by the address of its name.
constexpr char kSchedule[] = "schedule";
constexpr char kSleep[] = "sleep";
constexpr char kJoin[] = "join";

// The fiber that is to wait, or the reason why there is none.
FiberRecord& fiber_that_waits() {
  FiberRecord* me = running_fiber();
  if (me == nullptr)
    detail::throw_error(Errc::not_a_fiber);
  return *me;
}

bool is_in(const FiberRecord& fiber, const char* wait) noexcept {
  return fiber.waiter != nullptr && fiber.waiter->what() == wait && !fiber.waiter->has_fired();
}

} // namespace

namespace core {

FiberExtras* extras_of(FiberRecord& fiber) noexcept {
  if (fiber.extras == nullptr)
    fiber.extras = new (std::nothrow) FiberExtras;
  return fiber.extras;
}

// A list of joiners lies in the record of the fiber that they wait for.
const FiberRecord* joined_by(const FiberRecord& fiber) noexcept {
  if (!is_in(fiber, kJoin) || fiber.waiter->has_deadline())
    return nullptr;
  const auto* list = reinterpret_cast<const std::byte*>(fiber.waiter->list());
  return reinterpret_cast<const FiberRecord*>(list - offsetof(FiberRecord, joiners));
}

bool is_parked(const FiberRecord& fiber) noexcept {
  return is_in(fiber, kPark);
}

StackOptions stack_options_of(const FiberRecord& fiber) noexcept {
  StackOptions options;
  if (fiber.extras != nullptr) {
    options = fiber.extras->stack;
    options.name = fiber.extras->name;
  }
  return options;
}

std::string_view name_of(const FiberRecord& fiber) noexcept {
  return fiber.extras != nullptr ? fiber.extras->name : std::string_view();
}

bool has_lost_error(const FiberRecord& fiber) noexcept {
  return fiber.outcome == Outcome::failed && !fiber.is_owned && !fiber.is_claimed;
}

void hand_over_lost_error(FiberRecord& fiber) noexcept {
  if (!has_lost_error(fiber) || fiber.is_result_taken || fiber.scheduler == nullptr)
    return;
  ++fiber.references;
  fiber.next = std::exchange(fiber.scheduler->failed, &fiber);
  fiber.scheduler->call_pump();
}

detail::Departure run_fiber(detail::EntryHead* head, void*) {
  auto& me = *reinterpret_cast<FiberRecord*>(head->execution);
  try {
    me.kind->run(me);
    me.outcome = Outcome::done;
  } catch (const Cancelled&) {
    me.outcome = Outcome::cancelled;
  }
  CEDE_PASS_FORCED_UNWIND
  catch (...) {
    ::new (static_cast<void*>(&detail::error_of(me))) std::exception_ptr(std::current_exception());
    me.outcome = Outcome::failed;
  }
  if (me.is_finishing && me.outcome == Outcome::cancelled) {
    if (void* value = std::exchange(me.extras->finish_value, nullptr)) {
      me.kind->adopt(me, value);
      me.extras->destroy_finish_value(value);
    }
    me.outcome = Outcome::done;
  }
  if (me.extras != nullptr)
    destroy_values(me);
  return me.scheduler->end(me);
}

Result<void> how_it_ended(const FiberRecord& fiber) noexcept {
  switch (fiber.outcome) {
  case Outcome::cancelled:
    return Errc::cancelled;
  case Outcome::no_memory:
    return Errc::no_memory;
  case Outcome::failed:
    return Errc::failed;
  default:
    return {};
  }
}

void call_exits(FiberRecord& fiber) noexcept {
  for (auto exits = std::move(fiber.extras->exits); !exits.empty(); exits.pop_back()) {
    try {
      exits.back()(how_it_ended(fiber));
    } catch (...) {
      report_unhandled(*fiber.scheduler, detail::FiberAccess::reference(&fiber),
                       std::current_exception());
    }
  }
}

void release_record(FiberRecord& fiber) noexcept {
  if (--fiber.references > 0)
    return;
  if (fiber.outcome == Outcome::done)
    fiber.kind->drop(fiber);
  else if (fiber.outcome == Outcome::failed)
    std::destroy_at(&detail::error_of(fiber));
  if (!fiber.kind->is_inline)
    fiber.kind->release(fiber);
  if (fiber.extras != nullptr) {
    if (fiber.extras->finish_value != nullptr)
      fiber.extras->destroy_finish_value(fiber.extras->finish_value);
    delete fiber.extras;
  }
  RecordPool::give(fiber);
}

} // namespace core

namespace detail {

FiberRecord& new_fiber(SchedulerState* scheduler, const FiberOptions* options, Place place) {
  if (scheduler == nullptr)
    scheduler = SchedulerState::driven();
  if (scheduler == nullptr)
    throw_error(Errc::not_a_fiber);
  CEDE_CHECK(scheduler->is_on_its_thread(),
             "spawn on another thread than the scheduler's: post it to the scheduler's Remote");
  std::unique_ptr<FiberExtras> extras;
  if (options != nullptr) {
    if (options->priority < kPriorityMin || options->priority > kPriorityMax)
      throw_error(Errc::invalid_argument);
    if (!options->name.empty() || !are_default(options->stack)) {
      extras.reset(new (std::nothrow) FiberExtras);
      if (extras == nullptr)
        throw_error(Errc::no_memory);
      extras->stack = options->stack;
      const std::string_view name = options->name.empty() ? options->stack.name : options->name;
      name.copy(extras->name, sizeof extras->name - 1);
    }
  }
  try {
    scheduler->deadlines.reserve(scheduler->alive + 1); // so that no wait can fail for want of it
  } catch (const std::bad_alloc&) {
    throw_error(Errc::no_memory);
  }
  FiberRecord* memory = scheduler->records->take();
  if (memory == nullptr)
    throw_error(Errc::no_memory);
  auto& fiber = *::new (static_cast<void*>(memory)) FiberRecord;
  fiber.scheduler = scheduler;
  fiber.id = ++scheduler->last_id;
  fiber.references = 2;
  fiber.priority = options != nullptr ? static_cast<std::int8_t>(options->priority) : std::int8_t{};
  fiber.is_owned = true;
  fiber.extras = extras.release();
  fiber.spawned = place;
  return fiber;
}

void discard_new_fiber(FiberRecord& fiber) noexcept {
  fiber.stage = FiberStage::finished;
  delete fiber.extras;
  core::RecordPool::give(fiber);
}

void admit_fiber(FiberRecord& fiber) noexcept {
  fiber.is_cancelled = fiber.scheduler->is_closing;
  fiber.scheduler->admit(fiber);
}

void detach_fiber(FiberRecord& fiber) noexcept {
  core::check_thread(fiber);
  fiber.is_owned = false;
  if (fiber.stage == FiberStage::finished)
    core::hand_over_lost_error(fiber);
}

void yield_out_of_line() {
  FiberRecord* me = running_fiber();
  if (me == nullptr) {
    CEDE_CHECK(SchedulerState::driven() == nullptr,
               "a wait in what the scheduler itself calls: a post, a hook or a handler");
    std::this_thread::yield();
    return;
  }
  core::check_may_suspend(me);
  if (core::interruption_of(*me) == Interruption::throws)
    core::throw_request(*me);
  me->yields_quietly = core::has_to_report(*me);
  me->scheduler->yield(*me);
  me->yields_quietly = false;
  if (core::has_request(*me))
    me->scheduler->revoke_quick_yields();
}

void finish_with(void* value, void (*destroy)(void*), const void* type) {
  FiberRecord* me = running_fiber();
  CEDE_CHECK(me != nullptr, "finish outside fibers");
  CEDE_CHECK(type == me->kind->result_type,
             "finish with a value of another type than the body's result");
  if (core::extras_of(*me) == nullptr)
    throw std::bad_alloc();
  if (me->extras->finish_value != nullptr)
    me->extras->destroy_finish_value(me->extras->finish_value);
  me->extras->finish_value = value;
  me->extras->destroy_finish_value = destroy;
  me->is_finishing = true;
  me->is_cancelled = true;
  core::throw_request(*me);
}

namespace {

// Whether a wait of `me` for `target` would close a circle of joins in which no edge has a
// deadline.
bool closes_circle(const FiberRecord& me, const FiberRecord& target) noexcept {
  const FiberRecord* fiber = &target;
  while (fiber != nullptr && fiber != &me)
    fiber = core::joined_by(*fiber);
  return fiber == &me;
}

Result<void> wait_for_end(FiberRecord& target, Deadline deadline, WhenUnwinding rule) {
  FiberRecord* me = running_fiber();
  if (me == nullptr)
    return Errc::not_a_fiber;
  if (target.scheduler != me->scheduler)
    return Errc::invalid_argument;
  if (deadline.is_forever() && closes_circle(*me, target))
    return Errc::deadlock;
  WaitLink place;
  Waiter waiter(kJoin);
  waiter.watch(target.joiners, place);
  switch (waiter.wait(deadline, rule)) {
  case WakeReason::timed_out:
    return Errc::timed_out;
  case WakeReason::cancelled:
    return Errc::cancelled;
  default:
    return {};
  }
}

// A cancellation is looked at before anything else; an expired deadline still tries once.
Result<void> join_fiber(FiberRecord* target, Deadline deadline, WhenUnwinding rule) {
  if (target == nullptr)
    return Errc::deadlock;
  core::check_thread(*target);
  AnyFiber kept = FiberAccess::reference(target);
  FiberRecord* me = running_fiber();
  if (me != nullptr && core::interruption_of(*me) == Interruption::throws)
    core::throw_request(*me);
  if (target->stage != FiberStage::finished)
    if (Result<void> waited = wait_for_end(*target, deadline, rule); !waited)
      return waited;
  return core::how_it_ended(*target);
}

} // namespace

Result<void> join_for_result(FiberRecord* fiber, Deadline deadline, WhenUnwinding rule) {
  Result<void> ended = join_fiber(fiber, deadline, rule);
  if (!ended && ended.error() == Errc::failed) {
    fiber->is_result_taken = true; // somebody has seen it
    std::rethrow_exception(error_of(*fiber));
  }
  return ended;
}

} // namespace detail

// ---------------------------------------------------------------------------------------------

AnyFiber::~AnyFiber() {
  if (record_ != nullptr) {
    core::check_thread(*record_);
    core::release_record(*record_);
  }
}

std::string_view AnyFiber::name() const noexcept {
  return record_ != nullptr ? core::name_of(*record_) : std::string_view();
}

FiberState AnyFiber::state() const noexcept {
  if (record_ == nullptr)
    return FiberState::finished;
  switch (record_->stage) {
  case FiberStage::created:
  case FiberStage::starved:
    return record_->scheduler != nullptr ? FiberState::created : FiberState::finished;
  case FiberStage::ready:
    return record_ == running_fiber() ? FiberState::running : FiberState::ready;
  case FiberStage::waiting:
    return FiberState::waiting;
  default:
    return FiberState::finished;
  }
}

void AnyFiber::set_priority(int priority) const {
  if (priority < kPriorityMin || priority > kPriorityMax)
    detail::throw_error(Errc::invalid_argument);
  if (record_ == nullptr || record_->stage == FiberStage::finished)
    return;
  core::check_thread(*record_);
  record_->scheduler->set_priority(*record_, priority);
}

bool AnyFiber::cancel() const noexcept {
  if (record_ == nullptr || record_->stage == FiberStage::finished || record_->is_cancelled)
    return false;
  core::check_thread(*record_);
  record_->scheduler->request_cancel(*record_);
  return true;
}

bool AnyFiber::wake_out_of_line() const noexcept {
  if (record_->stage == FiberStage::finished)
    return false;
  core::check_thread(*record_);
  if (is_in(*record_, kPark))
    return record_->waiter->fire();
  const bool is_new = !record_->has_permit;
  record_->has_permit = true;
  return is_new;
}

bool AnyFiber::make_ready() const noexcept {
  if (record_ == nullptr || !is_in(*record_, kSchedule))
    return false;
  core::check_thread(*record_);
  return record_->waiter->fire();
}

bool AnyFiber::raise(std::exception_ptr error) const {
  if (error == nullptr)
    detail::throw_error(Errc::invalid_argument);
  if (record_ == nullptr || record_->stage == FiberStage::finished || record_->is_raised)
    return false;
  core::check_thread(*record_);
  FiberExtras* extras = core::extras_of(*record_);
  if (extras == nullptr)
    detail::throw_error(Errc::no_memory);
  extras->raised = std::move(error);
  record_->is_raised = true;
  record_->scheduler->interrupt(*record_);
  return true;
}

bool AnyFiber::suspend() const {
  if (record_ == nullptr || record_->stage == FiberStage::finished || record_->is_suspended)
    return false;
  core::check_thread(*record_);
  if (record_ == running_fiber() && core::interruption_of(*record_) == Interruption::throws)
    core::throw_request(*record_);
  record_->scheduler->suspend(*record_);
  return true;
}

bool AnyFiber::resume() const noexcept {
  if (record_ == nullptr || !record_->is_suspended)
    return false;
  core::check_thread(*record_);
  record_->scheduler->resume(*record_);
  return true;
}

bool AnyFiber::on_exit(std::function<void(Result<void> how)> f) const {
  if (f == nullptr)
    detail::throw_error(Errc::invalid_argument);
  if (record_ == nullptr || record_->stage == FiberStage::finished)
    return false;
  core::check_thread(*record_);
  try {
    if (FiberExtras* extras = core::extras_of(*record_)) {
      extras->exits.push_back(std::move(f));
      return true;
    }
  } catch (const std::bad_alloc&) {
  }
  detail::throw_error(Errc::no_memory);
}

Result<void> AnyFiber::join(Deadline deadline) const {
  return detail::join_fiber(record_, deadline, WhenUnwinding::report);
}

AnyFiber current() noexcept {
  return detail::FiberAccess::reference(running_fiber());
}

NoSuspend::NoSuspend() noexcept : fiber_(running_fiber()) {
  if (fiber_ == nullptr)
    return;
  ++fiber_->no_suspends;
  CEDE_CHECK(fiber_->no_suspends > 0, "more than 255 scopes of NoSuspend inside each other");
  fiber_->scheduler->revoke_quick_yields(); // and since nobody else runs, there are no new ones
}

NoSuspend::~NoSuspend() {
  if (fiber_ != nullptr)
    --fiber_->no_suspends;
}

bool yield_to(const AnyFiber& fiber) {
  FiberRecord* me = running_fiber();
  core::check_may_suspend(me);
  FiberRecord* to = detail::FiberAccess::record(fiber);
  const auto can_run = [me](const FiberRecord& it) {
    return it.scheduler == me->scheduler && it.next != nullptr &&
           (it.stage == FiberStage::ready || (it.stage == FiberStage::created && !it.is_cancelled));
  };
  if (me != nullptr && core::interruption_of(*me) != Interruption::none) {
    detail::yield_out_of_line(); // throws, or gives one turn
    return false;
  }
  if (me == nullptr || to == nullptr || to == me || !can_run(*to))
    return false;
  me->yields_quietly = core::has_to_report(*me);
  me->scheduler->yield_to(*me, *to);
  me->yields_quietly = false;
  return true;
}

void schedule() {
  FiberRecord& me = fiber_that_waits();
  if (core::interruption_of(me) == Interruption::reports) {
    detail::yield_out_of_line();
    return;
  }
  Waiter(kSchedule).wait();
}

void sleep_until(Deadline deadline) {
  FiberRecord* me = running_fiber();
  if (me == nullptr) {
    CEDE_CHECK(SchedulerState::driven() == nullptr,
               "a sleep in what the scheduler itself calls: a post, a hook or a handler");
    do // Windows' sleeps may end early
      std::this_thread::sleep_until(deadline.time());
    while (std::chrono::steady_clock::now() < deadline.time());
    return;
  }
  if (core::interruption_of(*me) != Interruption::none || deadline.time() <= me->scheduler->time())
    detail::yield_out_of_line();
  else
    Waiter(kSleep).wait(deadline);
}

WakeReason detail::park_out_of_line(Deadline deadline) {
  FiberRecord& me = fiber_that_waits();
  Waiter waiter(kPark);
  if (me.has_permit && core::interruption_of(me) == Interruption::none) {
    core::check_may_suspend(&me);
    me.has_permit = false;
    return WakeReason::woken;
  }
  return waiter.wait(deadline);
}

void finish() {
  detail::finish_with(nullptr, nullptr, &detail::kResultType<void>);
}

} // namespace cede
