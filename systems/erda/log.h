// Erda's log: heads, each with a chain of regions that are cut into segments (Liu et al., section
// 3.2.2). The server hands out space; clients fill it by one-sided WRITEs.
#pragma once

#include <optional>
#include <vector>

#include "platform/pmem/region.h"
#include "systems/erda/layout.h"

namespace perdura::systems::erda {

class Log {
 public:
  // Reads the head array of a pool; in a new one it links a first region to each head.
  Log(pmem::Region& pool, const PoolLayout& layout);

  // Space for an object, in one segment; nothing if no region is free. A region is linked to the
  // head when the last one is full.
  std::optional<Position> reserve(std::uint8_t head, Bytes size);

  // The place in the pool of a position that was reserved.
  Bytes offset_of(std::uint8_t head, Position position) const;

  // Whether a position lies in a region of the head; no position does.
  bool contains(std::uint8_t head, Position position) const {
    return position.units / region_units_ < heads_[head - 1].chain.size() || !position;
  }

  // After a crash the last written address of a head is not known; it is put behind everything that
  // entries refer to. `end` is the position behind the last object, if that is known to be whole.
  void resume(std::uint8_t head, Position last, std::optional<Position> end);

  // The first position of the segment in which `position` lies.
  Position segment_of(Position position) const;

 private:
  struct Head {
    std::vector<std::uint64_t> chain;  // region numbers
    std::uint32_t next = 1;            // unit to be given out next; 0 means "no version" in a word
  };

  void link_region(std::uint8_t head);
  std::uint32_t units(Bytes bytes) const { return static_cast<std::uint32_t>(bytes / kWord); }

  pmem::Region& pool_;
  const PoolLayout& layout_;
  std::uint32_t segment_units_;
  std::uint32_t region_units_;
  std::vector<Head> heads_;  // by head ID - 1
  std::uint64_t regions_used_ = 0;
};

}  // namespace perdura::systems::erda
