#include "platform/sim/kernel/thread.h"

#include <algorithm>

namespace perdura::sim {

void Cores::release() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  SimThread* const next = waiting_.take_front();
  next->granted(next->engine_.now() + next->cpu_.context_switch);
}

SimThread::SimThread(Engine& engine, Cores& cores, const CpuProfile& cpu, const WaitProfile& wait,
                     CompletionMode mode, std::exception_ptr& failure)
    : engine_(engine),
      cores_(cores),
      cpu_(cpu),
      wait_(wait),
      mode_(mode),
      started_(engine.now()),
      failure_(failure) {}

SimThread::~SimThread() { destroy_tasks(); }

Time SimThread::now() const {
  return engine_.now() + (running_ == this ? charged_ : Picoseconds{});
}

void SimThread::make_ready(std::coroutine_handle<> task) {
  if (state_ == State::stopped) return;
  ready_.push_back(task);
  // A task of another thread may do this. Then the wake-up happens when that thread has spent the
  // time that it was charged.
  if (state_ == State::idle) wake(running_ != nullptr ? running_->now() : engine_.now());
}

SimThread::Timer& SimThread::free_timer() {
  if (free_timers_.empty()) return *timers_.emplace_back(std::make_unique<Timer>());
  Timer& timer = *free_timers_.back();
  free_timers_.pop_back();
  return timer;
}

void SimThread::start_timer(Time when, std::coroutine_handle<> task, bool from_outside) {
  if (state_ == State::stopped) return;
  Timer& timer = free_timer();
  timer.thread = this;
  timer.task = task;
  timer.from_outside = from_outside;
  engine_.schedule(when, timer);
}

void SimThread::make_ready_again(std::coroutine_handle<> task) {
  make_ready(task);
  pause(choices_.yields);
}

void SimThread::make_ready_at(Time when, std::coroutine_handle<> task) {
  start_timer(when, task, false);
}

void SimThread::make_ready_from_outside_at(Time when, std::coroutine_handle<> task) {
  start_timer(when, task, true);
}

void SimThread::Timer::fire() {
  thread->free_timers_.push_back(this);
  if (from_outside) thread->wake_from_outside();
  thread->make_ready(task);
}

void SimThread::wake_from_outside() {
  if (state_ != State::idle) return;
  state_ = State::waking;
  engine_.schedule(engine_.now(), *this);
}

void SimThread::wake(Time at) {
  state_ = State::waking;
  if (mode_ == CompletionMode::polling) {
    engine_.schedule(at + cpu_.poll, *this);
    return;
  }
  const std::uint32_t wakeups = completion_arrives_ ? wait_.wakeups : 1;
  cpu_time_ += wait_.wakeup_cpu * wakeups;
  engine_.schedule(at + wait_.wakeup_latency * wakeups, *this);
}

void SimThread::granted(Time at) {
  state_ = State::busy;
  slice_start_ = at;
  engine_.schedule(at, *this);
}

void SimThread::stall(std::vector<Stall> stalls) {
  stalls_ = std::move(stalls);
  std::reverse(stalls_.begin(), stalls_.end());
  if (!stalls_.empty()) next_stall_ = stalls_.back().begin;
}

// True if a stall is going on; then the thread fires again when it ends.
bool SimThread::stalled() {
  while (!stalls_.empty() && stalls_.back().end <= engine_.now()) stalls_.pop_back();
  next_stall_ = stalls_.empty() ? Time::max() : stalls_.back().begin;
  if (engine_.now() < next_stall_) return false;
  engine_.schedule(stalls_.back().end, *this);
  return true;
}

void SimThread::set_charge_limit() {
  charge_limit_ = stalls_.empty() ? kLongest : stalls_.back().begin - engine_.now();
}

// The running task's work reaches a stall, or the end of virtual time.
void SimThread::charge_limit_reached() {
  while (!stalls_.empty() && charged_ > stalls_.back().begin - engine_.now()) {
    charged_ += stalls_.back().end - stalls_.back().begin;
    stalls_.pop_back();
  }
  next_stall_ = stalls_.empty() ? Time::max() : stalls_.back().begin;
  set_charge_limit();
  charged_ = limited(charged_);
}

void SimThread::fire() {
  if (engine_.now() >= next_stall_ && state_ != State::stopped) [[unlikely]] {
    if (stalled()) return;
  }
  switch (state_) {
    case State::waking:
      if (cores_.try_take()) {
        state_ = State::busy;
        slice_start_ = engine_.now();
        run_one();
      } else {
        state_ = State::queued;
        cores_.queue(*this);
      }
      return;
    case State::busy:
      if (ready_.empty()) {
        state_ = State::idle;
        cores_.release();
      } else if (cores_.contended() && engine_.now() - slice_start_ >= cpu_.time_slice) {
        state_ = State::queued;
        cores_.queue(*this);
        cores_.release();
      } else {
        run_one();
      }
      return;
    case State::idle:
    case State::queued:
    case State::stopped:
      return;
  }
}

std::coroutine_handle<> SimThread::take_ready() {
  if (choices_.tasks == nullptr || ready_.size() == 1) [[likely]]
    return ready_.take_front();
  return ready_.take(choices_.tasks->choose(ready_.size()));
}

void SimThread::run_one() {
  ++steps_;
  const std::coroutine_handle<> task = take_ready();
  // With thousands of tasks, the next one's frame is no longer in any cache.
  if (!ready_.empty()) __builtin_prefetch(ready_.front().address());
  charged_ = {};
  if (next_stall_ != Time::max() || charge_limit_ != kLongest) [[unlikely]]
    set_charge_limit();
  {
    Activation activation(*this);
    running_ = this;
    cost_meter = this;
    task.resume();
    cost_meter = nullptr;
    running_ = nullptr;
  }
  if (state_ == State::stopped) return;
  Picoseconds busy = charged_;
  cpu_time_ += charged_;
  charged_ = {};
  // A thread that does not poll arms its completion channel when it has nothing left to do, looks
  // once more, and sleeps.
  if (ready_.empty() && mode_ == CompletionMode::event) {
    busy += wait_.arm;
    cpu_time_ += wait_.sleep_cpu;
  }
  engine_.schedule(engine_.now() + busy, *this);
}

void SimThread::charge(Work work, Bytes bytes) {
  const WorkCost& cost = cpu_.work[static_cast<int>(work)];
  charge_time(cost.fixed + times(cost.per_byte, bytes));
}

void SimThread::spin_until(Time when) {
  if (when > now()) charge_time(when - now());
}

Picoseconds SimThread::cpu_time() const {
  if (mode_ == CompletionMode::event) {
    return cpu_time_ + (running_ == this ? charged_ : Picoseconds{});
  }
  return (state_ == State::stopped ? stopped_at_ : now()) - started_;
}

void SimThread::stop() {
  if (state_ == State::stopped) return;
  stopped_at_ = now();
  if (state_ == State::busy) {
    cores_.release();
  } else if (state_ == State::queued) {
    cores_.forget(*this);
  }
  state_ = State::stopped;
  ready_.clear();
  store_buffer_.clear();
  destroy_tasks();
}

void SimThread::fail(std::exception_ptr error) {
  if (!failure_) failure_ = error;
}

}  // namespace perdura::sim
