// A platform is what systems and the harness stand on: nodes with memory, and threads on nodes,
// each with an executor and an endpoint of the fabric. `sim` holds all nodes of a cluster in one
// process; on `shm` and `verbs` a process is one node.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "platform/fabric/fabric.h"
#include "platform/pmem/pages.h"
#include "platform/pmem/region.h"
#include "platform/runtime/executor.h"

namespace perdura {

using fabric::NodeId;

// How a thread learns of completions: it polls and keeps its core busy, or it sleeps until an
// interrupt wakes it up.
enum class CompletionMode : std::uint8_t { polling, event };

struct Thread;

// A thread of a node for work that a system does in the background, beside the thread that serves.
// It sleeps while it has nothing to do. Destroying it waits until the step that it is in has ended,
// and destroys what is left of its tasks, and its endpoint, if it has one.
class BackgroundThread {
 public:
  virtual ~BackgroundThread() = default;
  // Runs a task there; awaiting it takes until that has ended, and rethrows what it threw, or
  // throws std::future_error (broken_promise) if the background thread ends before. Several tasks
  // take turns. Both threads may use what is protected by a lock (runtime/sync.h).
  virtual Task<> run(Task<> work) = 0;
  // With its endpoint, for its own tasks. Throws UsageError if it was started without a port.
  virtual Thread& thread() = 0;
};

// A part of a node's memory: for probes of it.
struct MemoryPlace {
  bool remote = false;    // of the other NUMA node than its threads'
  bool one_dimm = false;  // not interleaved
  pmem::Pages pages = pmem::Pages::any;
  bool operator==(const MemoryPlace&) const = default;
};

// One machine of the cluster.
class Node {
 public:
  virtual ~Node() = default;
  virtual NodeId id() const = 0;

  // A new region of zeros. A PM region has a name under which it outlives the node's process; a
  // name that exists already, or a medium that is full, throws UsageError.
  virtual std::unique_ptr<pmem::Region> create_region(std::string_view name, Bytes size,
                                                      pmem::Medium medium) = 0;
  // The same in a place of its memory that the caller chooses. Throws UsageError where the platform
  // cannot.
  virtual std::unique_ptr<pmem::Region> create_region_at(MemoryPlace place, std::string_view name,
                                                         Bytes size, pmem::Medium medium);
  // A PM region that was created before; null if there is none.
  virtual std::unique_ptr<pmem::Region> open_region(std::string_view name) = 0;
  virtual void remove_region(std::string_view name) = 0;

  // With a port it has an endpoint, can be connected to at {id(), port}, and is there when this
  // returns.
  virtual std::unique_ptr<BackgroundThread> start_background_thread(
      std::optional<fabric::Port> port = std::nullopt) = 0;

  // CPU time that the node's threads have used so far.
  virtual Picoseconds cpu_time() const = 0;
  // Persistent-memory writes caused so far by the node's threads, and by one-sided operations that
  // its device performed. The sum over all nodes is what all persistent memory took.
  virtual pmem::Writes pm_writes() const = 0;
};

struct Thread {
  Node& node;
  Executor& executor;
  fabric::Endpoint& endpoint;
};

// A thread that a platform was told to start. Dropping this does nothing to the thread.
class StartedThread {
 public:
  virtual ~StartedThread() = default;
  // Ends the thread wherever it is: when this returns, its tasks are destroyed, as those of a
  // service are at the end of a run, its endpoint is gone, and its port is free. run() waits for it
  // no longer. Waits until the step that the thread is in has ended, so two threads must not stop
  // each other; one that stops itself gets a UsageError. Does nothing once the thread or the run
  // has ended. From any thread of this process, while the platform exists.
  virtual void stop() = 0;
};

class Platform {
 public:
  virtual ~Platform() = default;
  virtual std::string_view name() const = 0;
  // True if times come from a model.
  virtual bool modelled() const = 0;

  virtual NodeId node_count() const = 0;
  // The node if it lives in this process, else null.
  virtual Node* local_node(NodeId id) = 0;

  using Body = std::function<Task<>(Thread&)>;
  // Starts a thread on a local node; it can be connected to at {node, port}. `body` is kept for as
  // long as the thread runs. Threads that are started before run() begin together; those that
  // threads of the run start, at once. Whoever is started when all others have ended is stopped
  // with the services.
  virtual std::shared_ptr<StartedThread> start(NodeId node, fabric::Port port, CompletionMode mode,
                                               Body body) = 0;
  // A thread whose body does not end by itself: it is stopped, and its tasks destroyed, when all
  // threads started with start() have ended.
  virtual std::shared_ptr<StartedThread> start_service(NodeId node, fabric::Port port,
                                                       CompletionMode mode, Body body) = 0;

  // Runs until all started threads have ended. Rethrows the first exception that left one.
  virtual void run() = 0;

  // A meeting point of `participants` threads of the whole cluster; reusable. All processes create
  // their barriers in the same order.
  class Barrier {
   public:
    virtual ~Barrier() = default;
    virtual Task<> arrive_and_wait() = 0;
  };
  virtual std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) = 0;
};

}  // namespace perdura
