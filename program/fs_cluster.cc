#include "program/fs_cluster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <system_error>

#include "mount/cluster_config.h"
#include "platform/base/error.h"

namespace perdura::program {

using fs::FsSystem;
using mount::ClusterConfig;
using mount::ConfiguredServer;

namespace {

bool is_of_this_host(const ClusterConfig& cluster, const ConfiguredServer& server) {
  if (cluster.is_of_one_host()) return true;
  const auto address = fabric::tcp::look_up(server.address.host);
  return address && fabric::tcp::try_to_listen(*address, 0);
}

std::vector<const ConfiguredServer*> chosen(const ClusterConfig& cluster,
                                            const std::vector<std::string>& names) {
  std::vector<const ConfiguredServer*> servers;
  for (const std::string& name : names) servers.push_back(&cluster.server(name));
  if (!servers.empty()) return servers;
  for (const ConfiguredServer& server : cluster.servers()) {
    if (is_of_this_host(cluster, server)) servers.push_back(&server);
  }
  if (!servers.empty()) return servers;
  throw UsageError(
      fmt::format("{}: no server has an address of this host; name those to be made "
                  "here with --server",
                  cluster.file()));
}

}  // namespace

harness::ExitCode make_parts(const FsSystem& system, const std::string& file,
                             const std::vector<std::string>& servers) {
  const ClusterConfig cluster = ClusterConfig::read(system, file);
  fs::FsConfig config = cluster.config();
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  config.root_uid = geteuid();
  config.root_gid = getegid();
  config.now = {now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec)};
  for (const ConfiguredServer* server : chosen(cluster, servers)) {
    try {
      mount::make_part(system, cluster, *server, config);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", server->name, error.what()));
    }
    fmt::print("{}: {} of an empty file system {} in {}\n", server->name,
               server->part.role == fs::FsRole::store
                   ? fmt::format("data of group {}", server->part.group)
                   : "metadata",
               cluster.name(), server->directory);
  }
  return harness::ExitCode::done;
}

harness::ExitCode serve_part(const FsSystem& system, const std::string& file,
                             const std::string& server) {
  const ClusterConfig cluster = ClusterConfig::read(system, file);
  const ConfiguredServer& served = cluster.server(server);
  try {
    mount::serve_part(system, cluster, served, [&server] {
      // The process that has started this one may be waiting for it.
      fmt::print("{} serves\n", server);
      if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
    });
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{} of {}: {}", server, served.directory, error.what()));
  }
  return harness::ExitCode::done;
}

void mount_cluster(const FsSystem& system, const std::string& file, const std::string& store,
                   const mount::MountOptions& options) {
  const ClusterConfig cluster = ClusterConfig::read(system, file);
  const ConfiguredServer* own = nullptr;
  if (!store.empty()) {
    own = &cluster.server(store);
    if (own->part.role != fs::FsRole::store) {
      throw UsageError(fmt::format("--store {}: is no data store", store));
    }
    if (!is_of_this_host(cluster, *own)) {
      throw UsageError(
          fmt::format("--store {}: {} is not an address of this host", store, own->address.host));
    }
  }
  mount::serve(system, mount::ClusterSource(cluster, own), options);
}

}  // namespace perdura::program
