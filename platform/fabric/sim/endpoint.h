// The endpoint of a simulated thread, and the establishment of connections.
#pragma once

#include <map>

#include "platform/fabric/sim/connection.h"

namespace perdura::fabric::sim {

class SimEndpoint;

// Finds the endpoint that listens at an address, now or later.
class Directory {
 public:
  void add(SimEndpoint& endpoint);
  void remove(SimEndpoint& endpoint);
  SimEndpoint* find(Address address) const;

 private:
  std::map<std::pair<NodeId, Port>, SimEndpoint*> endpoints_;
};

class SimEndpoint final : public Endpoint {
 public:
  SimEndpoint(Network& network, Directory& directory, Nic& nic, SimThread& thread, Address address);
  ~SimEndpoint() override;

  Address address() const override { return address_; }
  Capabilities capabilities() const override;
  MemoryRegion register_memory(pmem::Region& region, Bytes offset, Bytes length,
                               Access access) override;
  void deregister_memory(RemoteKey key) override;
  ExtentMap register_extents(pmem::Region& region, std::span<const Extent> extents,
                             Access access) override;
  Task<> map_extent(const ExtentMap& map, Extent extent) override;
  Task<> unmap_extents(const ExtentMap& map, Bytes at, Bytes length) override;
  void allow_appends(const ExtentMap& map, Bytes size, RangeFaults& faults) override;
  std::unique_ptr<ReceiveQueue> create_receive_queue(std::uint32_t depth) override;
  Task<Connection> connect(Address to, QueuePairOptions options,
                           std::vector<std::byte> private_data) override;
  Task<std::unique_ptr<ConnectionRequest>> next_connection() override;

 private:
  friend class SimConnectionRequest;
  struct Attempt;

  // How far the thread is ahead of the engine: the charges of the running task that are not yet
  // paid.
  Picoseconds ahead() const;
  void charge_registration(RemoteKey key);
  void charge_change(std::uint64_t entries);

  Network& network_;
  Directory& directory_;
  Nic& nic_;
  SimThread& thread_;
  Address address_;
  bool listening_ = false;
  Ring<std::shared_ptr<Attempt>> attempts_;  // arrived, not yet taken
  WaitList waiting_;
};

}  // namespace perdura::fabric::sim
