// The control plane of a job whose processes exist from its beginning to its end, such as those of
// an experiment: besides messages it has barriers and runs.
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
  std::vector<NodeId> local_nodes{};  // the nodes of this process
  // In the coordinator: where the other processes connect. Null in the others, and in a process
  // alone.
  std::shared_ptr<ControlListener> listener{};
  // In the others: the address of the coordinator's listener (ControlListener::address).
  std::string coordinator{};
  Picoseconds join_timeout = std::chrono::seconds(60);
  ControlPlane::Lookup lookup{};
  // Receives the announcements of other processes; called on any thread.
  std::function<void(const Message& announcement)> announced{};
};

class FixedJob final : public ControlPlane {
 public:
  // Returns when all processes have joined. Throws PlatformError if some do not in time. On the
  // coordinator's host the clock is the coordinator's, so that times can be compared there; on
  // other hosts it is a clock of this process.
  explicit FixedJob(const FixedJobOptions& options);
  ~FixedJob() override;

  void send(Message message) override;
  // Sends a message to all other processes. May be called from any thread.
  void announce(const Message& message);

  bool is_lost(NodeId node) const override {
    return node < node_count_ && lost_[node].load(std::memory_order_acquire);
  }
  // A node whose run failed or whose process ended, so that waiting in barriers is pointless. The
  // number of nodes if there is none.
  NodeId failed_node() const { return failed_.load(std::memory_order_acquire); }

  // --- barriers, numbered in the order of their creation, the same in all processes

  std::uint32_t create_barrier();
  // The number of times that the barrier has been passed.
  const std::atomic<std::uint64_t>& barrier_phase(std::uint32_t barrier);
  void arrive(std::uint32_t barrier, std::uint32_t participants);

  // --- runs

  // Tells all processes that the threads of the local nodes have ended for the n-th time.
  void end_run(std::uint64_t run, bool failed);
  // Waits until the threads of all other nodes have, or are lost; calls `stop` meanwhile.
  void await_run(std::uint64_t run, const std::function<bool()>& stop);

 private:
  struct Process {
    Socket socket;
    std::mutex sending{};
    MessageReader reader{};
    std::vector<NodeId> nodes{};
    bool closed = false;  // used by the control thread only
  };
  struct Barrier {
    std::atomic<std::uint64_t> phase{0};
    std::uint32_t arrived = 0;  // arrivals, counted by the coordinator
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
  std::vector<std::unique_ptr<Process>> processes_;  // in the coordinator: all others; elsewhere:
                                                     // the coordinator
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
