// A simulated node: a process on a machine (platform/sim/machine.h), which it may share with other
// nodes.
#pragma once

#include <list>
#include <memory>

#include "platform/child_process.h"
#include "platform/fabric/sim/endpoint.h"
#include "platform/platform.h"
#include "platform/sim/kernel/thread.h"
#include "platform/sim/machine.h"

namespace perdura::sim {

class SimNode final : public Node, public MessageRings, public ChildProcesses {
 public:
  // `directory`: the endpoints of the device; `sockets`: those over TCP. `failure`: receives the
  // first exception that a task of the node's background threads does not catch, if it is still
  // null. All references must outlive the node.
  SimNode(Engine& engine, Machine& machine, NodeId id, fabric::sim::Network& network,
          fabric::sim::Directory& directory, fabric::sim::Directory& sockets,
          std::exception_ptr& failure);
  ~SimNode();

  NodeId id() const override { return id_; }
  NodeId machine() const override { return machine_.id(); }
  std::unique_ptr<pmem::Region> create_region(std::string_view name, Bytes size,
                                              pmem::Medium medium) override;
  std::unique_ptr<pmem::Region> create_region_at(MemoryPlace place, std::string_view name,
                                                 Bytes size, pmem::Medium medium) override;
  std::unique_ptr<pmem::Region> open_region(std::string_view name) override;
  void remove_region(std::string_view name) override;
  std::shared_ptr<void> own_region(std::string_view name, std::uint32_t part) override {
    return machine_.own_region(name, part, id_);
  }
  std::unique_ptr<BackgroundThread> start_background_thread(std::optional<fabric::Port> port,
                                                            CompletionMode mode) override;
  std::unique_ptr<RingProducer> open_producer(std::string_view name, RingShape shape) override {
    return machine_.ring(name, shape).producer();
  }
  std::unique_ptr<RingConsumer> open_consumer(std::string_view name, RingShape shape) override {
    return machine_.ring(name, shape).consumer();
  }
  Task<std::unique_ptr<ChildProcess>> start_child(ChildProgram program, ChildOrder order) override {
    return start_child_(std::move(program), std::move(order));
  }
  using StartChild = std::function<Task<std::unique_ptr<ChildProcess>>(ChildProgram, ChildOrder)>;
  void set_start_child(StartChild start_child) { start_child_ = std::move(start_child); }
  std::unique_ptr<fabric::Endpoint> create_socket_endpoint(Thread& thread,
                                                           fabric::Port port) override;
  Picoseconds cpu_time() const override;
  // A machine's writes and traffic are counted for the first of its nodes.
  pmem::Writes pm_writes() const override;
  fabric::TrafficByNode traffic() const override;
  pmem::MemoryUse peak_memory() const override { return memory_.peak(); }

  SimThread& add_thread(CompletionMode mode);
  // Sets the stalls of a thread that will be added to the node; threads are numbered from 0.
  void stall(std::uint32_t thread, std::vector<Stall> stalls) {
    stalls_[thread] = std::move(stalls);
  }
  // Sets the choices of all threads that will be added to the node (SimThread::choose_schedule).
  void choose_schedule(const ThreadChoices& choices) { choices_ = choices; }
  const ThreadChoices& schedule() const { return choices_; }
  // Makes the endpoint of a thread of this node; others can connect to it at `port`.
  std::unique_ptr<fabric::sim::SimEndpoint> make_endpoint(SimThread& thread, fabric::Port port);
  std::list<SimThread>& threads() { return threads_; }
  pmem::sim::Journal* journal() { return machine_.journal(); }
  // The time at which the operating system, too, has finished with the node's last process, if that
  // has died; the next process begins then.
  Time free_from() const { return free_from_; }
  void set_free_from(Time when) { free_from_ = when; }

 private:
  Engine& engine_;
  Machine& machine_;
  NodeId id_;
  std::uint32_t threads_added_ = 0;
  Time free_from_{};
  std::map<std::uint32_t, std::vector<Stall>> stalls_;  // by the number of the thread
  ThreadChoices choices_;
  fabric::sim::Network& network_;
  fabric::sim::Directory& directory_;
  fabric::sim::Directory& sockets_;
  std::exception_ptr& failure_;
  StartChild start_child_;  // starts a child on the platform
  pmem::MemoryMeter memory_;
  std::list<SimThread> threads_;
};

}  // namespace perdura::sim
