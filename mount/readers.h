// Decides which threads of a mount wait for requests.
//
// The kernel gives requests in turn to all waiting threads, and so to cores that sleep: with two
// threads, a program that wrote 4 KiB at a time waited 45 µs for each write instead of 6. So only
// one thread waits as long as there is mostly one request at a time, and all of them as long as
// there are several, when the opposite is faster.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace perdura::mount {

class Readers {
 public:
  // Interrupts reads of /dev/fuse and has no other effect.
  static constexpr int kWake = SIGUSR1;

  // Registers this thread as one that reads requests, until it calls leave().
  void enter() {
    const std::scoped_lock lock(mutex_);
    threads_.push_back(pthread_self());
  }
  void leave() {
    const std::scoped_lock lock(mutex_);
    std::erase_if(threads_, [](pthread_t each) { return pthread_equal(each, pthread_self()); });
  }

  // Returns when this thread is to read a request, or when the mount ends.
  //
  // A thread stops here only while another one reads, which comes back after its answer. So there
  // is always one that does not stop.
  void await_turn() {
    int none = 0;
    if (!are_many_ && reading_.compare_exchange_strong(none, 1)) return;
    if (!are_many_) {
      std::unique_lock lock(mutex_);
      ++stopped_;
      called_.wait(lock, [this] { return calls_ > 0 || are_many_ || ended_; });
      if (calls_ > 0) --calls_;
      --stopped_;
    }
    ++reading_;
  }
  // Called after the read. `has_request()` returns true if another request is already waiting.
  void end_turn(auto has_request) {
    --reading_;
    note_if_several(answering_ > 0 || has_request());
  }
  // Enclose the handling of a request.
  void begin_answer() { ++answering_; }
  void end_answer() { --answering_; }

  // Makes another thread read requests meanwhile.
  void call_another() {
    if (stopped_ == 0) return;
    const std::scoped_lock lock(mutex_);
    if (calls_ < stopped_) ++calls_;
    called_.notify_one();
  }

  bool ended() const { return ended_; }
  void end() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    called_.notify_all();
  }
  // Interrupts all readers. Returns false if no thread is registered. Must be repeated until then,
  // since a thread may just be about to read.
  bool wake() {
    const std::scoped_lock lock(mutex_);
    for (const pthread_t thread : threads_) pthread_kill(thread, kWake);
    return !threads_.empty();
  }

 private:
  // Requests count as several at a time while two of three meet another one. Requests that are sent
  // without waiting for an answer, as when a file is closed, make it one of three.
  static constexpr int kOften = 32;

  void note_if_several(bool are_several) {
    const int before = several_.load(std::memory_order_relaxed);
    const int now = are_several ? std::min(before + 1, kOften) : std::max(before - 2, 0);
    if (now != before) several_.store(now, std::memory_order_relaxed);
    if (now == 0 && are_many_) are_many_ = false;
    if (now < kOften || are_many_) return;
    const std::scoped_lock lock(mutex_);
    are_many_ = true;
    called_.notify_all();
  }

  std::atomic<int> several_{0};
  std::atomic<bool> are_many_{false};
  std::atomic<int> answering_{0};
  std::atomic<int> reading_{0};
  std::atomic<int> stopped_{0};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::condition_variable called_;
  int calls_ = 0;
  std::vector<pthread_t> threads_;
};

}  // namespace perdura::mount
