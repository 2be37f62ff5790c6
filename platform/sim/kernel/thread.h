// Simulated cores and threads.
//
// A thread runs its ready tasks one after the other. A task executes in zero virtual time until it
// suspends; meanwhile its work is charged (platform/runtime/work.h). The thread is then busy for
// the sum of the charges. Operations that the task posts and stores that it makes take effect at
// the virtual time at which the charges before them are paid.
//
// An idle thread waits for completions either by polling, which keeps its core busy and costs one
// poll, or by sleeping, which frees the core and costs an interrupt and wake-ups.
#pragma once

#include <coroutine>
#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "platform/pmem/model/choices.h"
#include "platform/runtime/ring.h"
#include "platform/sim/kernel/choose_delay.h"
#include "platform/sim/kernel/engine.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/store_buffer.h"
#include "platform/sim/kernel/storing_thread.h"
#include "platform/sim/kernel/virtual_time.h"

namespace perdura::sim {

class SimThread;

// An interval in which a thread does not execute, even if it has work: it stands for a thread that
// the operating system has preempted, or for one that is slow at that moment.
struct Stall {
  Time begin{};
  Time end{};
};

// Choices that decide in which order a thread runs its tasks, and where it pauses. Null: in the
// order of arrival, and without a pause.
struct ThreadChoices {
  pmem::Choices* tasks = nullptr;  // which ready task runs next; 0 is the one that has been ready
                                   // for longest
  // How long the thread pauses (choose_delay()) after each operation that it posts, and wherever a
  // task lets the others run.
  pmem::Choices* posts = nullptr;
  pmem::Choices* yields = nullptr;
};

// The cores of a node. Threads that have work queue for a core in FIFO order and run in time
// slices.
class Cores {
 public:
  explicit Cores(std::uint32_t count) : free_(count) {}

  bool try_take() {
    if (free_ == 0) return false;
    --free_;
    return true;
  }
  void queue(SimThread& thread) { waiting_.push_back(&thread); }
  bool contended() const { return !waiting_.empty(); }
  // Passes the core to the first waiting thread, or frees it if none waits.
  void release();
  void forget(SimThread& thread) { waiting_.erase(&thread); }

 private:
  std::uint32_t free_;
  Ring<SimThread*> waiting_;
};

class SimThread final : public Executor, public CostMeter, private Event {
 public:
  // `failure` receives the first exception that one of the thread's tasks does not catch.
  SimThread(Engine& engine, Cores& cores, const CpuProfile& cpu, const WaitProfile& wait,
            CompletionMode mode, std::exception_ptr& failure);
  ~SimThread();

  // --- Executor
  Time now() const override;
  void make_ready(std::coroutine_handle<> task) override;
  void make_ready_again(std::coroutine_handle<> task) override;
  void make_ready_at(Time when, std::coroutine_handle<> task) override;
  void make_ready_from_outside_at(Time when, std::coroutine_handle<> task) override;

  // --- CostMeter
  void charge(Work work, Bytes bytes) override;
  void spin_until(Time when) override;
  void charge_time(Picoseconds time) {
    charged_ += time;
    if (charged_ > charge_limit_) [[unlikely]]
      charge_limit_reached();
  }
  // Reports that everything that the thread has flushed or streamed will be in the persistence
  // domain by `when`; a fence waits until then.
  void written_back_by(Time when) { written_back_ = std::max(written_back_, when); }
  void wait_for_write_backs() { spin_until(written_back_); }
  // A load that misses all caches occupies one of `count` line fill buffers until its line has
  // arrived. Returns the time at which the next buffer is free.
  Time fill_buffer_free(std::uint32_t count) {
    if (fill_buffers_.size() < count) fill_buffers_.resize(count);
    return fill_buffers_[next_fill_buffer_];
  }
  void fill_buffer_taken_until(Time when) {
    fill_buffers_[next_fill_buffer_] = when;
    next_fill_buffer_ = (next_fill_buffer_ + 1) % fill_buffers_.size();
  }
  const CpuProfile& cpu() const { return cpu_; }
  // Used by relaxed simulations only; in others, stores become visible at their own times.
  StoreBuffer& store_buffer() { return store_buffer_; }
  StoringThread& storing() { return storing_; }
  const StoringThread& storing() const { return storing_; }

