// The discrete-event engine of the simulation. Virtual time is in picoseconds. Events fire in order
// of time; events of the same time fire in the order in which they were scheduled. Nothing else
// orders events, so a run is the same on every machine.
//
// Events are intrusive: the caller owns an event and must keep it until it has fired. An event can
// be scheduled only once at a time.
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

  // Schedules an event at `when`; a time in the past means now.
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

  // Like schedule(), for thousands of pending events with the same delay, such as a timer of the
  // device. They become due in the order in which they are scheduled, so a FIFO queue ("line")
  // holds them and the heap stays small. Events fire in the same order as with schedule().
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
    const ScheduledEvent& first = in_line ? line_[line_head_] : heap_[0];
    // Events of this instant in the heap and the line were scheduled before the instant began, so
    // they fire before those in the ring. (An empty heap or line begins with a sentinel that is
    // never due.)
    if (ring_count_ > 0 && first.time != now_) {
      event = ring_[ring_head_];
      ring_head_ = (ring_head_ + 1) & ring_mask_;
      --ring_count_;
    } else {
      if (first.event == nullptr) return false;
      now_ = first.time;
      event = first.event;
      // The next event's owner may not have been accessed for long, so it is prefetched.
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

  // For a simulation in which any event may be next (SimPlatform::relax). After relax() neither
  // step() nor the times of events count.
  void relax() { relaxed_ = true; }
  bool relaxed() const { return relaxed_; }
  // The number of events that are scheduled; the run alone decides how they are numbered.
  std::size_t pending();
  // Fires one of them. Time advances to the event's own, and by `step` at least.
  void fire_pending(std::size_t number, Picoseconds step);
  void advance(Picoseconds step) { now_ += static_cast<std::uint64_t>(step.count()); }

 private:
  struct ScheduledEvent {
    std::uint64_t sequence;
    std::uint64_t time;
    Event* event;

    // A single comparison of 128 bits without branches: which of two entries is earlier is nearly
    // random, so a branch would be mispredicted half of the time.
    __extension__ typedef unsigned __int128 Key;
    Key key() const { return Key{time} << 64 | sequence; }
    bool before(const ScheduledEvent& other) const { return key() < other.key(); }
  };
  static constexpr ScheduledEvent kNever{~std::uint64_t{0}, ~std::uint64_t{0}, nullptr};

  // A 4-ary implicit heap: it is half as deep as a binary heap, and the children of a node share
  // two cache lines. Sentinels that are never due follow the last entry, so that each node with a
  // child has four.
  static constexpr std::size_t kArity = 4;
  void push_heap(ScheduledEvent entry) {
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

  // The heap holds events that are due before the horizon. Later events are kept unordered, so that
  // thousands of timeouts do not deepen the heap for events that are due within microseconds.
  static constexpr std::uint64_t kNear = 10'000'000'000;  // 10 ms
  void move_horizon();

  // The line is a circular buffer, too. A sentinel that is never due follows its last entry.
  void push_line(ScheduledEvent entry) {
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

  // Events scheduled for the current instant need no heap: a circular buffer keeps them in the
  // order of scheduling.
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
  std::vector<ScheduledEvent> heap_;
  std::size_t heap_size_ = 0;
  std::vector<ScheduledEvent> later_;
  std::uint64_t horizon_ = kNear;
  std::uint64_t near_ = kNear;  // how far ahead the horizon is set
  std::vector<ScheduledEvent> line_;
  std::size_t line_mask_;
  std::size_t line_head_ = 0;
  std::size_t line_count_ = 0;
  std::uint64_t line_last_ = 0;  // when the last entry is due
  std::vector<Event*> ring_;
  std::size_t ring_mask_;
  std::size_t ring_head_ = 0;
  std::size_t ring_count_ = 0;

  bool relaxed_ = false;
  std::vector<ScheduledEvent> pending_;  // all events, in a relaxed simulation
};

}  // namespace perdura::sim
