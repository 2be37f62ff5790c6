// The platform `sim`: a whole cluster in one process and one thread, in virtual time. The same
// profile, program and seed give the same result to the last digit on every machine.
#pragma once

#include <deque>
#include <functional>
#include <list>

#include "platform/fabric/sim/endpoint.h"
#include "platform/platform.h"
#include "platform/sim/node.h"

namespace perdura::sim {

class SimPlatform final : public Platform {
 public:
  SimPlatform(Profile profile, NodeId nodes);
  ~SimPlatform() override;

  std::string_view name() const override { return "sim"; }
  bool modelled() const override { return true; }
  NodeId node_count() const override { return static_cast<NodeId>(nodes_.size()); }
  Node* local_node(NodeId id) override;
  void start(NodeId node, fabric::Port port, CompletionMode mode, Body body) override;
  void start_service(NodeId node, fabric::Port port, CompletionMode mode, Body body) override;
  void run() override;
  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override;

  // Calls `function` at a moment of the run. It may start threads and kill nodes.
  void at(Time when, std::function<void()> function);
  // The process on a node dies: its threads stop wherever they are, its DRAM and connections are
  // gone, its named regions stay as they are visible.
  void kill(NodeId node);

  Engine& engine() { return engine_; }
  const Profile& profile() const { return profile_; }

 private:
  struct Running {
    SimThread* thread;
    std::unique_ptr<fabric::sim::SimEndpoint> endpoint;
    std::unique_ptr<Thread> context;
    Body body;
    NodeId node;
    bool service;
    bool ended = false;
  };
  void launch(NodeId node, fabric::Port port, CompletionMode mode, Body body, bool service);
  static Task<> run_body(SimPlatform& platform, Running& running);
  void end(Running& running);

  Profile profile_;
  Engine engine_;
  fabric::sim::Network network_{engine_};
  fabric::sim::Directory directory_;
  std::deque<SimNode> nodes_;
  std::list<Running> running_;
  std::size_t unfinished_ = 0;
  std::exception_ptr failure_;
};

}  // namespace perdura::sim
