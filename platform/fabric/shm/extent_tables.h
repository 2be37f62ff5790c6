// The extents of a node's registrations, stored in the node's segment, where peers find them.
//
// A change writes a new table and publishes it by one store of a word whose value was never used
// before (no ABA problem). A reader checks after reading a table that the word is unchanged, and
// retries otherwise. Readers therefore take no lock, and a process that dies in the middle of a
// change leaves the old table in place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "platform/fabric/dirty_ranges.h"
#include "platform/fabric/extents.h"
#include "platform/fabric/shm/layout.h"

namespace perdura::fabric::shm {

// The owner's side. Callers must serialize access to it.
class ExtentTables {
 public:
  explicit ExtentTables(std::shared_ptr<NodeSegment> segment) : segment_(std::move(segment)) {}

  // Throws PlatformError if the segment has no more room.
  void publish(Word& published, const ExtentTable& table);
  void withdraw(Word& published);

 private:
  struct Room {
    std::uint64_t offset = 0;
    Bytes size = 0;
  };
  Room take(Bytes size);

  std::shared_ptr<NodeSegment> segment_;
  Bytes next_ = 0;
  std::map<Bytes, std::vector<std::uint64_t>> free_;  // by size
  std::map<const Word*, Room> used_;
  std::uint32_t changes_ = 0;
};

// A peer's side: stores the pieces of memory that an access touches in `pieces`; returns false if
// it touches a hole. `seen` gets the word that published the table: the result is valid while the
// word is unchanged.
bool find_published(const NodeSegment& segment, const Word& published, Bytes at, Bytes length,
                    std::vector<RegionPiece>& pieces, std::uint64_t& seen);
// Adds to `pieces` what is mapped of these ranges, all according to the same table.
void add_published(const NodeSegment& segment, const Word& published,
                   std::span<const DirtyRange> ranges, std::vector<RegionPiece>& pieces);

}  // namespace perdura::fabric::shm
