#include "library/mcas/member.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "library/choice.h"
#include "library/mcas/verbs_member.h"
#include "platform/base/error.h"
#include "platform/base/node_runs.h"
#include "platform/fabric/tcp/sockets.h"
#include "platform/shm/shm_platform.h"

namespace perdura::mcas {

namespace {

constexpr NodeId kClients = kNodes - kMostShards;
constexpr std::chrono::milliseconds kShardJoins{10'000};
// The longest attempt to connect. Callers repeat attempts until their own limit; short attempts
// find a shard soon after it has started.
constexpr Picoseconds kOneAttempt = Milliseconds(100);

// On one host, shards are found by the name of the job alone.
class ShmMember final : public Member {
 public:
  ShmMember(NodeId node, ShmOptions options) : node_(node), platform_(std::move(options)) {}

  HostPlatform& platform() override { return platform_; }
  NodeId node() const override { return node_; }
  void add_shard(NodeId, const std::string&) override {}
  std::string problem(NodeId) const override { return ""; }

 private:
  NodeId node_;
  ShmPlatform platform_;
};

ShmOptions shm_options(const std::string& job, NodeId node, std::chrono::milliseconds limit) {
  ShmOptions options;
  options.job = job;
  options.node_count = kNodes;
  options.local_nodes = {node};
  options.join_timeout = library::picoseconds(limit);
  options.accounting = pmem::WriteMeter::Level::issued;
  return options;
}

// Takes a free node of the job.
std::unique_ptr<Member> join_shm(const std::string& job, std::chrono::milliseconds limit) {
  // The node to try first. It differs between processes, so that those which join at the same time
  // do not all try the same nodes.
  static std::atomic<NodeId> next{static_cast<NodeId>(getpid()) * 16};
  for (NodeId i = 0; i < kClients; ++i) {
    const NodeId node = kMostShards + next.fetch_add(1) % kClients;
    ShmOptions options = shm_options(job, node, limit);
    options.fabric.connection_timeout = std::min(options.join_timeout, kOneAttempt);
    try {
      return std::make_unique<ShmMember>(node, std::move(options));
    } catch (const NodeRuns&) {
      // The node is another client's.
    }
  }
  throw PlatformError(
      fmt::format("the job '{}' has {} clients, and no room for more", job, kClients));
}

}  // namespace

bool is_address(const std::string& text) {
  const auto found = fabric::tcp::host_and_port(text);
  if (!found) return false;
  // The last label of a name has a letter, so digits and dots alone are meant as an address.
  if (found->host.find_first_not_of("0123456789.") != std::string::npos) return true;
  in_addr address{};
  if (::inet_pton(AF_INET, found->host.c_str(), &address) != 1) return false;
  const std::uint32_t number = ntohl(address.s_addr);
  return number != INADDR_ANY && !IN_MULTICAST(number) && !IN_BADCLASS(number);
}

void check_shard(const Network& network, std::uint32_t node, const std::string& address) {
  if (node >= kMostShards) {
    throw std::invalid_argument(
        fmt::format("node is {}; shards have the numbers 0 to {}", node, kMostShards - 1));
  }
  if (network.rdma && !is_address(address)) {
    throw std::invalid_argument(
        fmt::format("shard {} has the address '{}'; on verbs it is one host's name or IPv4 address "
                    "and a port, as in 10.0.0.1:4711",
                    node, address));
  }
  if (!network.rdma && !address.empty()) {
    throw std::invalid_argument(fmt::format(
        "shard {} has the address '{}', and others have none; all of a job have one, or none has",
        node, address));
  }
}

std::unique_ptr<Member> join_as_client(const std::string& job, const Network& network,
                                       std::chrono::milliseconds limit) {
  return network.rdma ? join_verbs(job, network, limit) : join_shm(job, limit);
}

std::unique_ptr<Member> join_as_shard(const Config& config, const ShardConfig& shard) {
  if (config.network.rdma) return join_verbs(config, shard);
  ShmOptions options = shm_options(config.job, shard.node, kShardJoins);
  options.pm_directory_of_nodes = shard.directory;
  options.placements.resize(shard.node + 1);
  options.placements[shard.node] = shard.placement;
  return std::make_unique<ShmMember>(shard.node, std::move(options));
}

}  // namespace perdura::mcas
