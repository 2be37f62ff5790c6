// The job directory, /dev/shm/perdura-<job>: how the processes of one host find each other.
//
// The first process creates the directory, the last one removes it. A node's file is locked for as
// long as its process lives; the kernel releases the lock when the process ends for any reason.
// Files of a killed process are removed by the process that takes its place or by the next job of
// the same name; those of a job with an automatic name, by the next job with any automatic name.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/fabric/shm/layout.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::fabric::shm {

class Job {
 public:
  // Joins the job as these nodes. An empty name stands for a new job of this process alone. Throws
  // UsageError if the name is not possible or the job has another number of nodes, NodeRuns if one
  // of the nodes is running already, and PlatformError if another process, stopped in the middle of
  // joining or of an operation, keeps this one from joining for `join_timeout`.
  Job(const std::string& name, NodeId node_count, std::span<const NodeId> local_nodes,
      Picoseconds join_timeout = std::chrono::seconds(60));
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const std::string& directory() const { return directory_; }
  Control& control() const { return *reinterpret_cast<Control*>(control_->data()); }
  std::shared_ptr<NodeSegment> node(NodeId local) const;
  // The number of runs of their threads that the other nodes have completed: a node that replaces a
  // dead one continues with that number.
  std::uint32_t runs_before() const { return runs_before_; }

  std::string node_path(NodeId node) const;
  std::string endpoint_path(Address address) const;

  // The doorbell of a new thread of a local node; throws PlatformError if there are too many.
  std::uint32_t allocate_doorbell(NodeId local);
  void release_doorbell(std::uint32_t index);
  // Rings all doorbells, for news that concern every thread of the job.
  void ring_all();
  Doorbell& doorbell(std::uint32_t index) const { return control().doorbells[index].bell; }

  // True while the process of that life is running; makes a system call.
  bool lives(std::uint64_t life) const;

 private:
  struct LocalNode {
    NodeId id;
    pmem::mapped::File lock;
    std::shared_ptr<pmem::mapped::Mapping> segment;
  };

  void found_or_join(NodeId node_count);
  void find_runs();
  void claim(NodeId node);
  void end();
  void leave();
  void declare_dead(NodeId node, std::uint64_t generation);
  void wait_for_change(const ConnectionSlot& slot) const;
  std::vector<std::string> files_of(NodeId node) const;

  std::string directory_;
  Picoseconds join_timeout_;
  std::chrono::steady_clock::time_point deadline_{};  // when joining gives up
  std::shared_ptr<pmem::mapped::Mapping> control_;
  std::vector<LocalNode> local_nodes_;
  std::uint32_t runs_before_ = 0;
};

// A generated name for a job that nobody rejoins once all of its processes have ended.
std::string automatic_name(const std::string& job);

// Removes the directories of automatically named jobs whose processes were all killed; the next such
// job does so as well.
void remove_abandoned_jobs();

// True while the process that locked the file of `fd` lives; `fd` is not the locking descriptor.
bool is_locked(int fd);

}  // namespace perdura::fabric::shm
