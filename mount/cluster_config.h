// A file system over a cluster, as its configuration file describes it, in TOML. All hosts, those of
// servers and those that mount it, have the same file:
//
//   name = "home"                       # names the file system, and its regions
//   platform = "sockets"                # the default; or "verbs": RDMA devices; or "shm": one host,
//                                       # whose processes share memory
//   size = 1_073_741_824                # bytes of data that each group of stores holds
//
//   [parameters]                        # those of the system; may be left out
//   inodes = 100_000
//
//   [verbs]                             # the device, on every host (platform/base/device_section.h)
//   device = "mlx5_0"
//
//   [servers.mds]
//   role = "metadata"
//   address = "10.0.0.1:4710"           # the TCP port of its first thread; the others have the next.
//                                       # On RDMA devices it has this port only, on "shm" none
//   directory = "/mnt/pmem0/home"       # for its persistent memory, on DAX, or a DAX device
//
//   [servers.left]
//   role = "store"
//   group = 0                           # stores of the same group hold the same data; 0 if left out
//   address = "10.0.0.2:4710"
//   directory = "/dev/dax0.0/home"
//
// Servers are nodes of the platform `sockets`, or of an open job of the platform `verbs` or `shm`, in the order of
// their names. On `shm` each mount is a node of its own, with the next free number.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mount/source.h"
#include "platform/base/device_section.h"
#include "platform/fabric/tcp/sockets.h"
#include "platform/sockets/sockets_platform.h"
#include "services/fs/fs.h"

namespace perdura::mount {

enum class ClusterPlatform : std::uint8_t { sockets, verbs, shm };

struct ConfiguredServer {
  std::string name;
  fs::FsServerNode part{};
  fabric::tcp::HostAndPort address{};  // none on `shm`
  std::string directory{};
};

class ClusterConfig {
 public:
  // Throws UsageError, in one line that names the file and the line, if it is not right for the
  // system.
  static ClusterConfig read(const fs::FsSystem& system, const std::string& file);

  const std::string& file() const { return file_; }
  const std::string& name() const { return name_; }
  const std::vector<ConfiguredServer>& servers() const { return servers_; }
  // Throws UsageError if there is none of this name; the message names those that there are.
  const ConfiguredServer& server(std::string_view name) const;
  const fs::FsConfig& config() const { return config_; }
  // True if all of it is on one host.
  bool is_of_one_host() const { return platform_ == ClusterPlatform::shm; }

  // The platform of a process that serves so many endpoints of a server; with 0 nobody can connect to
  // it. Throws UsageError or PlatformError.
  std::unique_ptr<Platform> platform(const ConfiguredServer& server, std::uint32_t ports) const;
  // The same of a process that only uses the server's persistent memory, and connects to nobody.
  std::unique_ptr<Platform> platform_of_memory(const ConfiguredServer& server) const;
  // That of a client. `store`: the data store of this host whose memory it uses; null if none.
  MountingNode platform_of_client(const ConfiguredServer* store) const;

 private:
  NodeId first_client() const { return static_cast<NodeId>(servers_.size()); }
  SocketsOptions sockets_options() const;
  std::unique_ptr<Platform> on_devices(NodeId node, const ConfiguredServer* server,
                                       bool listens) const;
  std::string shm_job() const;
  std::unique_ptr<Platform> on_shm(NodeId node, NodeId machine,
                                   const ConfiguredServer* server) const;
  MountingNode join_shm(const ConfiguredServer* store) const;

  std::string file_;
  std::string name_;
  fs::FsConfig config_;
  std::vector<ConfiguredServer> servers_;
  ClusterPlatform platform_ = ClusterPlatform::sockets;
  DeviceSection device_{};  // on `verbs`
};

// A mount of it. `store`: the data store of this host, whose pages the mount reads and writes in its
// memory; null if there is none, or if all are to be reached by the network.
class ClusterSource final : public Source {
 public:
  explicit ClusterSource(const ClusterConfig& cluster, const ConfiguredServer* store = nullptr)
      : cluster_(cluster), store_(store) {}

  const std::string& path() const override { return cluster_.file(); }
  const std::string& name() const override { return cluster_.name(); }
  fs::FsConfig config() const override { return cluster_.config(); }
  MountingNode platform(Access /*access*/) const override {
    return cluster_.platform_of_client(store_);
  }
  bool is_shared() const override { return true; }
  bool is_discarded(Access) const override { return false; }
  // Servers that cannot be reached are found by connecting.
  void prepare(Access) const override {}
  std::optional<File> mark(Access) const override { return std::nullopt; }
  std::string memory(Access) const override { return ""; }

 private:
  const ClusterConfig& cluster_;
  const ConfiguredServer* store_;
};

// Makes the part of a server, empty, in its directory. Throws UsageError if there is one.
void make_part(const fs::FsSystem& system, const ClusterConfig& cluster,
               const ConfiguredServer& server, const fs::FsConfig& config);

// Serves the part of a server until SIGINT, SIGTERM or SIGHUP. `serves` is called when clients can
// connect.
void serve_part(const fs::FsSystem& system, const ClusterConfig& cluster,
                const ConfiguredServer& server, const std::function<void()>& serves);

}  // namespace perdura::mount
