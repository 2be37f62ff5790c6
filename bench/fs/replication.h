// Runs a file system in a region of replicated memory without the file system knowing it ("Mojim",
// section 3.4.4: PMFS in a region of Mojim). The file system is given a Node that hands out the
// replicated region where the file system asks for one of its own. Ranges that the file system
// flushes there, or writes by non-temporal stores, are recorded instead of flushed, and become one
// sync point, all or nothing, before the operation returns.
//
//   file system ─ stores, flushes ─▶ recording region ── stores ─▶ replicated region
//                                          │ flushed ranges             ▲
//   operation ends ─────────────────▶ sync() ─ sync point of all of them ┘ ─▶ mirror
//
// So copies hold whole operations only. The fences of an operation have no effect on the primary:
// after a failure its memory holds what the replicated memory promises for stores that no sync
// point has named.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "services/fs/fs.h"
#include "services/memory/memory.h"

namespace perdura::bench {

class Replication {
 public:
  // `threads` threads use the file system on the first node of `config`.
  Replication(const services::MemorySystem& system, services::MemoryConfig config,
              std::uint32_t threads);
  ~Replication();
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  const services::MemoryConfig& config() const { return config_; }
  std::uint32_t workers() const { return system_.workers(config_); }  // number for each copy

  // Opens the copy on the thread's node. On every node but the primary, serve() must be called
  // next.
  void open(Thread& thread);
  // Receives synced ranges on a node with a copy. Does not return.
  Task<> serve(Thread& thread);
  // Maps the region for thread `index` of the primary; all copies must be serving. Returns the
  // thread to pass to the file system in place of `thread`; both must outlive the file system's
  // use.
  Task<Thread*> map(Thread& thread, std::uint32_t index);
  // Makes a sync point of all ranges that the file system has flushed in this thread since the last
  // one. Very large ones, such as at mount, become several.
  Task<fs::Result<void>> sync(std::uint32_t index);
  // Waits until every sync point of thread `index` has arrived at the copies.
  Task<> settle(std::uint32_t index);
  // Must be called by the thread after settle(), when nobody uses the file system anymore.
  void unmap(std::uint32_t index);
  // True if a copy has all sync points. The primary must be in the same process, and no sync point
  // under way.
  bool has_all(NodeId node) const;
  // The memory that readers on a node see.
  services::MemoryReplica& replica(NodeId node) { return *replicas_[index_of(node)]; }

 private:
  class NotingModel;
  class FileSystemNode;
  struct Mapping;

  std::size_t index_of(NodeId node) const;

  const services::MemorySystem& system_;
  services::MemoryConfig config_;
  std::vector<std::shared_ptr<services::MemoryReplica>> replicas_;  // by position of the node in
                                                                    // config_
  std::vector<std::unique_ptr<Mapping>> mappings_;                  // by thread
};

}  // namespace perdura::bench
