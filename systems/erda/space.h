// The heads of a partition, and the regions that they share: which head owns which regions, when a
// log may grow, and when a log is to be cleaned (Liu et al., sections 3.2.2 and 4.4).
//
// A log may grow only as long as cleaning remains possible. In the worst case cleaning a head takes
// as much space as the objects of its log. That much is promised to every head under cleaning, and
// the space that those will return must suffice for the fullest of the other heads. So cleaning
// never deadlocks for lack of space: the store reports "out of space" while there is still enough
// to reclaim everything that is stale.
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

// Region 1 is the log that a head points to; Region 2 is the one that a cleaner fills.
class Space {
 public:
  // Loads the head array; in a new pool, links a region to each head. Throws UsageError if two
  // heads claim the same region, or if a region does not exist.
  Space(pmem::Region& pool, const PoolLayout& layout, std::uint64_t threshold_percent);

  std::uint8_t heads() const { return static_cast<std::uint8_t>(heads_.size()); }
  Phase phase(std::uint8_t head) const { return of(head).state.phase; }
  // The index, 0 or 1, of the chain that the head points to.
  std::uint32_t chain(std::uint8_t head) const { return of(head).state.chain; }
  Log& region_1(std::uint8_t head) { return of(head).logs[of(head).state.chain]; }
  Log& region_2(std::uint8_t head) { return of(head).logs[1 - of(head).state.chain]; }
  const Log& region_1(std::uint8_t head) const { return of(head).logs[of(head).state.chain]; }
  const Log& region_2(std::uint8_t head) const { return of(head).logs[1 - of(head).state.chain]; }

  // Allocates space for an object in Region 1, or in Region 2. Returns nullopt if the log may not
  // grow that far.
  std::optional<Position> reserve_in_1(std::uint8_t head, Bytes size);
  std::optional<Position> reserve_in_2(std::uint8_t head, Bytes size);
  // The same on behalf of the cleaner, to which the space was promised.
  std::optional<Position> reserve_for_cleaner(std::uint8_t head, Bytes size);

  // True if a head's log has reached the threshold, and enough has been written since it was last
  // cleaned to make cleaning worthwhile.
  bool wants_cleaning(std::uint8_t head) const;
  // The head whose cleaning promises the largest yield, or `preferred` if that may yield anything.
  // Returns nullopt if no head has been written to since it was last cleaned, or if there is no
  // space for cleaning one.
  std::optional<std::uint8_t> best_to_clean(std::uint8_t preferred) const;
  bool cleaning(std::uint8_t head) const { return of(head).cleaning; }
  bool any_cleaning() const;
  // Reserves the space needed to clean the head; returns false if there is not enough.
  bool promise(std::uint8_t head);

  // The steps of a cleaning. Each is durable when it returns.
  void begin_merging(std::uint8_t head);
  // The number of objects that Region 1 held when merging began.
  std::size_t objects_before_merging(std::uint8_t head) const {
    return of(head).objects_before_merging;
  }
  // Reserves the part of Region 2 from reserved_begin() to reserved_end() for the cleaner; it
  // suffices for everything written since merging began. Returns false if there is no space.
  bool begin_replicating(std::uint8_t head);
  // Makes the head point to Region 2, which thereby becomes Region 1.
  void begin_switching(std::uint8_t head);
  // Frees the regions of Region 2, which are those of the former Region 1 or, if merging was
  // abandoned, those of the copies.
  void end_cleaning(std::uint8_t head);

  // True if the pool has just been created.
  bool fresh() const { return fresh_; }
  Bytes largest(std::uint8_t head) const { return of(head).largest; }  // the largest object so far
  // Called when recovery is over: resets the counters of this run.
  void opened();

  Position reserved_begin(std::uint8_t head) const;
  Position reserved_end(std::uint8_t head) const;

  // The only member that may be called without the lock, on any thread.
  kv::KvSpace gauge() const;

  // After recovery: describes a contradiction in the metadata, as a phrase; "" if there is none.
  // Each region must be free, or linked once, in a chain without gaps, and no head may be under
  // cleaning.
  std::string audit() const;

 private:
  struct Head {
    HeadState state;
    std::vector<Log> logs;      // the two chains
    Bytes largest = 0;          // the largest object so far
    bool cleaning = false;      // space is promised to it
    Bytes occupied_before = 0;  // space taken by the objects that the last cleaning merged
    Bytes held_before_merging = 0;
    std::size_t objects_before_merging = 0;
  };

  Head& of(std::uint8_t head) { return heads_[head - 1]; }
  const Head& of(std::uint8_t head) const { return heads_[head - 1]; }
  const Log& log_of(const Head& head) const { return head.logs[head.state.chain]; }
  void set_state(std::uint8_t head, HeadState state);
  void note_size(std::uint8_t head, Bytes size);
  void measure();  // updates the values that gauge() returns

  std::optional<Position> reserve(std::uint8_t head, Log& log, Bytes size, bool promised);
  void link(Log& log);
  // The greatest number of segments that `bytes` bytes of the head's objects can take, however they
  // are distributed.
  std::uint64_t segments_for(const Head& head, Bytes bytes) const;
  std::uint64_t regions_for_segments(std::uint64_t segments) const;
  // The number of regions that cleaning the head would take, or will still take if it has begun,
  // supposing that `changed` held `held` bytes.
  std::uint64_t demand(const Head& head, const Log* changed = nullptr, Bytes held = 0) const;
  // True if `free` regions are enough for the demands of all heads.
  bool affordable(std::uint64_t free, const Log* changed, Bytes held) const;
  bool yields(const Head& head) const {
    return !head.cleaning && log_of(head).occupied() > head.occupied_before;
  }

  pmem::Region& pool_;
  const PoolLayout& layout_;
  Bytes threshold_;
  std::vector<Head> heads_;
  std::vector<std::uint32_t> free_;  // numbers of free regions
  bool fresh_ = true;
  // The life of the region that is linked next. It is 0 in a new pool until regions become free for
  // the first time, so that all first uses share life 0; from then on every link increments it.
  std::uint32_t next_life_ = 0;
  std::atomic<Bytes> used_{0};
  std::atomic<std::uint64_t> cleanings_{0};
  std::atomic<std::uint32_t> cleanings_now_{0};
  std::atomic<std::uint64_t> steps_{0};  // phases of cleanings begun
};

}  // namespace perdura::systems::erda
