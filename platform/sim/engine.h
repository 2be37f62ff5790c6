// The event engine of the simulation: virtual time in picoseconds, events fire in order of time
// and, within an instant, in the order in which they were scheduled. Nothing else orders events, so
// a run is the same on every machine.
//
// Events are intrusive: whoever schedules one owns it and keeps it until it has fired. An event may
// be in the engine once at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/units.h"

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
    } else {
      push_heap({sequence_++, at, &event});
    }
  }

  // Fires the next event; false if there is none.
  bool step() {
    Event* event;
    // What the heap holds for this instant was scheduled before the instant began, so it comes
    // first. (An empty heap's first entry is due never.)
    if (ring_count_ > 0 && heap_[0].time != now_) {
      event = ring_[ring_head_];
      ring_head_ = (ring_head_ + 1) & ring_mask_;
      --ring_count_;
    } else {
      if (heap_size_ == 0) return false;
      now_ = heap_[0].time;
      event = heap_[0].event;
      pop_heap();
      // The next one is most likely this one; its owner may not have been touched for long.
      __builtin_prefetch(heap_[0].event);
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
  std::vector<Event*> ring_;
  std::size_t ring_mask_;
  std::size_t ring_head_ = 0;
  std::size_t ring_count_ = 0;
};

}  // namespace perdura::sim
