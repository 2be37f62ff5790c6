// The parts of a simulated cluster: machines, nodes on them, the network between them, and the
// threads that run on the nodes (users see platform/sim/sim_platform.h).
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/fabric/sim/endpoint.h"
#include "platform/fabric/sim/relaxed_pipe.h"
#include "platform/platform.h"
#include "platform/sim/node.h"
#include "platform/sim/sim_child.h"
#include "platform/sim/sim_platform.h"

namespace perdura::sim {

class SimPlatform::Cluster {
 public:
  // Makes the nodes of each role. The profile and the engine must outlive the cluster.
  Cluster(const Profile& profile, Engine& engine, const std::vector<NodesOfRole>& roles,
          const Machines& machines);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // A service does not keep the run going.
  std::shared_ptr<StartedThread> launch(NodeId node, fabric::Port port, CompletionMode mode,
                                        Body body, bool service);
  void end_all();
  // SimPlatform::kill().
  void kill(NodeId node);
  // SimPlatform::fail_power().
  void fail_power(std::span<const NodeId> of_nodes, pmem::Choices& choices);
  // Takes one step of a relaxed simulation: an event, a store that leaves its buffer, or a step of
  // a device. Returns false if there was none.
  bool relaxed_step(pmem::Choices& choices);
  // Makes the run throw PlatformError; the first problem counts.
  void fail(const std::string& problem);

  pmem::sim::Durability durability{};
  fabric::sim::Network network;
  fabric::sim::Directory directory{};
  fabric::sim::Directory sockets{};
  std::map<NodeId, Machine> machines{};
  std::deque<SimNode> nodes{};
  // Threads that are not services and have not ended.
  std::size_t unfinished = 0;
  std::exception_ptr failure{};

 private:
  struct Running final : StartedThread {
    void stop() override { cluster->stop(*this); }

    Cluster* cluster = nullptr;
    SimThread* thread = nullptr;
    std::unique_ptr<fabric::sim::SimEndpoint> endpoint{};
    std::unique_ptr<Thread> context{};
    Body body{};
    NodeId node = 0;
    bool service = false;
    bool ended = false;
  };
  void begin(const std::shared_ptr<Running>& running);
  static Task<> run_body(Cluster& cluster, Running& running);
  void end(Running& running);
  void end_all_of(NodeId node);
  void stop(Running& running);
  SimNode& add_node(Machine& machine);
  Task<std::unique_ptr<ChildProcess>> start_child(SimNode& parent, ChildProgram program,
                                                  ChildOrder order);
  void kill_child(NodeId child);
  // To be called when the process of a node is gone: marks the child that it was as gone, and kills
  // its children.
  void bury(NodeId node);

  Engine& engine_;
  std::map<NodeId, std::shared_ptr<ChildLife>> children_;  // those that live
  // While processes die, their tasks are destroyed, and with them the objects that end their
  // children; the children are ended afterwards.
  bool dying_ = false;
  std::vector<std::shared_ptr<Running>> running_;
  std::vector<fabric::sim::RelaxedStep> device_steps_;  // possible next steps of the devices
};

}  // namespace perdura::sim
