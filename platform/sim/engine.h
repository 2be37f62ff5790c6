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
  Time now() const { return Time(Picoseconds(static_cast<std::int64_t>(now_))); }
  std::uint64_t fired() const { return fired_; }

  // `when` in the past means now.
  void schedule(Time when, Event& event) {
    const auto at = static_cast<std::uint64_t>(when.time_since_epoch().count());
    if (at <= now_) {
      push_now(event);
    } else {
      push_heap({at, sequence_++, &event});
    }
  }

  // Fires the next event; false if there is none.
  bool step();

 private:
  struct Entry {
    std::uint64_t time;
    std::uint64_t sequence;
    Event* event;
    bool before(const Entry& other) const {
      return time != other.time ? time < other.time : sequence < other.sequence;
    }
  };

  // An implicit heap of four children a node: half as deep as a binary one, and the children of a
  // node share two cache lines.
  static constexpr std::size_t kArity = 4;
  void push_heap(Entry entry);
  Entry pop_heap();

  // Events of this very instant need no heap: a ring in the order of scheduling.
  void push_now(Event& event);

  std::uint64_t now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t fired_ = 0;
  std::vector<Entry> heap_;
  std::vector<Event*> ring_ = std::vector<Event*>(64);
  std::size_t ring_head_ = 0;
  std::size_t ring_count_ = 0;
};

}  // namespace perdura::sim
