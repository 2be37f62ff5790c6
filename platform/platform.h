// The interface between a platform and the systems and harness that run on it: nodes with memory,
// and threads on nodes, each with an executor and an endpoint of the fabric. `sim` holds all nodes
// of a cluster in one process; on `shm` and `verbs` a process is usually one node.
//
// A node is what connections address and what dies at once: a process. Usually it has a machine of
// its own. A platform can be configured so that several nodes are processes of one machine; they
// share its persistent memory, that is, the names of PM regions and their bytes, and on `sim` its
// cores and its device. A process that dies loses its threads, its DRAM, its connections and
// registrations; its stores to PM, flushed or not, remain visible to the others and to its
// successor, since caches belong to the machine. Only a power failure of the machine loses them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/traffic.h"
#include "platform/pmem/memory_meter.h"
#include "platform/pmem/pages.h"
#include "platform/pmem/region.h"
#include "platform/runtime/executor.h"

namespace perdura {

using fabric::NodeId;

// By node: the machine that it runs on, named by the first of its nodes. Nodes beyond the end of
// the list have machines of their own. {0, 0} puts nodes 0 and 1 on one machine.
using Machines = std::vector<NodeId>;
// The machine of a node. Throws UsageError if the list names a machine by another of its nodes.
NodeId machine_of(const Machines& machines, NodeId node);

// How a thread learns of completions: it polls and keeps its core busy, or it sleeps until an
// interrupt wakes it up.
enum class CompletionMode : std::uint8_t { polling, event };

struct Thread;

// A thread of a node for work that a system does in the background, beside the serving thread. It
// sleeps while it has nothing to do. The destructor waits until the running task suspends, then
// destroys the remaining tasks and, if there is one, the endpoint.
class BackgroundThread {
 public:
  virtual ~BackgroundThread() = default;
  // Runs a task on the background thread. Awaiting the result suspends the caller until the task
  // has ended; it rethrows the task's exception, or throws std::future_error (broken_promise) if
  // the background thread ends first. Several tasks take turns. Data that both threads use must be
  // protected by a lock (runtime/sync.h).
  virtual Task<> run(Task<> work) = 0;
  // The thread's executor and endpoint, for use by its own tasks. Throws UsageError if the thread
  // was started without a port and therefore has no endpoint.
  virtual Thread& thread() = 0;
};

// The part of a node's memory in which a region is placed. Used by probes of memory.
struct MemoryPlace {
  bool remote = false;    // on the NUMA node on which the node's threads do not run
  bool one_dimm = false;  // not interleaved
  pmem::Pages pages = pmem::Pages::any;
  bool operator==(const MemoryPlace&) const = default;
};

// One process of the cluster, usually alone on its machine.
class Node {
 public:
  virtual ~Node() = default;
  virtual NodeId id() const = 0;
  // The machine that it runs on, named by the first of its nodes.
  virtual NodeId machine() const { return id(); }

  // Creates a region filled with zeros. A region in PM, or on a disk, outlives the node's process
  // and can be opened again by its name, by any node of the machine, also while others have it
  // open. Throws UsageError if the name exists already or the medium is full.
  virtual std::unique_ptr<pmem::Region> create_region(std::string_view name, Bytes size,
                                                      pmem::Medium medium) = 0;
  // Like create_region(), in a place of the node's memory that the caller chooses. Throws
  // UsageError if the platform cannot place it there.
  virtual std::unique_ptr<pmem::Region> create_region_at(MemoryPlace place, std::string_view name,
                                                         Bytes size, pmem::Medium medium);
  // Opens a region in PM, or on a disk, that was created before; returns null if there is none.
  virtual std::unique_ptr<pmem::Region> open_region(std::string_view name) = 0;
  virtual void remove_region(std::string_view name) = 0;
  // Makes the caller the exclusive owner of a region in PM, or on a disk, until the result is
  // destroyed or the process dies. Returns null if the region has an owner, on any node of the
  // machine or in this process. Ownership is advisory: it does not keep others from opening the
  // region. `part`: has an owner of its own; its users agree on what the parts below kRegionParts are.
  // Throws UsageError if there is no such region.
  static constexpr std::uint32_t kRegionParts = 1024;
  virtual std::shared_ptr<void> own_region(std::string_view name, std::uint32_t part = 0) = 0;

