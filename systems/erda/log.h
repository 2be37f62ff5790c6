// A log of Erda: a chain of regions, cut into segments (Liu et al., section 3.2.2). A head has one,
// and while it is cleaned a second one. The server hands out space; clients fill it by one-sided
// WRITEs, or the server does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/pmem/region.h"
#include "systems/erda/layout.h"

namespace perdura::systems::erda {

class Log {
 public:
  // The chain as the head array has it.
  Log(pmem::Region& pool, const PoolLayout& layout, std::uint8_t head, std::uint32_t chain);

  std::uint64_t regions() const { return links_.size(); }
  // What is in use, in bytes from the first region's start; the rest of a segment that an object
  // did not fit into counts.
  Bytes occupied() const { return Bytes{next_} * kWord; }
  // What its objects hold of that, at most: bytes that cleaning may have to copy.
  Bytes held() const { return held_; }

  // Where the next object of this size would begin: never across two segments (section 3.3).
  // Nothing if an offset cannot reach so far.
  std::optional<Position> place_for(Bytes size) const { return place_from({next_}, size); }
  std::optional<Position> place_from(Position from, Bytes size) const;
  // Whether an object that begins at a position lies in a region that is linked.
  bool reaches(Position position) const { return position.units / region_units_ < links_.size(); }
  // Whether a position is none, or lies in the chain.
  bool contains(Position position) const { return !position || reaches(position); }

  // Takes a place that place_for() named and that is in reach.
  void take(Position position, Bytes size);
  // Takes everything up to a position.
  void skip_to(Position position) { next_ = std::max(next_, position.units); }
  // Notes an object that lies in a part that was skipped.
  void note(Position position, Bytes size) {
    objects_.push_back(position.units);
    held_ += round_up(size, kWord);
  }

  // Figure 5: another region behind the last one.
  void link(Link link);
  // Gives up all regions and what is in them; the links keep their lives.
  std::vector<Link> unlink_all();

  // The place in the pool of a position that is in reach, and its region's life.
  Bytes offset_of(Position position) const {
    return layout_->region_offset(link_of(position).region) +
           Bytes{position.units % region_units_} * kWord;
  }
  std::uint32_t life_of(Position position) const { return link_of(position).life; }

  // The first position of the segment in which `position` lies, and of the next segment.
  Position segment_of(Position position) const {
    return {position.units / segment_units_ * segment_units_};
  }
  Position segment_after(Position position) const {
    return {segment_of(position).units + segment_units_};
  }

  // After a crash the last written address is not known; it is put behind everything that entries
  // refer to. `end` is the position behind the last object, if that is known to be whole. `objects`
  // are those that entries refer to, in order, none larger than `largest`.
  void resume(Position last, std::optional<Position> end, std::vector<std::uint32_t> objects,
              Bytes largest);

  // Where objects begin, in the order in which their places were handed out: the log itself cannot
  // be scanned backwards, nor over an object that its writer left incomplete.
  const std::vector<std::uint32_t>& objects() const { return objects_; }

 private:
  const Link& link_of(Position position) const { return links_[position.units / region_units_]; }
  std::uint32_t units(Bytes bytes) const { return static_cast<std::uint32_t>(bytes / kWord); }

  pmem::Region* pool_;
  const PoolLayout* layout_;
  std::uint8_t head_;
  std::uint32_t chain_;
  std::uint32_t segment_units_;
  std::uint32_t region_units_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> objects_;
  Bytes held_ = 0;
  std::uint32_t next_ = 1;  // the last written address; unit 0 means "no version" in a word
};

}  // namespace perdura::systems::erda
