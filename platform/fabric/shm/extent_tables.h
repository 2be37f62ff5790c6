// The extents of a node's registrations, as peers find them in the node's segment.
//
// A change makes a new table and publishes it by one store, of a word that was never there before;
// who has read a table looks whether the word is still the same, and reads again if not. So readers
// take no lock, and a process that dies in the middle of a change leaves the old table.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "platform/fabric/extents.h"
#include "platform/fabric/shm/layout.h"

namespace perdura::fabric::shm {

// The owner's side; its caller sees to it that one thread uses it at a time.
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

// A peer's side: what an access touches, into `pieces`; false if it touches a hole. `seen` is the
// word by which the table was published: while it is there, what was found holds.
bool find_published(const NodeSegment& segment, const Word& published, Bytes at, Bytes length,
                    std::vector<RegionPiece>& pieces, std::uint64_t& seen);

}  // namespace perdura::fabric::shm
