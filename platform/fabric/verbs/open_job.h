// The control plane of a job that processes join and leave at any time: servers and their clients.
//
// There is no coordinator. A process that others are to reach listens at an address that they know.
// Whoever sends something to a node connects to its process by TCP, and again when that connection
// has ended. So a process that dies breaks its own connections and no others, and nobody's death
// keeps others from joining.
//
//   client                                     server, node 3, listens at 10.0.0.1:4711
//     ───────────── connects ──────────────────►
//     ───────────── hello: job, "node 3" ──────►   it draws a number for this connection, from
//     ◄──────────── welcome ────────────────────   kFirstCaller on, and never draws it again
//     ◄──────────── messages ───────────────────►  the client is that number here
//
// Numbers of nodes are names that a process has for its peers: a server's is configured, and a
// client's is drawn by the server, so clients need not agree on theirs. What is meant for a client
// that has ended can reach no other. A server that is started again has the number of the one
// before; what was meant for that one names queue pairs that no other process has
// (VerbsEndpoint::named).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "platform/fabric/tcp/sockets.h"
#include "platform/fabric/verbs/control_plane.h"
#include "platform/fabric/verbs/socket.h"
#include "platform/host/os_thread.h"

namespace perdura::fabric::verbs {

struct OpenJobOptions {
  std::string job{};  // the name of it; processes of other jobs are sent away
  NodeId node = 0;    // of this process, below kFirstCaller
  // Where others reach this process. Port 0: a free one. Nothing: nobody connects to it.
  std::optional<tcp::HostAndPort> listens{};
  ControlPlane::Lookup lookup{};
};

class OpenJob final : public ControlPlane {
 public:
  // The numbers of processes that have connected to this one begin here.
  static constexpr NodeId kFirstCaller = 1U << 16;

  // Waits for nobody. Throws NodeRuns if a process listens there already, UsageError if this host
  // has no such address, PlatformError.
  explicit OpenJob(OpenJobOptions options);
  // The others see the connections end.
  ~OpenJob() override;

  // Where the process of a node is reached, whenever it is there. From any thread; a node that is
  // known already gets another address. Throws UsageError if the host is unknown.
  void add_node(NodeId node, const tcp::HostAndPort& where);
  // Why the node could not be reached when that was last tried; empty if it could.
  std::string problem(NodeId node) const;
  // Where this process listens; 0 if it does not.
  std::uint16_t port() const { return listener_.port; }

  // A node that is not connected is asked for a connection then: who wants one tries again.
  void send(Message message) override;
  bool is_lost(NodeId node) const override;

 private:
  struct Connection;
  using SteadyTime = std::chrono::steady_clock::time_point;
  // A node whose process listens.
  struct Listening {
    tcp::HostAndPort where;
    bool wanted = false;   // somebody has sent to it
    bool dialing = false;  // or connected
    SteadyTime next_dial{};
    std::string problem{};
  };

  void serve();
  SteadyTime start_dialing();
  void dial(NodeId node, const tcp::HostAndPort& where);
  void accept();
  void progress(const std::shared_ptr<Connection>& connection, short events);
  void connected(Connection& connection);
  void receive(const std::shared_ptr<Connection>& connection);
  bool handle(const std::shared_ptr<Connection>& connection, Message message);
  bool greeted(const std::shared_ptr<Connection>& connection, const Message& hello);
  bool welcomed(const std::shared_ptr<Connection>& connection, const Message& answer);
  void join(const std::shared_ptr<Connection>& connection);
  void end(const std::shared_ptr<Connection>& connection, const std::string& why);
  void transmit(Connection& connection, const Message& message);

  const OpenJobOptions options_;
  const std::uint64_t token_;  // of the job
  tcp::ListeningSocket listener_;

  // The control thread's.
  std::vector<std::shared_ptr<Connection>> connections_;
  NodeId next_caller_ = kFirstCaller;

  mutable std::mutex mutex_;
  std::map<NodeId, std::shared_ptr<Connection>> joined_;  // protected by the mutex
  std::map<NodeId, Listening> nodes_;                     // protected by the mutex

  Event wake_;
  std::atomic<bool> stopping_{false};
  OsThread thread_;
};

}  // namespace perdura::fabric::verbs
