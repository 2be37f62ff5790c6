#include "library/mcas/verbs_member.h"

#include <algorithm>

#include "library/choice.h"
#include "platform/base/error.h"
#include "platform/verbs/verbs_platform.h"

namespace perdura::mcas {

namespace {

using fabric::tcp::host_and_port;

// The longest attempt to connect. Callers repeat attempts until their own limit. Both ends create
// queue pairs, which takes a busy host tens of milliseconds; shorter attempts would keep it busy
// with nothing else.
constexpr Picoseconds kOneAttempt = std::chrono::seconds(2);

// A shard's process listens; each process knows the addresses of the shards that it connects to.
class VerbsMember final : public Member {
 public:
  VerbsMember(NodeId node, VerbsOptions options) : node_(node), platform_(std::move(options)) {}

  HostPlatform& platform() override { return platform_; }
  NodeId node() const override { return node_; }
  void add_shard(NodeId shard, const std::string& address) override {
    platform_.open_job()->add_node(shard, host_and_port(address).value());
  }
  std::string problem(NodeId shard) const override { return platform_.open_job()->problem(shard); }

 private:
  NodeId node_;
  VerbsPlatform platform_;
};

VerbsOptions verbs_options(const std::string& job, NodeId node, const Network& network) {
  VerbsOptions options;
  options.node_count = kNodes;
  options.local_nodes = {node};
  options.open = OpenMembership{.job = job};
  options.device = {.name = network.device.name,
                    .port = network.device.port,
                    .gid_index = network.device.gid_index,
                    .on_demand_paging = network.device.on_demand_paging};
  options.accounting = pmem::WriteMeter::Level::issued;
  return options;
}

}  // namespace

// Shards assign numbers of their own to their clients, so all clients may have the same node
// number.
std::unique_ptr<Member> join_verbs(const std::string& job, const Network& network,
                                   std::chrono::milliseconds limit) {
  VerbsOptions options = verbs_options(job, kMostShards, network);
  options.fabric.connection_timeout = std::min(library::picoseconds(limit), kOneAttempt);
  return std::make_unique<VerbsMember>(kMostShards, std::move(options));
}

std::unique_ptr<Member> join_verbs(const Config& config, const ShardConfig& shard) {
  VerbsOptions options = verbs_options(config.job, shard.node, config.network);
  options.open->listens = host_and_port(shard.address);
  options.pm_directory_of_nodes = shard.directory;
  options.placements.resize(shard.node + 1);
  options.placements[shard.node] = shard.placement;
  auto member = std::make_unique<VerbsMember>(shard.node, std::move(options));
  for (const ShardConfig& other : config.shards) {
    if (other.node != shard.node) member->add_shard(other.node, other.address);
  }
  return member;
}

}  // namespace perdura::mcas
