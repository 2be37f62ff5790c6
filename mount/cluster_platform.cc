// The platforms of the processes of a file system over a cluster.
#include "mount/cluster_config.h"
#include "platform/base/error.h"
#ifdef PERDURA_HAVE_VERBS
#include "platform/verbs/verbs_platform.h"
#endif

namespace perdura::mount {

SocketsOptions ClusterConfig::sockets_options() const {
  SocketsOptions options{.job = name_};
  for (const ConfiguredServer& server : servers_) {
    options.addresses[server.part.node] = server.address;
  }
  return options;
}

std::unique_ptr<Platform> ClusterConfig::platform_of_memory(const ConfiguredServer& server) const {
  SocketsOptions options = sockets_options();
  options.node = server.part.node;
  options.pm_directory = server.directory;
  return std::make_unique<SocketsPlatform>(std::move(options));
}

std::unique_ptr<Platform> ClusterConfig::platform(const ConfiguredServer& server,
                                                  std::uint32_t ports) const {
  if (device_) return on_devices(server.part.node, &server, ports > 0);
  SocketsOptions options = sockets_options();
  options.node = server.part.node;
  options.ports = ports;
  options.pm_directory = server.directory;
  return std::make_unique<SocketsPlatform>(std::move(options));
}

std::unique_ptr<Platform> ClusterConfig::platform_of_client() const {
  if (device_) return on_devices(client(), nullptr, false);
  SocketsOptions options = sockets_options();
  options.node = client();
  return std::make_unique<SocketsPlatform>(std::move(options));
}

#ifdef PERDURA_HAVE_VERBS

// `server`: whose persistent memory the process has; null if it is a client's.
std::unique_ptr<Platform> ClusterConfig::on_devices(NodeId node, const ConfiguredServer* server,
                                                    bool listens) const {
  VerbsOptions options;
  options.node_count = client() + 1;
  options.local_nodes = {node};
  options.open = OpenMembership{.job = name_};
  if (listens) options.open->listens = server->address;
  options.device = {.name = device_->name,
                    .port = device_->port,
                    .gid_index = device_->gid_index,
                    .on_demand_paging = device_->on_demand_paging};
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

std::unique_ptr<Platform> ClusterSource::platform(Access /*access*/) const {
  return store_ == nullptr ? cluster_.platform_of_client() : cluster_.platform(*store_, 0);
}

}  // namespace perdura::mount
