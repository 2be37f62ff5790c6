// The device of a simulated node: its pipelines, its buses, and the table of registered memory.
#pragma once

#include <deque>
#include <memory>

#include "platform/fabric/fabric.h"
#include "platform/pmem/sim/sim_region.h"
#include "platform/sim/kernel/profile.h"
#include "platform/sim/kernel/resource.h"

namespace perdura::fabric::sim {

class Nic {
 public:
  explicit Nic(const perdura::sim::Profile& testbed) : profile(testbed) {}

  const perdura::sim::Profile& profile;
  std::shared_ptr<pmem::sim::Journal> journal;  // of the node; null unless durability is tracked
  perdura::sim::Resource transmit;              // message rate, out
  perdura::sim::Resource receive;               // message rate, in
  perdura::sim::Resource link;                  // out; the other direction is the peer's
  perdura::sim::Resource dma_read;              // PCIe, from memory
  perdura::sim::Resource dma_write;             // PCIe, to memory
  perdura::sim::Resource atomics;

  // An entry of the table. Entries stay, and keep their memory, since messages under way refer to
  // them; keys are never given out twice, and key 0 is never valid, so that a forgotten key is
  // found out.
  struct Registered {
    std::shared_ptr<pmem::RegionModel> model;
    Bytes offset = 0;
    Bytes length = 0;
    Access access = Access::local;
    bool valid = true;
    pmem::sim::SimRegion& region() const { return static_cast<pmem::sim::SimRegion&>(*model); }
  };

  MemoryRegion add(pmem::Region& region, Bytes offset, Bytes length, Access access) {
    registered_.push_back({region.shared_model(), offset, length, access, true});
    return {&region, offset, length, {static_cast<std::uint32_t>(registered_.size())}, access};
  }

  void remove(RemoteKey key) {
    if (key.value >= 1 && key.value <= registered_.size()) registered_[key.value - 1].valid = false;
  }

  // The machine restarts: nothing is registered.
  void remove_all() {
    for (Registered& memory : registered_) memory.valid = false;
  }

  // The memory behind a remote address, or null if the key, the range or the right is wrong.
  const Registered* find(RemoteAddress at, Bytes length, Access needed) const {
    if (at.key.value < 1 || at.key.value > registered_.size()) return nullptr;
    const Registered& memory = registered_[at.key.value - 1];
    if (!memory.valid || !allows(memory.access, needed)) return nullptr;
    if (at.offset > memory.length || length > memory.length - at.offset) return nullptr;
    return &memory;
  }

 private:
  std::deque<Registered> registered_;
};

inline pmem::sim::SimRegion& model_of(const pmem::Region& region) {
  return static_cast<pmem::sim::SimRegion&>(*region.model());
}

}  // namespace perdura::fabric::sim
