// The event engine of the simulation: virtual time in picoseconds, events fire in order of time
// and, within an instant, in the order in which they were scheduled. Nothing else orders events, so
// a run is the same on every machine.
//
// Events are intrusive: whoever schedules one owns it and keeps it until it has fired. An event may
// be in the engine once at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/base/units.h"

namespace perdura::sim {

class Event {
 public:
  virtual void fire() = 0;

 protected:
  ~Event() = default;
};

class Engine {
 public:
  Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Time now() const { return Time(Picoseconds(static_cast<std::int64_t>(now_))); }
  std::uint64_t fired() const { return fired_; }

  // `when` in the past means now.
  void schedule(Time when, Event& event) {
    const auto at = static_cast<std::uint64_t>(when.time_since_epoch().count());
    if (at <= now_) {
      push_now(event);
    } else if (at < horizon_) [[likely]] {
      push_heap({sequence_++, at, &event});
    } else {
      later_.push_back({sequence_++, at, &event});
    }
  }

  // The same for events that thousands wait for, each the same time from now, such as a timer of
  // the device: they are due in the order in which they are scheduled, so they wait in line and
  // make the heap no deeper. The order of events is that of schedule().
  void schedule_in_line(Picoseconds delay, Event& event) {
    const std::uint64_t at = now_ + static_cast<std::uint64_t>(delay.count());
    if (at <= now_ || (line_count_ > 0 && at < line_last_)) return schedule(now() + delay, event);
    push_line({sequence_++, at, &event});
  }

  // Fires the next event; false if there is none.
  bool step() {
    Event* event;
    if (heap_size_ == 0 && !later_.empty()) [[unlikely]]
      move_horizon();
    const bool in_line = line_[line_head_].before(heap_[0]);
    const Entry& first = in_line ? line_[line_head_] : heap_[0];
    // What the heap and the line hold for this instant was scheduled before the instant began, so
    // it comes first. (The first entry of an empty one is due never.)
    if (ring_count_ > 0 && first.time != now_) {
      event = ring_[ring_head_];
      ring_head_ = (ring_head_ + 1) & ring_mask_;
      --ring_count_;
    } else {
      if (first.event == nullptr) return false;
      now_ = first.time;
      event = first.event;
      // The owner of a later one may not have been touched for long.
      if (in_line) {
        pop_line();
      } else {
        pop_heap();
        __builtin_prefetch(heap_[0].event);
      }
    }
    ++fired_;
    event->fire();
    return true;
  }

 private:
  struct Entry {
    std::uint64_t sequence;
    std::uint64_t time;
    Event* event;

    // One comparison of 128 bits: which of two entries is earlier is as good as random, so a branch
    // on it would be mispredicted half of the time.
    __extension__ typedef unsigned __int128 Key;
    Key key() const { return Key{time} << 64 | sequence; }
    bool before(const Entry& other) const { return key() < other.key(); }
  };
  static constexpr Entry kNever{~std::uint64_t{0}, ~std::uint64_t{0}, nullptr};

  // An implicit heap of four children a node: half as deep as a binary one, and the children of a
  // node share two cache lines. Behind the last entry follow entries that are due never, so that
  // each node with a child has four.
  static constexpr std::size_t kArity = 4;
  void push_heap(Entry entry) {
    if (heap_size_ + kArity >= heap_.size()) [[unlikely]]
      grow_heap();
    std::size_t hole = heap_size_++;
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kArity;
      if (!entry.before(heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }
  void pop_heap();

  void grow_heap();

  // The heap holds what is due before the horizon. What is due later waits in no order, so that
  // thousands of timeouts do not make the heap deep for what is due in a microsecond.
  static constexpr std::uint64_t kNear = 10'000'000'000;  // 10 ms
  void move_horizon();

  // A ring, too. Behind the last entry follows one that is due never.
  void push_line(Entry entry) {
    if (line_count_ + 1 == line_.size()) [[unlikely]]
      grow_line();
    line_[(line_head_ + line_count_) & line_mask_] = entry;
    ++line_count_;
    line_last_ = entry.time;
  }
  void pop_line() {
    constexpr std::size_t kAhead = 4;
    line_[line_head_] = kNever;
    line_head_ = (line_head_ + 1) & line_mask_;
    --line_count_;
    __builtin_prefetch(line_[(line_head_ + kAhead) & line_mask_].event);
  }
  void grow_line();

  // Events of this very instant need no heap: a ring in the order of scheduling.
  void push_now(Event& event) {
    if (ring_count_ == ring_.size()) [[unlikely]]
      grow_ring();
    ring_[(ring_head_ + ring_count_) & ring_mask_] = &event;
    ++ring_count_;
  }
  void grow_ring();

  std::uint64_t now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t fired_ = 0;
  std::vector<Entry> heap_;
  std::size_t heap_size_ = 0;
  std::vector<Entry> later_;
  std::uint64_t horizon_ = kNear;
  std::uint64_t near_ = kNear;  // how far the horizon is moved
  std::vector<Entry> line_;
  std::size_t line_mask_;
  std::size_t line_head_ = 0;
  std::size_t line_count_ = 0;
  std::uint64_t line_last_ = 0;  // when the last one is due
  std::vector<Event*> ring_;
  std::size_t ring_mask_;
  std::size_t ring_head_ = 0;
  std::size_t ring_count_ = 0;
};

}  // namespace perdura::sim
