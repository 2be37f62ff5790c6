// The heads of a partition and the regions that they share: who has which, when a log may grow, and
// when one is to be cleaned (Liu et al., sections 3.2.2 and 4.4).
//
// A log may grow only as long as cleaning stays possible. Cleaning a head takes, in the worst case,
// as much space as the objects of its log; heads that are being cleaned have been promised so much,
// and what they give back must suffice for the fullest of the others. So a store never fills itself
// into a corner: it is "out of space" while there is still room to find out what can be reclaimed.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "platform/pmem/region.h"
#include "services/kv/kv.h"
#include "systems/erda/layout.h"
#include "systems/erda/log.h"

namespace perdura::systems::erda {

// Region 1 is the log that a head points to, Region 2 the one that a cleaner fills.
class Space {
 public:
  // Reads the head array; in a new pool it links a region to each head. Throws UsageError if two
  // heads claim the same region or one is not there.
  Space(pmem::Region& pool, const PoolLayout& layout, std::uint64_t threshold_percent);

  std::uint8_t heads() const { return static_cast<std::uint8_t>(heads_.size()); }
  Phase phase(std::uint8_t head) const { return of(head).state.phase; }
  // Which of its two chains a head points to.
  std::uint32_t chain(std::uint8_t head) const { return of(head).state.chain; }
  Log& region_1(std::uint8_t head) { return of(head).logs[of(head).state.chain]; }
  Log& region_2(std::uint8_t head) { return of(head).logs[1 - of(head).state.chain]; }
  const Log& region_1(std::uint8_t head) const { return of(head).logs[of(head).state.chain]; }
  const Log& region_2(std::uint8_t head) const { return of(head).logs[1 - of(head).state.chain]; }

  // Space for an object in Region 1, or in Region 2. Nothing if the log may not grow so far.
  std::optional<Position> reserve_in_1(std::uint8_t head, Bytes size);
  std::optional<Position> reserve_in_2(std::uint8_t head, Bytes size);
  // The same for the cleaner, who was promised the space.
  std::optional<Position> reserve_for_cleaner(std::uint8_t head, Bytes size);

  // Whether a head's log has reached the threshold, and enough has been written since it was last
  // cleaned for another time to be worth its cost.
  bool wants_cleaning(std::uint8_t head) const;
  // The head whose cleaning may yield most, `preferred` if that may yield anything; nothing if
  // nothing has been written since the last time, or there is no space for it.
  std::optional<std::uint8_t> best_to_clean(std::uint8_t preferred) const;
  bool cleaning(std::uint8_t head) const { return of(head).cleaning; }
  bool any_cleaning() const;
  // From now on the space that cleaning takes is kept for it; false if there is not enough.
  bool promise(std::uint8_t head);

  // The steps of a cleaning, each of which is in persistent memory when it returns.
  void begin_merging(std::uint8_t head);
  // Objects that Region 1 held when merging began.
  std::size_t objects_before_merging(std::uint8_t head) const {
    return of(head).objects_before_merging;
  }
  // Everything in Region 2 from reserved_begin() to reserved_end() is the cleaner's, enough for all
  // that was written since merging began. False if there is no space.
  bool begin_replicating(std::uint8_t head);
  // The head's pointer changes from Region 1 to Region 2, which so becomes Region 1.
  void begin_switching(std::uint8_t head);
  // Region 2 is free: what was Region 1, or, after merging was abandoned, what nothing points to.
  void end_cleaning(std::uint8_t head);

  // Whether the pool has just been made.
  bool fresh() const { return fresh_; }
  Bytes largest(std::uint8_t head) const { return of(head).largest; }  // object so far
  // The logs are as the last run left them: what is counted since the start counts from here.
  void opened();

  Position reserved_begin(std::uint8_t head) const;
  Position reserved_end(std::uint8_t head) const;

  // The only thing here that any thread may ask for without the lock.
  KvSpace gauge() const;

 private:
  struct Head {
    HeadState state;
    std::vector<Log> logs;      // two
    Bytes largest = 0;          // object so far
    bool cleaning = false;      // space is promised to it
    Bytes occupied_before = 0;  // by what the last cleaning merged
    Bytes held_before_merging = 0;
    std::size_t objects_before_merging = 0;
  };

  Head& of(std::uint8_t head) { return heads_[head - 1]; }
  const Head& of(std::uint8_t head) const { return heads_[head - 1]; }
  const Log& log_of(const Head& head) const { return head.logs[head.state.chain]; }
  void set_state(std::uint8_t head, HeadState state);
  void note_size(std::uint8_t head, Bytes size);
  void measure();  // for gauge()

  std::optional<Position> reserve(std::uint8_t head, Log& log, Bytes size, bool promised);
  void link(Log& log);
  // Segments that so many bytes of the head's objects take at most, however they fall into them.
  std::uint64_t segments_for(const Head& head, Bytes bytes) const;
  std::uint64_t regions_for_segments(std::uint64_t segments) const;
  // Regions that cleaning the head will take, or will still take, if `changed` held so much.
  std::uint64_t demand(const Head& head, const Log* changed = nullptr, Bytes held = 0) const;
  // Whether what all heads demand can be met with so many free regions.
  bool affordable(std::uint64_t free, const Log* changed, Bytes held) const;
  bool yields(const Head& head) const {
    return !head.cleaning && log_of(head).occupied() > head.occupied_before;
  }

  pmem::Region& pool_;
  const PoolLayout& layout_;
  Bytes threshold_;
  std::vector<Head> heads_;
  std::vector<std::uint32_t> free_;  // regions
  bool fresh_ = true;
  // Lives count the uses of regions, from the first time on that one is used again; 0 until then.
  std::uint32_t next_life_ = 0;
  std::atomic<Bytes> used_{0};
  std::atomic<std::uint64_t> cleanings_{0};
  std::atomic<std::uint32_t> cleanings_now_{0};
};

}  // namespace perdura::systems::erda
