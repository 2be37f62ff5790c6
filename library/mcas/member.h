// A process' part in a job: one node, on the platform that the job's shards are on. This is the
// only place in the library where it matters which one that is.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "library/mcas/config.h"
#include "platform/host/host_platform.h"

namespace perdura::mcas {

// All processes of a job agree on these. Any number of its nodes may be missing.
inline constexpr NodeId kNodes = 1024;
inline constexpr fabric::Port kShardPort = 0;
inline constexpr fabric::Port kClusterPort = 1;

class Member {
 public:
  virtual ~Member() = default;

  virtual HostPlatform& platform() = 0;
  // The number by which it is a node of the platform.
  virtual NodeId node() const = 0;
  // Where a shard is that this process is to connect to: its address on `verbs`, nothing on `shm`
  // (check_shard). Throws UsageError if there is no such host.
  virtual void add_shard(NodeId shard, const std::string& address) = 0;
  // Why that shard could not be reached when it was last tried, if the platform knows.
  virtual std::string problem(NodeId shard) const = 0;
};

// Throws std::invalid_argument if no shard of a job on that network can have this number and
// address.
void check_shard(const Network& network, std::uint32_t node, const std::string& address);

// Whether it can be where a shard listens, and clients find it: a host, by its name, which is not
// looked up, or its own IPv4 address, and a port.
bool is_address(const std::string& text);

// A client's. The limit is for joining. Throws UsageError or PlatformError.
std::unique_ptr<Member> join_as_client(const std::string& job, const Network& network,
                                       std::chrono::milliseconds limit);
// A shard's, which knows the others. Throws NodeRuns if it is being served, UsageError or
// PlatformError.
std::unique_ptr<Member> join_as_shard(const Config& config, const ShardConfig& shard);

}  // namespace perdura::mcas
