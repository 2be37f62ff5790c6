// The words of all inodes as clients may see them, in DRAM: a line for each inode, which clients
// READ without the MDS' CPU (section 4.2.1, "RDMA reads").
//
// The words in the MDS' persistent memory change before they are durable. A client that READ them
// there could rely on a change, and tell others, that a power failure then undoes. So the MDS
// publishes them here, after the fence that makes a change durable. With speculative commits clients
// READ the persistent words, as the paper does.
#pragma once

#include <memory>

#include "platform/platform.h"
#include "systems/orion/mds/members.h"
#include "systems/orion/protocol/layout.h"

namespace perdura::systems::orion {

class PublishedWords {
 public:
  // Publishes the words of all inodes that exist. `volume` is the MDS' region.
  PublishedWords(Node& node, std::string_view name, pmem::Region& volume,
                 const nova::Geometry& geometry, const Members& members);

  // Returns the words that the inode has in `volume` now. The caller has the inode's lock.
  InodeWords stored(std::uint64_t inode) const;
  void publish(std::uint64_t inode, const InodeWords& words);
  void publish(const MembersLine& members);

  pmem::Region& region() { return *region_; }
  static Bytes offset_of(std::uint64_t inode) { return inode * sizeof(InodeWords); }

 private:
  pmem::Region& volume_;
  nova::Geometry geometry_;
  const Members& members_;
  std::unique_ptr<pmem::Region> region_;
};

}  // namespace perdura::systems::orion
