// The platform on shared memory: the nodes are processes of one host (a process may be several
// nodes), time and concurrency are real, and the fabric is memory that the processes share.
//
// A process that ends, however it ends, breaks the connections of its nodes; another process may
// take a node's place afterwards and finds its persistent memory.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "platform/fabric/shm/endpoint.h"
#include "platform/fabric/shm/job.h"
#include "platform/fabric/shm/peer.h"
#include "platform/platform.h"
#include "platform/shm_node.h"

namespace perdura {

struct ShmOptions {
  // Processes with the same job name form a cluster. Empty: a cluster of this process alone.
  std::string job{};
  NodeId node_count = 1;
  // The nodes that this process is; empty: all of them.
  std::vector<NodeId> local_nodes{};
  // Where the files of persistent memory are: a DAX file system for the real thing. Empty: a place
  // in /dev/shm that goes away with the last process of the job.
  std::string pm_directory{};
  // By node; where there is none for it: anywhere.
  std::vector<Placement> placements{};
  // Time that each flushed line costs in addition; for the whole process.
  Nanoseconds write_latency{0};
  pmem::WriteMeter::Level accounting = pmem::WriteMeter::Level::compared;
  // Emulated network and retries.
  fabric::shm::FabricOptions fabric{};
};

class ShmPlatform final : public Platform {
 public:
  // Throws UsageError or PlatformError.
  explicit ShmPlatform(ShmOptions options);
  ~ShmPlatform() override;

  std::string_view name() const override { return "shm"; }
  bool modelled() const override { return false; }
  NodeId node_count() const override { return options_.node_count; }
  Node* local_node(NodeId id) override;

  void start(NodeId node, fabric::Port port, CompletionMode mode, Body body) override;
  void start_service(NodeId node, fabric::Port port, CompletionMode mode, Body body) override;

  // Returns when the threads started on all nodes of the job have ended; a node whose process died
  // counts as ended, one that has not joined the job yet does not. May be called again, with new
  // threads, as often in every process. If a task throws, the threads of this process are stopped
  // and barriers that other processes wait at throw PlatformError there.
  void run() override;

  std::unique_ptr<Barrier> create_barrier(std::uint32_t participants) override;

  // The job directory; tests look into it.
  const std::string& job_directory() const { return job_.directory(); }

 private:
  struct PlannedThread {
    ShmNode* node;
    fabric::Port port;
    CompletionMode mode;
    Body body;
    bool service;
    std::vector<unsigned> cores;  // to be pinned to; empty: anywhere
  };

  void plan(NodeId node, fabric::Port port, CompletionMode mode, Body body, bool service);
  std::vector<unsigned> cores_for_next_thread(NodeId node) const;
  void run_thread(const PlannedThread& planned);
  Task<> run_body(const PlannedThread& planned, Thread& thread);
  void thread_ended();
  void fail(std::exception_ptr error);
  void stop_threads();
  void await_all_nodes();

  ShmOptions options_;
  std::vector<NodeId> local_ids_;
  fabric::shm::Job job_;
  fabric::shm::Watch watch_;
  std::uint32_t runs_;
  std::vector<std::unique_ptr<ShmNode>> nodes_;
  std::uint32_t next_barrier_ = 0;

  std::deque<PlannedThread> planned_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t unfinished_ = 0;  // started threads whose body has not ended
  std::size_t not_ready_ = 0;   // threads that have not got an endpoint yet
  std::vector<runtime::ThreadExecutor*> executors_;
  std::exception_ptr error_;
  bool stopping_ = false;
};

}  // namespace perdura
