// A log of Erda: a chain of regions that are divided into segments (Liu et al., section 3.2.2). A
// head has one log, and a second one while it is being cleaned. The server allocates the space;
// clients fill it by one-sided WRITEs, or the server fills it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "platform/base/error.h"
#include "platform/pmem/region.h"
#include "systems/erda/layout.h"

namespace perdura::systems::erda {

class Log {
 public:
  // Loads the chain from the head array.
  Log(pmem::Region& pool, const PoolLayout& layout, std::uint8_t head, std::uint32_t chain);

  std::uint64_t regions() const { return links_.size(); }
  // The space in use, in bytes from the start of the first region, including the unused ends of
  // segments into which the next object did not fit.
  Bytes occupied() const { return Bytes{next_} * kWord; }
  // An upper bound of the bytes in use that objects take, and that cleaning may have to copy.
  Bytes held() const { return held_; }

  // The position at which the next object of this size would begin. No object spans two segments
  // (section 3.3). Returns nullopt if it would exceed the range of offsets.
  std::optional<Position> position_for(Bytes size) const { return position_from({next_}, size); }
  std::optional<Position> position_from(Position from, Bytes size) const;
  // True if a position lies in a linked region.
  bool reaches(Position position) const { return position.units / region_units_ < links_.size(); }
  // The first position after the linked regions.
  Position end_of_regions() const {
    return {static_cast<std::uint32_t>(links_.size() * region_units_)};
  }
  // True if a position is 0 or lies in a linked region.
  bool contains(Position position) const { return !position || reaches(position); }

  // Allocates the range at the position that position_for() returned, which must be in a linked
  // region.
  void take(Position position, Bytes size);
  // Marks everything up to a position as in use.
  void skip_to(Position position) { next_ = std::max(next_, position.units); }
  // Registers an object in a part that skip_to() has passed.
  void note(Position position, Bytes size) {
    objects_.push_back(position.units);
    held_ += round_up(size, kWord);
  }

  // Appends a region to the chain (figure 5).
  void link(Link link);
  // Unlinks all regions and drops their contents; the links keep their lives. Returns the links.
  std::vector<Link> unlink_all();

  // The offset in the pool of a position in a linked region, and the life of that region. Both
  // throw PlatformError if no region is linked there: then an entry has survived a failure and the
  // link has not.
  Bytes offset_of(Position position) const {
    return layout_->region_offset(link_of(position).region) +
           Bytes{position.units % region_units_} * kWord;
  }
  std::uint32_t life_of(Position position) const { return link_of(position).life; }

  // The first position of the segment in which `position` lies, and that of the next segment.
  Position segment_of(Position position) const {
    return {position.units / segment_units_ * segment_units_};
  }
  Position segment_after(Position position) const {
    return {segment_of(position).units + segment_units_};
  }

  // Resumes after a crash. The last written address is lost; it is set after everything that
  // entries refer to. `last` is the last object, and `end` the position after it, if it is known to
  // be complete. `objects` are the positions to which entries refer, in ascending order; no object
  // is larger than `largest`.
  void resume(Position last, std::optional<Position> end, std::vector<std::uint32_t> objects,
              Bytes largest);

  // The positions of objects in the order of allocation. The cleaner needs this list, since a log
  // can be scanned neither backwards nor across an object that its writer left incomplete.
  const std::vector<std::uint32_t>& objects() const { return objects_; }

 private:
  const Link& link_of(Position position) const {
    const std::size_t number = position.units / region_units_;
    if (number >= links_.size()) throw PlatformError("erda: an entry points beyond its log");
    return links_[number];
  }
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
  std::uint32_t next_ = 1;  // the last written address; starts at 1, as offset 0 means "no version"
};

}  // namespace perdura::systems::erda
