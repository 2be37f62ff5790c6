#include "platform/host/thread_executor.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>

namespace perdura::host {
namespace {

// The numbers of turns without work after which a thread that polls yields, and yields again. One
// such turn takes some 40 ns. If there are more threads than cores, a longer wait must not keep
// others from running.
constexpr int kTurnsBeforeYield = 256;
constexpr int kTurnsBetweenYields = 16;
// How many times per turn tasks are resumed that others have made ready in the same turn: a request
// that one task hands to the next need not wait for the rest of the turn. A call of a plugin takes
// two rounds, and three when its client has just connected; only tasks that wake each other forever
// reach the limit.
constexpr int kRoundsOfATurn = 4;
// Reading the clock takes as long as the rest of an idle turn. While the next timer is far away it
// is read only in some turns, which together are much shorter.
constexpr Picoseconds kFarAway = Milliseconds(1);
constexpr int kTurnsBetweenLooks = 16;

}  // namespace

Condition::~Condition() {
  if (executor_ != nullptr) std::erase(executor_->conditions_, this);
}

void Condition::enlist(ThreadExecutor& executor, std::coroutine_handle<> task) {
  executor_ = &executor;
  task_ = task;
  executor.conditions_.push_back(this);
}

ThreadExecutor::ThreadExecutor(const runtime::HostClock& clock, CompletionMode mode,
                               runtime::Doorbell& doorbell, FailureHandler on_failure)
    : clock_(clock),
      mode_(mode),
      doorbell_(doorbell),
      on_failure_(std::move(on_failure)),
      inbox_(std::make_shared<Inbox>(doorbell)) {}

ThreadExecutor::~ThreadExecutor() { inbox_->close(); }

void ThreadExecutor::make_ready_at(Time when, std::coroutine_handle<> task) {
  timers_.push_back({when, next_timer_++, task});
  turns_since_look_ = kTurnsBetweenLooks;  // the last look may be long ago, and this timer near
  std::push_heap(timers_.begin(), timers_.end());
}

void ThreadExecutor::run() {
  const Activation activation(*this);
  // Without this, timers of sleeping threads would fire up to 50 us late.
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  // Tasks are destroyed however the loop ends, since they must not outlive the objects that they
  // use.
  const struct Cleanup {
    ThreadExecutor& executor;
    ~Cleanup() {
      executor.inbox_->close();
      executor.destroy_tasks();
    }
  } cleanup{*this};
  while (!stopping()) {
    bool busy = run_ready();
    busy |= fire_timers();
    busy |= poll();
    if (inbox_->has_work(std::memory_order_relaxed)) [[unlikely]]
      empty_inbox();
    if (busy || ready_.size() != 0) {
      spinning_.found_work(idle_turns_);
      idle_turns_ = 0;
    } else {
      idle();
    }
  }
}

void ThreadExecutor::stop() {
  stop_.store(true, std::memory_order_seq_cst);
  doorbell_.wake();
}

bool ThreadExecutor::run_ready() {
  bool any = false;
  for (int round = 0; round < kRoundsOfATurn && ready_.size() != 0; ++round) {
    any = true;
    const std::size_t count = ready_.size();
    for (std::size_t i = 0; i < count && !stopping(); ++i) ready_.take_front().resume();
    if (stopping()) break;
  }
  while (!yielded_.empty()) ready_.push_back(yielded_.take_front());
  return any;
}

// A timer may fire some nanoseconds late, as begin() may be early, but not early.
bool ThreadExecutor::fire_timers() {
  if (timers_.empty()) return false;
  const bool far_away = timers_.front().when > looked_ + kFarAway;
  if (far_away && ++turns_since_look_ < kTurnsBetweenLooks) return false;
  const Time time = looked_ = begin();
  turns_since_look_ = 0;
  bool fired = false;
  while (!timers_.empty() && timers_.front().when <= time) {
    std::pop_heap(timers_.begin(), timers_.end());
    ready_.push_back(timers_.back().task);
    timers_.pop_back();
    fired = true;
  }
  return fired;
}

bool ThreadExecutor::poll() {
  bool busy = false;
  for (Poller* poller : pollers_) busy |= poller->poll();
  if (!conditions_.empty()) busy |= check_conditions();
  return busy;
}

// Not inlined, so that a turn without arrived tasks stays short.
[[gnu::noinline]] void ThreadExecutor::empty_inbox() {
  inbox_->take(arrived_);
  for (Task<>& task : arrived_) spawn(std::move(task));
  arrived_.clear();
}

bool ThreadExecutor::check_conditions() {
  const std::size_t before = conditions_.size();
  std::erase_if(conditions_, [this](Condition* condition) {
    condition->held_ = condition->holds();
    const bool over =
        condition->held_ || (condition->deadline_ != Time::max() && condition->deadline_ <= now());
    if (over) {
      condition->executor_ = nullptr;
      ready_.push_back(condition->task_);
    }
    return over;
  });
  return conditions_.size() != before;
}

void ThreadExecutor::idle() {
  ++idle_turns_;
  __builtin_ia32_pause();
  if (mode_ == CompletionMode::polling) {
    if (idle_turns_ < kTurnsBeforeYield) return;
    ::sched_yield();
    idle_turns_ -= kTurnsBetweenYields;
  } else if (idle_turns_ > spinning_.turns()) {
    spinning_.found_none();
    idle_turns_ = 0;
    sleep();
  }
}

void ThreadExecutor::sleep() {
  const std::uint32_t seen = doorbell_.sequence.load(std::memory_order_seq_cst);
  doorbell_.sleeping.exchange(1, std::memory_order_seq_cst);
  descriptors_.clear();
  for (Poller* poller : pollers_) {
    if (const int descriptor = poller->arm(); descriptor >= 0) descriptors_.push_back(descriptor);
  }
  if (!poll() && ready_.size() == 0 && !stop_.load(std::memory_order_seq_cst) &&
      !inbox_->has_work(std::memory_order_seq_cst)) {
    Time wake = timers_.empty() ? Time::max() : timers_.front().when;
    for (const Poller* poller : pollers_) wake = std::min(wake, poller->due());
    for (const Condition* condition : conditions_) wake = std::min(wake, condition->deadline_);
    if (wake == Time::max()) {
      wait(seen, Nanoseconds(-1));
    } else if (const Time time = now(); time < wake) {
      wait(seen, std::chrono::ceil<Nanoseconds>(wake - time));
    }
  }
  doorbell_.sleeping.store(0, std::memory_order_seq_cst);
  turns_since_look_ = kTurnsBetweenLooks;  // it may have slept until a timer is due
}

void ThreadExecutor::wait(std::uint32_t seen, Nanoseconds timeout) {
  if (descriptors_.empty()) {
    doorbell_.wait(seen, timeout);
  } else {
    doorbell_.wait(descriptors_, timeout);
  }
}

}  // namespace perdura::host