  // With a port, the thread has an endpoint, to which others can connect at {id(), port} as soon as
  // this function has returned. `mode`: how it waits for completions and for tasks.
  virtual std::unique_ptr<BackgroundThread> start_background_thread(
      std::optional<fabric::Port> port = std::nullopt,
      CompletionMode mode = CompletionMode::event) = 0;

  // Creates a second endpoint of a thread of this node, whose connections go over TCP instead of
  // the RDMA device: over the host's sockets, or on `sim` over the Ethernet that the profile
  // describes. Others connect to it at {id(), port} with such an endpoint, too; its ports are
  // separate from those of the RDMA device. The endpoint belongs to the thread, and must be
  // destroyed before the thread's executor, but after the tasks that use it: a task that accepts
  // connections forever must own it.
  //
  // Software carries out the peers' requests: SEND, READ and WRITE; other operations end as
  // `unsupported`. Arriving data is stored by a CPU, so it may stay in caches until it is flushed,
  // whatever the machine's devices do. Throws UsageError if the platform has no sockets.
  virtual std::unique_ptr<fabric::Endpoint> create_socket_endpoint(Thread& thread,
                                                                   fabric::Port port);

  // CPU time that the node's threads have used so far.
  virtual Picoseconds cpu_time() const = 0;
  // Persistent-memory writes caused so far by the node's threads and by one-sided operations that
  // its device performed. The sum over all nodes is everything that was written to persistent
  // memory.
  virtual pmem::Writes pm_writes() const = 0;
  // The bytes sent and received so far, by this node and by its peers, as far as the node counts
  // them. The sum over the results of all nodes is everything. docs/accounting.md has the counting
  // rules.
  virtual fabric::TrafficByNode traffic() const = 0;
  // The most memory that the node's regions had at a time so far.
  virtual pmem::MemoryUse peak_memory() const = 0;
};

struct Thread {
  Node& node;
  Executor& executor;
  fabric::Endpoint& endpoint;
};

// A handle of a thread that a platform was told to start. Destroying the handle does not affect the
// thread.
class StartedThread {
 public:
  virtual ~StartedThread() = default;
  // Stops the thread, whatever its tasks are doing. When this returns, its tasks are destroyed (as
  // those of a service are at the end of a run), its endpoint is gone, and its port is free; run()
  // no longer waits for it. Blocks until the thread's running task suspends, so two threads that
  // stop each other would deadlock; a thread that stops itself gets a UsageError. Does nothing if
  // the thread or the run has ended. May be called by any thread of this process while the platform
  // exists.
  virtual void stop() = 0;
};

class Platform {
 public:
  virtual ~Platform() = default;
  virtual std::string_view name() const = 0;
  // True if times come from a model.
  virtual bool modelled() const = 0;

  virtual NodeId node_count() const = 0;
  // Returns the node if it belongs to this process, or else null.
  virtual Node* local_node(NodeId id) = 0;

  using Body = std::function<Task<>(Thread&)>;
  // Starts a thread on a local node; others can connect to it at {node, port}. `body` is kept for
  // as long as the thread runs. Threads that are started before run() begin together; threads that
  // are started during the run begin at once. A thread that is started after all others have ended
  // is stopped together with the services.
  virtual std::shared_ptr<StartedThread> start(NodeId node, fabric::Port port, CompletionMode mode,
                                               Body body) = 0;
  // Starts a service: a thread whose body does not end by itself. It is stopped, and its tasks are
  // destroyed, when all threads started with start() have ended.
  virtual std::shared_ptr<StartedThread> start_service(NodeId node, fabric::Port port,
                                                       CompletionMode mode, Body body) = 0;

  // Runs until all threads started with start() have ended. Rethrows the first exception that a
  // thread's task did not catch.
  virtual void run() = 0;

  // A reusable barrier for `participants` threads of the whole cluster. All processes must create
  // their barriers in the same order.
  class Barrier {
   public:
    virtual ~Barrier() = default;
    virtual Task<> arrive_and_wait() = 0;
  };
  virtual std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) = 0;
};

}  // namespace perdura
