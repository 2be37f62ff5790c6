// The memory of a local node that peers can access: the files of its regions, and the directory of
// its registrations. Used by all threads of the node.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "platform/fabric/shm/extent_tables.h"
#include "platform/fabric/shm/layout.h"
#include "platform/fabric/shm/segment.h"
#include "platform/pmem/region.h"

namespace perdura::fabric::shm {

class NodeMemory {
 public:
  explicit NodeMemory(std::shared_ptr<NodeSegment> segment)
      : segment_(std::move(segment)), tables_(segment_) {}

  // To be called when a region is created, and when it is destroyed, which revokes its
  // registrations. Regions are reference-counted: one that was opened twice counts twice.
  void add(const std::byte* base, const std::string& path, pmem::Medium medium);
  void remove(const std::byte* base);

  // Throws PlatformError if the region does not belong to this node or the directory is full.
  RemoteKey publish(pmem::Region& region, Bytes offset, Bytes length, Access access);
  void revoke(RemoteKey key);
  bool is_valid(std::uint32_t key) const;

  // Like publish(), for extents, and changes of extents; they throw PlatformError as documented at
  // Endpoint.
  RemoteKey publish(pmem::Region& region, std::span<const Extent> extents, Access access);
  void map_extent(RemoteKey key, const Extent& extent);
  void unmap_extents(RemoteKey key, Bytes at, Bytes length);
  // Lets peers append to a registration of extents; the doorbell tells the thread of range faults.
  void allow_appends(RemoteKey key, Bytes size_word, std::uint32_t doorbell);
  // Up to where an APPEND has needed extents since they were last changed; 0: none has.
  Bytes asked(RemoteKey key) const {
    return segment_->regions[region_entry(key.value)].appends.asked.load(std::memory_order_seq_cst);
  }

  // An endpoint of this node: peers announce in its segment that they change memory of the node.
  void add(const OwnSegment& segment);
  void remove(const OwnSegment& segment);
  // An operation of a peer that may have seen the registration as it was before a change.
  struct Begun {
    const OwnSegment* segment = nullptr;
    std::uint32_t slot = 0;
    std::uint64_t life = 0;  // the peer's life
  };
  std::vector<Begun> begun() const;
  void drop_ended(std::vector<Begun>& begun) const;

  // The key under which senders find receive buffers in a region; peers cannot use it otherwise.
  std::uint32_t buffer_key(pmem::Region& region);

 private:
  struct Backing {
    std::string path;
    pmem::Medium medium = pmem::Medium::dram;
    int uses = 0;
    std::uint32_t buffer_key = 0;
    std::vector<std::uint32_t> keys;
  };

  // A registration of extents.
  struct Extents {
    ExtentTable table;
    Bytes region_size = 0;
  };

  std::uint32_t publish_locked(Backing& backing, Bytes offset, Bytes length, Access access,
                               const ExtentTable* extents = nullptr);
  void publish_locked(RemoteKey key, const Extents& extents);
  Extents& extents_of(RemoteKey key);
  Backing& backing_of(pmem::Region& region);
  void free_entry(std::uint32_t key);

  std::shared_ptr<NodeSegment> segment_;
  mutable std::mutex mutex_;
  ExtentTables tables_;
  std::map<std::uint32_t, Extents> extents_;  // by key
  std::vector<const OwnSegment*> endpoints_;
  std::map<const std::byte*, Backing> regions_;
  std::vector<std::uint32_t> reuse_ = std::vector<std::uint32_t>(kMaxRegions);
  std::vector<std::uint32_t> free_entries_;
  std::uint32_t next_entry_ = 0;
};

}  // namespace perdura::fabric::shm
