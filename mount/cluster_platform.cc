// The platforms of the processes of a file system over a cluster.
#include <fmt/format.h>

#include <numeric>

#include "mount/cluster_config.h"
#include "platform/base/error.h"
#include "platform/base/node_runs.h"
#include "platform/pmem/mapped/dax_device.h"
#include "platform/runtime/work.h"
#include "platform/shm/shm_platform.h"
#ifdef PERDURA_HAVE_VERBS
#include "platform/verbs/verbs_platform.h"
#endif

namespace perdura::mount {

namespace {

// A directory of that name would be made in the memory of the file system of devices.
void check_device(const ConfiguredServer& server) {
  if (!server.directory.starts_with("/dev/dax")) return;
  if (pmem::mapped::device_path(server.directory)) return;
  throw UsageError(fmt::format("directory = \"{}\": there is no such device", server.directory));
}

}  // namespace

SocketsOptions ClusterConfig::sockets_options() const {
  SocketsOptions options{.job = name_};
  if (is_of_one_host()) return options;
  for (const ConfiguredServer& server : servers_) {
    options.addresses[server.part.node] = server.address;
  }
  return options;
}

std::unique_ptr<Platform> ClusterConfig::platform_of_memory(const ConfiguredServer& server) const {
  check_device(server);
  SocketsOptions options = sockets_options();
  options.node = server.part.node;
  options.pm_directory = server.directory;
  return std::make_unique<SocketsPlatform>(std::move(options));
}

std::unique_ptr<Platform> ClusterConfig::platform(const ConfiguredServer& server,
                                                  std::uint32_t ports) const {
  check_device(server);
  if (platform_ == ClusterPlatform::verbs) {
    return on_devices(server.part.node, &server, ports > 0);
  }
  if (platform_ == ClusterPlatform::shm) return on_shm(server.part.node, server.part.node, &server);
  SocketsOptions options = sockets_options();
  options.node = server.part.node;
  options.ports = ports;
  options.pm_directory = server.directory;
  return std::make_unique<SocketsPlatform>(std::move(options));
}

MountingNode ClusterConfig::platform_of_client(const ConfiguredServer* store) const {
  if (platform_ == ClusterPlatform::shm) return join_shm(store);
  // Processes that nobody connects to may be the same node, and that of the store, too.
  if (store != nullptr) return {platform(*store, 0), store->part.node};
  const NodeId node = first_client();
  if (platform_ == ClusterPlatform::verbs) return {on_devices(node, nullptr, false), node};
  SocketsOptions options = sockets_options();
  options.node = node;
  return {std::make_unique<SocketsPlatform>(std::move(options)), node};
}

// --- shared memory

// Other file systems of the same name have other directories.
std::string ClusterConfig::shm_job() const {
  std::string directories;
  for (const ConfiguredServer& server : servers_) directories += server.directory + '\n';
  return fmt::format("fs-{}-{:016x}", name_, hash64(std::as_bytes(std::span(directories))));
}

// `machine`: the node that has the same persistent memory. `server`: whose memory it is; null if the
// node has none.
std::unique_ptr<Platform> ClusterConfig::on_shm(NodeId node, NodeId machine,
                                                const ConfiguredServer* server) const {
  ShmOptions options;
  options.job = shm_job();
  options.node_count = fabric::shm::kMaxNodes;
  options.local_nodes = {node};
  options.meets = false;
  options.machines.resize(node + 1);
  std::iota(options.machines.begin(), options.machines.end(), NodeId{0});
  options.machines[node] = machine;
  if (server != nullptr) options.pm_directory_of_nodes = server->directory;
  options.accounting = pmem::WriteMeter::Level::issued;
  return std::make_unique<ShmPlatform>(std::move(options));
}

MountingNode ClusterConfig::join_shm(const ConfiguredServer* store) const {
  for (NodeId node = first_client(); node < fabric::shm::kMaxNodes; ++node) {
    try {
      return {on_shm(node, store != nullptr ? store->part.node : node, store), node};
    } catch (const NodeRuns&) {
      continue;  // the node is another mount's
    }
  }
  throw PlatformError(
      fmt::format("{}: no room for one more mount on this host, which has {} of them", file_,
                  fabric::shm::kMaxNodes - first_client()));
}

// --- RDMA devices

#ifdef PERDURA_HAVE_VERBS

// `server`: whose persistent memory the process has; null if it is a client's.
std::unique_ptr<Platform> ClusterConfig::on_devices(NodeId node, const ConfiguredServer* server,
                                                    bool listens) const {
  VerbsOptions options;
  options.node_count = first_client() + 1;
  options.local_nodes = {node};
  options.open = OpenMembership{.job = name_};
  if (listens) options.open->listens = server->address;
  options.device = {.name = device_.name,
                    .port = device_.port,
                    .gid_index = device_.gid_index,
                    .on_demand_paging = device_.on_demand_paging};
  if (server != nullptr) options.pm_directory_of_nodes = server->directory;
  options.accounting = pmem::WriteMeter::Level::issued;
  auto platform = std::make_unique<VerbsPlatform>(std::move(options));
  for (const ConfiguredServer& other : servers_) {
    if (other.part.node != node) platform->open_job()->add_node(other.part.node, other.address);
  }
  return platform;
}

#else

std::unique_ptr<Platform> ClusterConfig::on_devices(NodeId, const ConfiguredServer*, bool) const {
  throw UsageError(file_ +
                   ": platform \"verbs\": this perdura was built without libibverbs; install "
                   "libibverbs-dev (scripts/packages) and build it again");
}

#endif

}  // namespace perdura::mount
