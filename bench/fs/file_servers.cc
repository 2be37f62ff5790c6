#include "bench/fs/file_servers.h"

#include <utility>

namespace perdura::bench {

std::vector<fs::FsServerNode> servers_of(const harness::Point& point) {
  std::vector<fs::FsServerNode> servers;
  if (point.roles.nodes_of("metadata") == 0) return servers;
  const auto replicas = static_cast<NodeId>(point.settings.number("replicas"));
  for (const fs::FsRole role : {fs::FsRole::metadata, fs::FsRole::mirror, fs::FsRole::store}) {
    const std::string_view name = to_string(role);
    for (NodeId index = 0; index < point.roles.nodes_of(name); ++index) {
      fs::FsServerNode& server = servers.emplace_back();
      server = {.node = point.roles.node(name, index), .role = role};
      if (role == fs::FsRole::store) server.group = index / replicas;
    }
  }
  return servers;
}

FileServers::FileServers(Platform& platform, const fs::FsSystem& system, fs::FsConfig config)
    : system_(system), config_(std::move(config)) {
  for (const fs::FsServerNode& server : config_.servers) {
    // The map does not change any more when threads use it.
    if (platform.local_node(server.node) != nullptr) parts_[server.node] = nullptr;
  }
}

std::uint32_t FileServers::workers(NodeId node) const {
  return system_.cluster->workers(config_, node);
}

std::uint32_t FileServers::threads() const {
  std::uint32_t threads = 0;
  for (const fs::FsServerNode& server : config_.servers) threads += workers(server.node);
  return threads;
}

Task<> FileServers::open(Thread& thread) {
  co_await system_.make(thread, kName, config_);
  parts_.at(thread.node.id()) = co_await system_.cluster->open(thread, kName, config_);
}

Task<> FileServers::serve(Thread& thread) {
  const std::shared_ptr<fs::FsServer> part = parts_.at(thread.node.id());
  co_await part->serve(thread);
}

}  // namespace perdura::bench
