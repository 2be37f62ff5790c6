// The device of a simulated node: its pipelines, its buses, and the table of registered memory.
#pragma once

#include <deque>
#include <memory>

#include "platform/base/error.h"
#include "platform/fabric/dirty_ranges.h"
#include "platform/fabric/extents.h"
#include "platform/fabric/fabric.h"
#include "platform/fabric/sim/translation.h"
#include "platform/fabric/traffic.h"
#include "platform/pmem/sim/sim_region.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/resource.h"

namespace perdura::fabric::sim {

class Nic {
 public:
  // `software`: true for connections over TCP, where a CPU does what a device would do.
  explicit Nic(const perdura::sim::Profile& testbed, bool software = false)
      : profile(testbed), is_software(software) {
    if (testbed.translation) translations.emplace(*testbed.translation);
  }

  const perdura::sim::Profile& profile;
  const bool is_software;
  // The cause under which its writes to persistent memory are counted.
  pmem::Cause cause() const {
    return is_software ? pmem::Cause::local_store : pmem::Cause::one_sided;
  }
  std::shared_ptr<pmem::sim::Journal> journal;  // null unless durability is tracked
  // Resources for what threads post. A thread may post at times that the engine has not reached
  // yet, and what the device does before those times must not wait for these posts.
  perdura::sim::SharedResource transmit;  // message rate, out
  perdura::sim::SharedResource link;      // out
  perdura::sim::SharedResource link_in;   // in: taken when a message leaves its sender
  perdura::sim::SharedResource dma_read;  // PCIe, from memory
  // Resources for what arrives, taken in the order of arrival.
  perdura::sim::Resource receive;    // message rate, in
  perdura::sim::Resource dma_write;  // PCIe, to memory
  perdura::sim::Resource atomics;
  bool in_atomic = false;  // a relaxed simulation is halfway through an atomic
  std::optional<TranslationCache> translations;  // none: it knows where everything is
  Traffic traffic;                               // headers and acknowledgments included

  // The device's knowledge of a registration to which peers may append.
  struct Appends {
    Bytes size_word = 0;  // the place in the region of the word with the size
    RangeFaults* faults = nullptr;
    Bytes reported = 0;  // range faults up to here are known; 0 after each change of the extents
    // The size after the last APPEND, and when the word has it.
    Bytes size = 0;
    Time stored_at{};
  };

  // An entry of the table. Entries are never removed and keep their memory alive, since messages in
  // flight refer to them. Keys are never reused, and key 0 is never valid, so that an uninitialized
  // key is detected.
  struct Registered {
    std::shared_ptr<pmem::RegionModel> model;
    // The node that registered it: only connections of the same node reach it (a protection
    // domain).
    NodeId owner = 0;
    Bytes offset = 0;
    Bytes length = 0;
    Access access = Access::local;
    bool valid = true;
    // The extents, if it is a registration of extents; otherwise null.
    std::unique_ptr<ExtentTable> extents{};
    Bytes region_size = 0;
    // When the device will have finished the operations that it has begun on the extents; a change
    // of them is complete then.
    Time busy_until{};
    std::optional<Appends> appends{};  // none: peers may not append
    // The ranges that operations have changed since it was committed, if peers may commit it.
    DirtyRanges dirty{};
    bool may_be_committed() const {
      return extents != nullptr && allows(access, Access::remote_flush);
    }
    pmem::sim::SimRegion& region() const { return static_cast<pmem::sim::SimRegion&>(*model); }
  };

  MemoryRegion add(NodeId owner, pmem::Region& region, Bytes offset, Bytes length, Access access) {
    registered_.push_back({region.shared_model(), owner, offset, length, access});
    return {&region, offset, length, {static_cast<std::uint32_t>(registered_.size())}, access};
  }

  ExtentMap add(NodeId owner, pmem::Region& region, ExtentTable extents, Access access) {
    registered_.push_back({region.shared_model(), owner, 0, 0, access});
    registered_.back().extents = std::make_unique<ExtentTable>(std::move(extents));
    registered_.back().region_size = region.size();
    return {&region, {static_cast<std::uint32_t>(registered_.size())}, access};
  }

