// A simulated machine: its cores, its memory and NIC, and its persistent regions, which outlive the
// processes that run on it. Its nodes (platform/sim/node.h) are these processes; usually there is
// one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platform/fabric/sim/nic.h"
#include "platform/platform.h"
#include "platform/pmem/sim/crashed_memory.h"
#include "platform/pmem/sim/sim_region.h"
#include "platform/sim/kernel/thread.h"
#include "platform/sim/sim_ring.h"

namespace perdura::sim {

class Machine {
 public:
  // `kind`: the profile's server or client. `id`: the id of its first node. All references must
  // outlive the machine.
  Machine(Engine& engine, const Profile& profile, const NodeProfile& kind, NodeId id);

  // The implementations of Node::create_region_at(), open_region() and remove_region(). A new
  // region counts as memory of `user`.
  std::unique_ptr<pmem::Region> create_region(MemoryPlace place, std::string_view name, Bytes size,
                                              pmem::Medium medium, pmem::MemoryMeter& user);
  std::unique_ptr<pmem::Region> open_region(std::string_view name);
  bool remove_region(std::string_view name);  // false if there is none
  // The implementation of Node::own_region() for a process of the machine.
  std::shared_ptr<void> own_region(std::string_view name, std::uint32_t part, NodeId process);
  // Returns a message ring of this machine, and makes it if there is none of that name. Throws
  // UsageError if there is one of another shape.
  SimRing& ring(std::string_view name, RingShape shape);
  void remove_ring(std::string_view name);

  NodeId id() const { return id_; }
  const Profile& testbed() const { return testbed_; }
  const NodeProfile& profile() const { return profile_; }
  Cores& cores() { return cores_; }
  fabric::sim::Nic& nic() { return nic_; }
  fabric::sim::Nic& ethernet() { return ethernet_; }
  const pmem::WriteMeter& meter() const { return meter_; }

  // From now on, changes of the persistent regions are reported to a journal.
  void track(pmem::sim::Durability& durability);
  // Null unless durability is tracked. A power failure replaces the journal by a new one.
  pmem::sim::Journal* journal() { return journal_.get(); }

  // The two halves of a power failure: cut_power() chooses the image that survives and stops all
  // changes of memory; after the threads have been stopped, restore_power() writes the image into
  // the memory. Throws UsageError if durability is not tracked.
  void cut_power(pmem::Choices& choices);
  void restore_power();
  // The possible results of a power failure now: all images of the persistent memory, and the
  // regions.
  pmem::ImageSpace images();
  pmem::sim::CrashedMemory crashed(const pmem::ImageSpace& images) const;
  // A text that identifies the persistent state, to compare crash points of runs that are the same
  // up to there.
  std::string persistent_state();
  // Gives a new machine the regions that a failure of another one has left. `memory` must outlive
  // the machine.
  void adopt(pmem::sim::CrashedMemory& memory);

  // The two halves of the death of a process: its threads' stores that lie ahead of the engine's
  // time are taken back; while its tasks are destroyed, persistent memory does not change.
  void begin_death(const std::vector<const SimThread*>& threads);
  // Drops the process's registrations.
  void end_death(NodeId process);

 private:
  struct Block {
    std::byte* base = nullptr;
    Bytes size = 0;
    pmem::Medium medium = pmem::Medium::dram;
    pmem::sim::MemoryController* controller = nullptr;
    Bytes address = 0;
    Bytes page = 0;  // the chosen page size; 0: the default
    std::shared_ptr<pmem::sim::SimRegion> model;
    std::shared_ptr<void> mapping;
  };
  Block allocate(Bytes size, pmem::Medium medium, MemoryPlace place);
  void observe_attached(std::string_view name, const Block& block) const;
  // `is_new`: its contents have just been made, rather than survived a power failure.
  std::shared_ptr<pmem::sim::SimRegion> make_model(const Block& block, bool is_new);

  Engine& engine_;
  const Profile& testbed_;
  const NodeProfile& profile_;
  NodeId id_;
  std::uint32_t regions_ = 0;  // made so far
  Cores cores_;
  pmem::WriteMeter meter_;
  // One for each of the two NUMA nodes; threads run on the first.
  std::vector<pmem::sim::MemoryController> dram_;
  std::vector<pmem::sim::MemoryController> pm_;
  pmem::sim::Disk disk_;
  fabric::sim::Nic nic_;
  const Profile ethernet_profile_;
  fabric::sim::Nic ethernet_;  // the kernel's sockets
  std::map<std::string, Block, std::less<>> persistent_;
  // Expires when its owner gives it up; erased when the owner dies.
  struct Ownership {
    NodeId process = 0;
    std::weak_ptr<void> held{};
  };
  std::map<std::pair<std::string, std::uint32_t>, Ownership> owned_;  // by region and part
  std::map<std::string, std::shared_ptr<SimRing>, std::less<>> rings_;
  pmem::sim::Durability* durability_ = nullptr;
  std::shared_ptr<pmem::sim::Journal> journal_;
  std::vector<pmem::sim::Journal::Survivor> survivors_;  // while the power is off
};

}  // namespace perdura::sim
