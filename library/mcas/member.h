// A process's part in a job: one node, on the platform that the job's shards use. Only this part of
// the library depends on which platform that is.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "library/mcas/config.h"
#include "platform/host/host_platform.h"

namespace perdura::mcas {

// All processes of a job agree on these numbers. Any number of its nodes may be missing.
inline constexpr NodeId kNodes = 1024;
inline constexpr fabric::Port kShardPort = 0;
inline constexpr fabric::Port kClusterPort = 1;

class Member {
 public:
  virtual ~Member() = default;

  virtual HostPlatform& platform() = 0;
  // The number of this node on the platform.
  virtual NodeId node() const = 0;
  // Announces a shard to which this process will connect: its address on `verbs`, an empty one on
  // `shm` (check_shard). Throws UsageError if the host does not exist.
  virtual void add_shard(NodeId shard, const std::string& address) = 0;
  // Why the last attempt to reach the shard failed, if the platform knows.
  virtual std::string problem(NodeId shard) const = 0;
};

// Throws std::invalid_argument if no shard of a job on that network can have this number and
// address.
void check_shard(const Network& network, std::uint32_t node, const std::string& address);

// True if this is a valid address of a shard: a host and a port. The host is a name, which is not
// resolved, or an IPv4 address that a host can have.
bool is_address(const std::string& text);

// Joins a job as a client. The limit is that of joining. Throws UsageError or PlatformError.
std::unique_ptr<Member> join_as_client(const std::string& job, const Network& network,
                                       std::chrono::milliseconds limit);
// Joins a job as a shard, which knows the job's other shards. Throws NodeRuns if the shard is being
// served already, UsageError or PlatformError.
std::unique_ptr<Member> join_as_shard(const Config& config, const ShardConfig& shard);

}  // namespace perdura::mcas
