// A file system in a region of replicated memory, of which it knows nothing ("Mojim",
// section 3.4.4: PMFS in a region of Mojim). Its node gives it that region where it asks for one of
// its own; what it flushes there, or stores around the caches, is noted instead of flushed, and
// becomes a sync point, whole or not at all, before the operation returns.
//
//   file system ─ stores, flushes ─▶ region that notes ─ stores ─▶ replicated region
//                                          │ flushed ranges             ▲
//   operation ends ─────────────────▶ sync() ─ sync point of all of them ┘ ─▶ mirror
//
// So copies have whole operations only. An operation's fences order nothing on the primary any
// more: what a failure leaves there is what the replicated memory promises of stores that no sync
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
  // `threads` use the file system on the node that is the first of `config`.
  Replication(const services::MemorySystem& system, services::MemoryConfig config,
              std::uint32_t threads);
  ~Replication();
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  const services::MemoryConfig& config() const { return config_; }
  std::uint32_t workers() const { return system_.workers(config_); }  // of each copy

  // Opens the copy of the thread's node: the primary, or what serve() then serves.
  void open(Thread& thread);
  // Of a copy: receives what is synced. Does not return.
  Task<> serve(Thread& thread);
  // Of a thread of the primary, `index` of them, when all copies serve. What the file system gets
  // instead of the thread, which both must outlive.
  Task<Thread*> map(Thread& thread, std::uint32_t index);
  // A sync point of all that the file system has flushed in this thread since the last one.
  Task<fs::Result<void>> sync(std::uint32_t index);
  // Waits until all has arrived.
  Task<> settle(std::uint32_t index);
  // To be called by the thread when it has settled and nobody uses the file system any more.
  void unmap(std::uint32_t index);
  // Whether a copy has all sync points; only where the primary is of the same process, and when
  // nothing is under way.
  bool has_all(NodeId node) const;
  // What reads of a node see.
  services::MemoryReplica& replica(NodeId node) { return *replicas_[place_of(node)]; }

 private:
  class NotingModel;
  class FileSystemNode;
  struct Mapping;

  std::size_t place_of(NodeId node) const;

  const services::MemorySystem& system_;
  services::MemoryConfig config_;
  std::vector<std::shared_ptr<services::MemoryReplica>> replicas_;  // by place among the nodes
  std::vector<std::unique_ptr<Mapping>> mappings_;                  // by thread
};

}  // namespace perdura::bench
