// A simulated machine: its cores, its memory and NIC, and the persistent regions, which outlive the
// process that runs on it.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platform/fabric/sim/endpoint.h"
#include "platform/fabric/sim/nic.h"
#include "platform/platform.h"
#include "platform/pmem/sim/sim_region.h"
#include "platform/sim/kernel/thread.h"

namespace perdura::sim {

class SimNode final : public Node {
 public:
  // `kind`: the profile's server or client. `failure`: receives the first exception that a task of
  // the node's background threads does not catch, if it is still null. All references must outlive
  // the node.
  SimNode(Engine& engine, const Profile& profile, const NodeProfile& kind, NodeId id,
          fabric::sim::Network& network, fabric::sim::Directory& directory,
          std::exception_ptr& failure);
  ~SimNode();

  NodeId id() const override { return id_; }
  std::unique_ptr<pmem::Region> create_region(std::string_view name, Bytes size,
                                              pmem::Medium medium) override;
  std::unique_ptr<pmem::Region> create_region_at(MemoryPlace place, std::string_view name,
                                                 Bytes size, pmem::Medium medium) override;
  std::unique_ptr<pmem::Region> open_region(std::string_view name) override;
  void remove_region(std::string_view name) override;
  std::unique_ptr<BackgroundThread> start_background_thread(
      std::optional<fabric::Port> port) override;
  Picoseconds cpu_time() const override;
  pmem::Writes pm_writes() const override { return meter_.writes(); }
  fabric::TrafficByNode traffic() const override { return {{id_, nic_.traffic}}; }
  pmem::MemoryUse peak_memory() const override { return memory_.peak(); }

  const NodeProfile& profile() const { return profile_; }
  SimThread& add_thread(CompletionMode mode);
  // Stalls of a thread of the node that will be added; 0 is the first one of all.
  void stall(std::uint32_t thread, std::vector<Stall> stalls) {
    stalls_[thread] = std::move(stalls);
  }
  // Makes the endpoint of a thread of this node; others can connect to it at `port`.
  std::unique_ptr<fabric::sim::SimEndpoint> make_endpoint(SimThread& thread, fabric::Port port);
  std::list<SimThread>& threads() { return threads_; }
  fabric::sim::Nic& nic() { return nic_; }

  // From now on, changes of the node's persistent regions are reported to a journal.
  void track(pmem::sim::Durability& durability);
  // Null unless durability is tracked. A power failure replaces the journal by a new one.
  pmem::sim::Journal* journal() { return journal_.get(); }
  // The two halves of a power failure: cut_power() chooses the image that survives and stops all
  // changes of memory; after the threads have been stopped, restore_power() writes the image into
  // the memory. Throws UsageError if durability is not tracked.
  void cut_power(pmem::Choices& choices);
  void restore_power();

 private:
  struct Block {
    std::byte* base = nullptr;
    Bytes size = 0;
    pmem::sim::MemoryController* controller = nullptr;
    Bytes address = 0;
    Bytes page = 0;  // that was chosen
    std::shared_ptr<pmem::sim::SimRegion> model;
    std::shared_ptr<void> mapping;
  };
  Block allocate(std::string_view name, Bytes size, pmem::Medium medium, MemoryPlace place);
  std::shared_ptr<pmem::sim::SimRegion> make_model(const Block& block, pmem::Medium medium);

  Engine& engine_;
  const Profile& testbed_;
  const NodeProfile& profile_;
  NodeId id_;
  std::uint32_t regions_ = 0;  // made so far
  std::uint32_t threads_added_ = 0;
  std::map<std::uint32_t, std::vector<Stall>> stalls_;  // by the number of the thread
  fabric::sim::Network& network_;
  fabric::sim::Directory& directory_;
  std::exception_ptr& failure_;
  Cores cores_;
  pmem::WriteMeter meter_;
  // One for each of the two NUMA nodes; threads run on the first.
  std::vector<pmem::sim::MemoryController> dram_;
  std::vector<pmem::sim::MemoryController> pm_;
  fabric::sim::Nic nic_;
  pmem::MemoryMeter memory_;
  std::map<std::string, Block, std::less<>> persistent_;
  std::list<SimThread> threads_;
  pmem::sim::Durability* durability_ = nullptr;
  std::shared_ptr<pmem::sim::Journal> journal_;
  std::vector<pmem::sim::Journal::Survivor> survivors_;  // while the power is off
};

}  // namespace perdura::sim
