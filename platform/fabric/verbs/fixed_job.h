// The control plane of a job whose processes are there from its beginning to its end, such as those
// of an experiment: besides messages it has barriers and runs.
//
// One process, the coordinator, listens; the others connect to it, and it forwards the messages
// between them. A process that runs all nodes of its job has neither sockets nor a thread for them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "platform/fabric/verbs/control_plane.h"
#include "platform/fabric/verbs/socket.h"
#include "platform/host/os_thread.h"

namespace perdura::fabric::verbs {

struct FixedJobOptions {
  NodeId node_count = 1;
  std::vector<NodeId> local_nodes{};  // of this process
  // The coordinator's, where the others are to come; null elsewhere and in a process alone.
  std::shared_ptr<ControlListener> listener{};
  // Elsewhere: what the coordinator's listener said (ControlListener::address).
  std::string coordinator{};
  Picoseconds join_timeout = std::chrono::seconds(60);
  ControlPlane::Lookup lookup{};
  // Takes what other processes announce; called on any thread.
  std::function<void(const Message& announcement)> announced{};
};

class FixedJob final : public ControlPlane {
 public:
  // Returns when all processes have joined. Throws PlatformError if some do not in time.
  // The clock is the coordinator's on its host, so that their times can be compared there;
  // elsewhere one of this process.
  explicit FixedJob(const FixedJobOptions& options);
  ~FixedJob() override;

  void send(Message message) override;
  // To all other processes. From any thread.
  void announce(const Message& message);

  bool is_lost(NodeId node) const override {
    return node < node_count_ && lost_[node].load(std::memory_order_acquire);
  }
  // A node whose run failed or whose process ended: waiting in barriers is pointless. The number of
  // nodes if there is none.
  NodeId failed_node() const { return failed_.load(std::memory_order_acquire); }

  // --- barriers, numbered in the order of their creation, the same in all processes

  std::uint32_t create_barrier();
  // How many times the barrier has been passed.
  const std::atomic<std::uint64_t>& barrier_phase(std::uint32_t barrier);
  void arrive(std::uint32_t barrier, std::uint32_t participants);

  // --- runs

  // Tells everybody that the threads of the local nodes have ended for the n-th time.
  void end_run(std::uint64_t run, bool failed);
  // Waits until those of all others have, or are lost; looks at `stop` meanwhile.
  void await_run(std::uint64_t run, const std::function<bool()>& stop);

 private:
  struct Process {
    Socket socket;
    std::mutex sending{};
    MessageReader reader{};
    std::vector<NodeId> nodes{};
    bool closed = false;  // the control thread's
  };
  struct Barrier {
    std::atomic<std::uint64_t> phase{0};
    std::uint32_t arrived = 0;  // at the coordinator
  };

  void admit_processes(const FixedJobOptions& options);
  void join(const FixedJobOptions& options);
  void serve();
  void receive(Process& process);
  void process_ended(Process& process);
  void handle(Message message);
  void broadcast(const Message& message);
  void count_arrival(const Message& message);
  void lose(NodeId node);
  void fail(NodeId node);
  bool is_local(NodeId node) const { return local_[node]; }
  Process* process_of(NodeId node);
  static void transmit(Process& process, const Message& message);

  bool coordinates_;
  NodeId node_count_;
  std::vector<NodeId> local_nodes_;
  std::vector<bool> local_;
  std::function<void(const Message&)> announced_;
  std::vector<std::unique_ptr<Process>> processes_;  // the others; the coordinator alone, elsewhere
  std::vector<std::atomic<bool>> lost_;
  std::atomic<NodeId> failed_;

  std::mutex state_mutex_;
  std::condition_variable state_changed_;
  std::deque<Barrier> barriers_;
  std::uint32_t created_barriers_ = 0;
  std::vector<std::uint64_t> ended_runs_;

  Event stop_;
  OsThread thread_;
};

}  // namespace perdura::fabric::verbs
