// The platform `sim`: a whole cluster in one process and one thread, in virtual time. The same
// profile, program and seed give the same result to the last digit on every machine.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

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
  std::shared_ptr<StartedThread> start(NodeId node, fabric::Port port, CompletionMode mode,
                                       Body body) override;
  std::shared_ptr<StartedThread> start_service(NodeId node, fabric::Port port, CompletionMode mode,
                                               Body body) override;
  void run() override;
  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override;

  // Calls `function` at a moment of the run. It may start threads and kill nodes.
  void at(Time when, std::function<void()> function);
  // The process on a node dies: its threads stop wherever they are, its DRAM and connections are
  // gone, its named regions stay as they are visible.
  void kill(NodeId node);

  // To be called before the run: from now on what happens to the persistent regions of all nodes is
  // told to the persistence model (platform/pmem/sim/journal.h). Without it nothing is remembered
  // and nothing costs. The model's DDIO and transport say what survives, the profile's DDIO what it
  // costs in time: they are apart so that the same run, to the picosecond, can be judged by
  // different models.
  void track_durability(pmem::PersistenceModel model);
  // The power of a node fails, and is there again at once: its threads stop wherever they are, its
  // DRAM, connections and registrations are gone, and its persistent regions hold one of the images
  // that the failure may leave under the model; `choices` says which. Not to be called from a task
  // of the node. Throws UsageError without track_durability().
  void fail_power(NodeId node, pmem::Choices& choices);

  // From now on moments() lists, if durability is tracked, the moments up to now at which what a
  // failure may leave has changed. The caller may remove what it has seen.
  void list_moments();
  std::set<Time>& moments();
  // Called between any two events of the run, and before the first one. It may do what a function
  // given to at() may.
  void between_events(std::function<void()> function) { between_events_ = std::move(function); }

  // run() ends, throwing PlatformError, within milliseconds after this has become true. The flag
  // outlives the run.
  void end_when(const std::atomic<bool>& flag) { end_ = &flag; }

  Engine& engine() { return engine_; }
  const Profile& profile() const { return profile_; }

 private:
  struct Running final : StartedThread {
    void stop() override { platform->stop(*this); }

    SimPlatform* platform = nullptr;
    SimThread* thread = nullptr;
    std::unique_ptr<fabric::sim::SimEndpoint> endpoint{};
    std::unique_ptr<Thread> context{};
    Body body{};
    NodeId node = 0;
    bool service = false;
    bool ended = false;
  };
  std::shared_ptr<StartedThread> launch(NodeId node, fabric::Port port, CompletionMode mode,
                                        Body body, bool service);
  static Task<> run_body(SimPlatform& platform, Running& running);
  void end(Running& running);
  void end_all();
  void stop(Running& running);
  void fail(const std::string& problem);
  void check_time();
  void look_after_run();

  Profile profile_;
  Engine engine_;
  pmem::sim::Durability durability_;
  std::function<void()> between_events_;
  fabric::sim::Network network_{engine_};
  fabric::sim::Directory directory_;
  std::deque<SimNode> nodes_;
  std::vector<std::shared_ptr<Running>> running_;
  std::size_t unfinished_ = 0;
  std::exception_ptr failure_;
  const std::atomic<bool>* end_ = nullptr;  // null: nobody ends the run from outside
  // For noticing that time does not pass.
  Time seen_{};
  std::uint64_t events_seen_ = 0;
};

}  // namespace perdura::sim
