// SPDX-License-Identifier: MIT
#include "fiber.h"

#include "check.h"
#include "lending.h"
#include "scheduler_state.h"
#include "unhandled.h"

#include <exception>
#include <memory>

namespace cede {

using core::Interruption;
using core::running_fiber;
using core::SchedulerState;
using detail::FiberExtras;
using detail::FiberRecord;
using detail::FiberStage;
using detail::kPark;
using detail::Outcome;

namespace core {

FiberExtras* extras_of(FiberRecord& fiber) noexcept {
  if (fiber.extras == nullptr)
    fiber.extras = new (std::nothrow) FiberExtras;
  return fiber.extras;
}

bool is_parked(const FiberRecord& fiber) noexcept {
  return waits_in(fiber, kPark);
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
  CEDE_CHECK(me.held == 0, "a fiber has ended that holds a mutex");
  return me.scheduler->end(me);
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
  fiber.priority = fiber.own_priority =
      options != nullptr ? static_cast<std::int8_t>(options->priority) : std::int8_t{};
  fiber.is_owned = true;
  fiber.has_order_checked = fiber.is_watched = scheduler->lock_order != nullptr;
  fiber.extras = extras.release();
  fiber.spawned = place;
  return fiber;
}

void discard_new_fiber(FiberRecord& fiber) noexcept {
  if (fiber.kind != nullptr) {
    fiber.kind->discard(fiber);
    if (!fiber.kind->is_inline)
      fiber.kind->release(fiber);
  }
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
  core::set_own_priority(*record_, priority);
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
  if (core::waits_in(*record_, kPark))
    return record_->waiter->fire();
  const bool is_new = !record_->has_permit;
  record_->has_permit = true;
  return is_new;
}

bool AnyFiber::make_ready() const noexcept {
  if (record_ == nullptr || !core::waits_in(*record_, core::kSchedule))
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
  if (record_->is_cancelled) // nobody might resume it, and it has to end
    return false;
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

} // namespace cede
