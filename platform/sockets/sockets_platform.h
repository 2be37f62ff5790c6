// The platform `sockets`: nodes are processes of any hosts, and connections go over the hosts'
// sockets (fabric/tcp), so it needs no device. This process is one node. The others, servers and their
// clients, come and go at any time; when a process ends, for whatever reason, its connections break,
// and it can be started again as the same node.
//
// Servers have addresses that all processes know. A client has none: nobody connects to it, and its
// number is known to no other process, so all clients may have the same.
//
// Software carries out the peers' one-sided operations: the server's thread, when it polls. Threads
// with CompletionMode::event sleep while nothing arrives.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "platform/fabric/tcp/sockets.h"
#include "platform/host/host_platform.h"
#include "platform/runtime/host_clock.h"
#include "platform/sockets/sockets_rendezvous.h"

namespace perdura {

struct SocketsOptions {
  std::string job{};  // names the cluster; processes of others are refused
  // Where the servers listen (SocketsRendezvous).
  std::map<NodeId, fabric::tcp::HostAndPort> addresses{};
  NodeId node = 0;          // this process
  std::uint32_t ports = 0;  // how many endpoints of it are listened for; 0: it is a client
  // The directory of the files of its persistent memory, or a DAX device. Empty: it has none.
  std::string pm_directory{};
  Placement placement{};
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::issued;
  // The time in which a server must answer somebody who connects.
  Picoseconds connection_timeout = std::chrono::seconds(5);
};

class SocketsPlatform final : public HostPlatform {
 public:
  // Throws UsageError or PlatformError.
  explicit SocketsPlatform(SocketsOptions options);
  ~SocketsPlatform() override { drop_nodes(); }

  std::string_view name() const override { return "sockets"; }
  // Throws UsageError: the processes of a cluster do not know of each other.
  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override;

 private:
  void with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                     const RunThread& run) override;
  void meet_other_nodes(bool /*failed*/) override {}

  SocketsOptions options_;
  runtime::HostClock clock_;
  std::shared_ptr<SocketsRendezvous> rendezvous_;
};

}  // namespace perdura