  // Returns a registration of extents that is to be changed. Throws PlatformError if there is none.
  Registered& extents_of(const ExtentMap& map) {
    const std::uint32_t key = map.key.value;
    if (key < 1 || key > registered_.size() || !registered_[key - 1].valid ||
        registered_[key - 1].extents == nullptr) {
      throw PlatformError("cannot change the extents of a registration: no such key");
    }
    return registered_[key - 1];
  }

  void remove(RemoteKey key) {
    if (key.value < 1 || key.value > registered_.size()) return;
    registered_[key.value - 1].valid = false;
    if (translations) translations->forget_table(key.value);
  }

  // Both change extents and return the number of entries that this writes in the translation table.
  std::uint64_t map(const ExtentMap& map, const Extent& extent);
  std::uint64_t unmap(const ExtentMap& map, Bytes at, Bytes length);

  // Lets peers append to a registration of extents (Endpoint::allow_appends).
  void allow_appends(const ExtentMap& map, Bytes size_word, RangeFaults& faults) {
    Registered& memory = extents_of(map);
    check_size_word(size_word, memory.region_size);
    memory.appends = Appends{.size_word = size_word, .faults = &faults};
  }

  // The number of translation entries of a registration.
  std::uint64_t entries_of(const Registered& memory) const;
  const Registered& registered(RemoteKey key) const { return registered_[key.value - 1]; }

  // Both return the time at which the NIC has the translations that it needs from time `at` on:
  // find_remote() those of the remote memory that an operation names, find_local() those of local
  // memory.
  Time find_remote(Time at, const WorkRequest& request, const Registered& memory, Bytes length,
                   std::span<const RegionPiece> pieces) {
    return translations ? translate(at, request, memory, length, pieces) : at;
  }
  Time find_local(Time at, const LocalPieces& local, Bytes length) {
    return translations ? translate(at, local, length) : at;
  }

  // Drops all registrations, as when the machine restarts.
  void remove_all() {
    for (Registered& memory : registered_) memory.valid = false;
    if (translations) translations.emplace(*profile.translation);
  }

  // Drops the registrations of a node whose process has died.
  void remove_all_of(NodeId owner) {
    for (std::uint32_t key = 1; key <= registered_.size(); ++key) {
      if (registered_[key - 1].owner == owner && registered_[key - 1].valid) remove({key});
    }
  }

  // Returns the memory at a remote address for a connection of `owner`. Returns null if the key is
  // not valid, the range is not registered, or the access is not allowed. For a registration of
  // extents, fills `pieces` with what the access touches.
  Registered* find(NodeId owner, RemoteAddress at, Bytes length, Access needed,
                   std::vector<RegionPiece>& pieces) {
    if (at.key.value < 1 || at.key.value > registered_.size()) return nullptr;
    Registered& memory = registered_[at.key.value - 1];
    if (!memory.valid || memory.owner != owner || !allows(memory.access, needed)) return nullptr;
    if (memory.extents != nullptr) [[unlikely]]
      return memory.extents->find(at.offset, length, pieces) ? &memory : nullptr;
    if (at.offset > memory.length || length > memory.length - at.offset) return nullptr;
    return &memory;
  }

 private:
  Time translate(Time at, const WorkRequest& request, const Registered& memory, Bytes length,
                 std::span<const RegionPiece> pieces);
  Time translate(Time at, const LocalPieces& local, Bytes length);
  Time find_pages(Time at, std::uint64_t table, Bytes page, Bytes offset, Bytes length);
  // The page size of the translations of this region's memory; 0: each covers a whole range.
  Bytes page_of(const pmem::sim::SimRegion& region) const;
  std::uint64_t entries_in(const Registered& memory, Bytes at, Bytes length) const;
  void forget_changed(const ExtentMap& map, const Registered& memory, Bytes at, Bytes length);

  std::deque<Registered> registered_;
};

inline pmem::sim::SimRegion& model_of(const pmem::Region& region) {
  return static_cast<pmem::sim::SimRegion&>(*region.model());
}

}  // namespace perdura::fabric::sim
