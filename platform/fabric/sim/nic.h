// The device of a simulated node: its pipelines, its buses, and the table of registered memory.
#pragma once

#include <deque>
#include <memory>

#include "platform/base/error.h"
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
  // `is_software`: connections over TCP, where a CPU does what a device would do.
  explicit Nic(const perdura::sim::Profile& testbed, bool software = false)
      : profile(testbed), is_software(software) {
    if (testbed.translation) translations.emplace(*testbed.translation);
  }

  const perdura::sim::Profile& profile;
  const bool is_software;
  // As what writes to persistent memory are counted.
  pmem::Cause cause() const {
    return is_software ? pmem::Cause::local_store : pmem::Cause::one_sided;
  }
  std::shared_ptr<pmem::sim::Journal> journal;  // of the node; null unless durability is tracked
  // What a thread posts occupies these. It may have run ahead of the engine, and what the device
  // answers in the meantime must not wait for that.
  perdura::sim::SharedResource transmit;  // message rate, out
  perdura::sim::SharedResource link;      // out
  perdura::sim::SharedResource link_in;   // in: taken when a message leaves its sender
  perdura::sim::SharedResource dma_read;  // PCIe, from memory
  // What arrives occupies these, in its order.
  perdura::sim::Resource receive;    // message rate, in
  perdura::sim::Resource dma_write;  // PCIe, to memory
  perdura::sim::Resource atomics;
  bool in_atomic = false;                        // a relaxed simulation: between its two halves
  std::optional<TranslationCache> translations;  // else it knows where everything is
  Traffic traffic;                               // headers and acknowledgments included

  // An entry of the table. Entries are never removed and keep their memory alive, since messages in
  // flight refer to them. Keys are never reused, and key 0 is never valid, so that an uninitialized
  // key is detected.
  struct Registered {
    std::shared_ptr<pmem::RegionModel> model;
    // Whose registration it is: only connections of the same node reach it (a protection domain).
    NodeId owner = 0;
    Bytes offset = 0;
    Bytes length = 0;
    Access access = Access::local;
    bool valid = true;
    // Of a registration of extents; null if it is one range.
    std::unique_ptr<ExtentTable> extents{};
    Bytes region_size = 0;
    // When the device will have finished the operations that it has begun on the extents; a change
    // of them is complete then.
    Time busy_until{};
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

  // A registration of extents that is to be changed.
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
    if (translations) translations->forget(key.value, 0, kLastEntry);
  }

  // Changes extents. Returns how many entries of the table of translations that writes.
  std::uint64_t map(const ExtentMap& map, const Extent& extent);
  std::uint64_t unmap(const ExtentMap& map, Bytes at, Bytes length);

  // How many entries a registration has.
  std::uint64_t entries_of(const Registered& memory) const;
  const Registered& registered(RemoteKey key) const { return registered_[key.value - 1]; }

  // The time at which the NIC has the translation of memory that it needs at time `at`: of the
  // memory that an operation names, and of the beginning of local memory.
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

  // The memory behind a remote address of a connection of `owner`, or null if the key, the range or
  // the right is wrong; what the access touches of it, if that is not one piece of one range, into
  // `pieces`.
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
  static constexpr std::uint64_t kLastEntry = ~std::uint64_t{0};

  Time translate(Time at, const WorkRequest& request, const Registered& memory, Bytes length,
                 std::span<const RegionPiece> pieces);
  Time translate(Time at, const LocalPieces& local, Bytes length);
  Time find_pages(Time at, std::uint64_t table, Bytes page, Bytes offset, Bytes length);
  // Of a translation of this region's memory; 0: of a whole range.
  Bytes page_of(const pmem::sim::SimRegion& region) const;
  std::uint64_t entries_in(const Registered& memory, Bytes at, Bytes length) const;
  void forget_changed(const ExtentMap& map, const Registered& memory, Bytes at, Bytes length);

  std::deque<Registered> registered_;
};

inline pmem::sim::SimRegion& model_of(const pmem::Region& region) {
  return static_cast<pmem::sim::SimRegion&>(*region.model());
}

}  // namespace perdura::fabric::sim
