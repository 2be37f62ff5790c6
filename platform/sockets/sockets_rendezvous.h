// How endpoints find each other in a cluster whose hosts' addresses are known: the endpoint of node N
// with port P listens at the address of node N, on the TCP port of that address plus P.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "platform/fabric/tcp/rendezvous.h"
#include "platform/fabric/tcp/sockets.h"

namespace perdura {

class SocketsRendezvous final : public fabric::tcp::Rendezvous {
 public:
  // `job`: the name of the cluster. Names of hosts are looked up here, which may take seconds; throws
  // UsageError if one is unknown.
  SocketsRendezvous(std::string_view job,
                    const std::map<fabric::NodeId, fabric::tcp::HostAndPort>& addresses);

  // Listens at once for the first `ports` endpoints of a node of this process, so that connections
  // wait until the threads accept them. Throws UsageError if the address is not one of this host, or
  // if a process listens there.
  void listen(fabric::NodeId node, std::uint32_t ports);

  std::uint64_t job() const override { return job_; }
  std::string host() const override { return "0.0.0.0"; }
  // A port that has no socket of listen() gets a free one, which no other process can find.
  fabric::tcp::ListenerSocket begin_to_listen(fabric::Address address) override;
  void publish(fabric::Address, const fabric::tcp::Listener&) override {}
  void withdraw(fabric::Address) override {}
  std::optional<fabric::tcp::Listener> find(fabric::Address address) override;

 private:
  struct Host {
    fabric::tcp::HostAndPort given;
    std::string address;  // IPv4
  };

  std::uint64_t job_;
  std::map<fabric::NodeId, Host> hosts_;
  std::mutex mutex_;
  std::map<std::pair<fabric::NodeId, fabric::Port>, fabric::tcp::ListeningSocket> listening_;
};

}  // namespace perdura
