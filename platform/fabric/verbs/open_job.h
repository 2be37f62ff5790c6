// The control plane of a job that processes join and leave at any time: servers and their clients.
//
// There is no coordinator. A process that others are to reach listens at an address that they know.
// A process that sends something to a node connects to the node's process by TCP, and connects
// again when that connection has ended. So a process that dies breaks its own connections and no
// others, and no death keeps other processes from joining.
//
//   client                                     server, node 3, listens at 10.0.0.1:4711
//     ───────────── connects ──────────────────►
//     ───────────── hello: job, "node 3" ──────►   it draws a number for this connection, from
//     ◄──────────── welcome ────────────────────   kFirstCaller on, and never draws it again
//     ◄──────────── messages ───────────────────►  the client is that number here
//
// Numbers of nodes are names that a process has for its peers: a server's is configured, and a
// client's is drawn by the server, so clients need not agree on theirs. Messages for a client that
// has ended can reach no other. A server that is started again has the number of its predecessor;
// messages for the predecessor name queue pairs that no other process has (VerbsEndpoint::named).
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
  std::string job{};  // the job's name; processes of other jobs are rejected
  NodeId node = 0;    // the node of this process, below kFirstCaller
  // Where others reach this process. Port 0: a free one. None: no process connects to it.
  std::optional<tcp::HostAndPort> listens{};
  ControlPlane::Lookup lookup{};
};

class OpenJob final : public ControlPlane {
 public:
  // Processes that have connected to this one are numbered from here on.
  static constexpr NodeId kFirstCaller = 1U << 16;

  // Returns without waiting for other processes. Throws NodeRuns if a process listens at the
  // address already, UsageError if it is not an address of this host, or PlatformError.
  explicit OpenJob(OpenJobOptions options);
  // Closes the connections, which the other processes notice.
  ~OpenJob() override;

  // Sets the address at which the process of a node is reached whenever it runs, or replaces the
  // address of a known node. May be called from any thread. Throws UsageError if the host is
  // unknown.
  void add_node(NodeId node, const tcp::HostAndPort& where);
  // The reason why the last attempt to reach the node failed; empty if it succeeded.
  std::string problem(NodeId node) const;
  // The port at which this process listens; 0 if it does not.
  std::uint16_t port() const { return listener_.port; }

  // If the message's node is not connected, a connection is requested; the sender has to try again.
  void send(Message message) override;
  bool is_lost(NodeId node) const override;

 private:
  struct Connection;
  using SteadyTime = std::chrono::steady_clock::time_point;
  // A node whose process listens.
  struct Listening {
    tcp::HostAndPort where;
    bool wanted = false;   // a message was sent to it
    bool dialing = false;  // being connected, or connected
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
  const std::uint64_t token_;  // identifies the job
  tcp::ListeningSocket listener_;

  // Used by the control thread only.
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