  // While such an object exists, tasks of the thread become ready because of a completion that the
  // device reported. On some nodes that costs the wake-up of a completion thread in addition to the
  // thread's own.
  class CompletionArrives {
   public:
    explicit CompletionArrives(SimThread& thread) : thread_(thread) {
      thread_.completion_arrives_ = true;
    }
    ~CompletionArrives() { thread_.completion_arrives_ = false; }
    CompletionArrives(const CompletionArrives&) = delete;
    CompletionArrives& operator=(const CompletionArrives&) = delete;

   private:
    SimThread& thread_;
  };

  // CPU time used so far. For a thread that sleeps while it waits, that is its busy time; for one
  // that polls, all the time since its start.
  Picoseconds cpu_time() const;

  // The thread stands still in these intervals, which are disjoint and in the order of time. A
  // stall may begin anywhere in the work of a task, for example between two stores. Must be called
  // before the thread has run.
  void stall(std::vector<Stall> stalls);
  // The thread makes these choices from now on.
  void choose_schedule(const ThreadChoices& choices) { choices_ = choices; }
  // To be called by the running task when it has posted an operation.
  void pause_after_post() { pause(choices_.posts); }
  // The number of times that one of its tasks has been resumed.
  std::uint64_t steps() const { return steps_; }

  // Appends the state that a relaxed simulation's next steps depend on: the thread's state, the
  // number of ready tasks, and the store buffer.
  void append_state(std::string& state) const {
    state += static_cast<char>('0' + static_cast<int>(state_));
    state += static_cast<char>('0' + ready_.size());
    store_buffer_.append_state(state);
  }

  // Stops the thread for good and destroys its tasks.
  void stop();
  bool stopped() const { return state_ == State::stopped; }

  // The thread whose task is running, if any.
  static SimThread* running() { return running_; }

 protected:
  void fail(std::exception_ptr error) override;

 private:
  friend class Cores;
  enum class State : std::uint8_t { idle, waking, queued, busy, stopped };
  struct Timer final : Event {
    SimThread* thread = nullptr;
    std::coroutine_handle<> task;
    bool from_outside = false;
    void fire() override;
  };

  void fire() override;
  void pause(pmem::Choices* choices) {
    if (choices != nullptr) [[unlikely]]
      charge_time(choose_delay(*choices));
  }
  void wake(Time at);
  void wake_from_outside();
  void start_timer(Time when, std::coroutine_handle<> task, bool from_outside);
  void run_one();
  std::coroutine_handle<> take_ready();
  void granted(Time at);
  Timer& free_timer();
  void charge_limit_reached();
  bool stalled();
  void set_charge_limit();

  Engine& engine_;
  Cores& cores_;
  const CpuProfile& cpu_;
  const WaitProfile& wait_;
  CompletionMode mode_;
  State state_ = State::idle;
  bool completion_arrives_ = false;
  Picoseconds charged_{};  // charged by the running task, not yet paid
  // The value of charged_ at which the next stall begins, or virtual time ends.
  Picoseconds charge_limit_ = kLongest;
  std::vector<Stall> stalls_;  // not yet ended, the next one last
  Time next_stall_ = Time::max();
  Time written_back_{};
  StoringThread storing_;
  std::vector<Time> fill_buffers_;  // when each becomes free; used round robin
  std::size_t next_fill_buffer_ = 0;
  Picoseconds cpu_time_{};
  Time started_;
  Time stopped_at_{};
  Time slice_start_{};
  Ring<std::coroutine_handle<>> ready_;
  ThreadChoices choices_;
  std::uint64_t steps_ = 0;
  // Pointers, since scheduled events must not move. Most threads need one timer, for which a
  // std::deque would be large.
  std::vector<std::unique_ptr<Timer>> timers_;
  std::vector<Timer*> free_timers_;
  std::exception_ptr& failure_;
  StoreBuffer store_buffer_;

  static inline constinit thread_local SimThread* running_ = nullptr;
};

}  // namespace perdura::sim
