// The configuration file of shards (MCAS, section 3, Listing 1), in TOML:
//
//   # The name by which the shards' processes and their clients find each other.
//   job = "accounts"
//
//   # "shm", the default: on one host; "verbs": on RDMA devices of any hosts.
//   platform = "verbs"
//
//   # The device, on every shard's host; each key may be left out.
//   [verbs]
//   device = "mlx5_0"
//   port = 1
//   gid_index = 3
//   odp = false
//
//   # For all shards; any key of a shard except `node`, `cores` and `numa_node`.
//   [defaults]
//   directory = "/mnt/pmem0/accounts"
//
//   # Bytes, for all pools of the shard.
//   memory = 1_073_741_824
//
//   # A parameter of [systems.mcas]; any of them may be given.
//   engine = "hstore-cc"
//
//   # The number by which clients reach the shard.
//   [shards.left]
//   node = 0
//   # On verbs: the address on which its process listens, and by which clients find it.
//   address = "10.0.0.1:4711"
//   cores = [2]
//
//   [shards.right]
//   node = 1
//   address = "10.0.0.2:4711"
//   directory = "/dev/dax1.0/accounts"
//   cores = [3]
//
//   # How shards detect the failure of others; may be left out.
//   [cluster]
//   heartbeat_ms = 50
//   patience_ms = 1000
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "library/perdura_objects.h"
#include "platform/host/host_node.h"
#include "services/objects/objects.h"
#include "systems/mcas/cluster/watcher.h"

namespace perdura::mcas {

// Shards have numbers below this, and clients from here on.
inline constexpr NodeId kMostShards = 256;

// The network over which the processes of a job communicate.
struct Network {
  bool rdma = false;    // RDMA devices (the platform `verbs`); else shared memory (`shm`)
  RdmaDevice device{};  // only with RDMA
};

struct ShardConfig {
  std::string name{};
  NodeId node = 0;
  std::string address{};  // on `verbs`, as in "10.0.0.1:4711"; else empty
  // A directory of a DAX file system, a DAX device or a path below one, in which the shard's memory
  // has the shard's name. Empty: memory that is freed when the job ends.
  std::string directory{};
  bool emulated = false;  // the directory need not be on DAX
  CompletionMode completion = CompletionMode::event;
  Placement placement{};
  objects::Config store{};
};

struct Config {
  std::string job{};
  Network network{};
  std::vector<ShardConfig> shards{};  // in the order of their numbers
  systems::mcas::cluster::Timing cluster{};

  // Throws UsageError, with one line that has the file, the line and the key, if the file cannot be
  // read or has impossible contents. Directories are not examined.
  static Config read(const std::string& file);
  // The same for a text; `name` stands for the file in messages.
  static Config parse(std::string_view text, const std::string& name);

  // Throws UsageError if there is no shard of that name.
  const ShardConfig& shard(std::string_view name) const;
};

}  // namespace perdura::mcas
