// The servers of a point whose file system is spread over a cluster (fs::FsCluster), as far as they
// are in this process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/run/point.h"
#include "services/fs/fs.h"

namespace perdura::bench {

// The servers of a point, by the roles of its nodes: "metadata", "mirror" and "store". None if its
// system has no cluster.
std::vector<fs::FsServerNode> servers_of(const harness::Point& point);

class FileServers {
 public:
  static constexpr const char* kName = "bench";

  // `system` must have a cluster, and outlive this. The local nodes are those of `platform`.
  FileServers(Platform& platform, const fs::FsSystem& system, fs::FsConfig config);

  std::uint32_t workers(NodeId node) const;
  std::uint32_t threads() const;  // the sum over all servers, wherever they are
  const std::vector<fs::FsServerNode>& nodes() const { return config_.servers; }

  // Makes and opens the part of the thread's node. Once for each node.
  Task<> open(Thread& thread);
  // Serves it on one of its threads. Does not return.
  Task<> serve(Thread& thread);
  // After open(), on a thread of the node.
  fs::FsServer& part(NodeId node) { return *parts_.at(node); }

 private:
  const fs::FsSystem& system_;
  fs::FsConfig config_;
  std::map<NodeId, std::shared_ptr<fs::FsServer>> parts_;  // those of local nodes
};

}  // namespace perdura::bench
