// This process's view of other nodes: whether they live, and their registered memory.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "platform/fabric/shm/job.h"
#include "platform/fabric/shm/layout.h"
#include "platform/host/os_thread.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/region.h"

namespace perdura::fabric::shm {

// One life of a node: if its process ends and another takes its place, that is another PeerNode.
class PeerNode {
 public:
  PeerNode(pmem::mapped::File file, std::shared_ptr<pmem::mapped::Mapping> segment)
      : file_(std::move(file)), segment_(std::move(segment)) {}

  NodeSegment& segment() const { return *reinterpret_cast<NodeSegment*>(segment_->data()); }
  std::uint64_t generation() const { return segment().generation.load(std::memory_order_relaxed); }
  // True if the watch's last check has found the peer dead.
  bool dead() const { return dead_.load(std::memory_order_acquire); }
  int file() const { return file_.get(); }

 private:
  friend class Watch;
  pmem::mapped::File file_;
  std::shared_ptr<pmem::mapped::Mapping> segment_;
  std::atomic<bool> dead_{false};
};

// Monitors the peers of all local nodes on a thread of its own, so that the data path needs no
// system call to find out which peers live.
class Watch {
 public:
  explicit Watch(Job& job, Milliseconds interval = Milliseconds(20))
      : job_(job), interval_(interval) {}
  ~Watch();

  // The present life of a node; null if it is not running.
  std::shared_ptr<PeerNode> find(NodeId node);

  // `on_death` is called on the watch's thread when any peer has died, until remove_listener(id).
  int add_listener(std::function<void()> on_death);
  void remove_listener(int id);

 private:
  void run();

  Job& job_;
  Milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  OsThread thread_;
  std::map<NodeId, std::weak_ptr<PeerNode>> current_;
  std::vector<std::weak_ptr<PeerNode>> all_;
  std::map<int, std::function<void()>> listeners_;
  int next_listener_ = 0;
};

// A range that a peer registered, mapped into this process; for a registration of extents, the
// whole region is mapped.
struct RemoteRange {
  std::uint32_t key = 0;
  const HalfWord* live_key = nullptr;  // differs from `key` once the range is revoked
  std::byte* base = nullptr;
  Bytes length = 0;         // the range's length; for extents, the region's
  Bytes region_offset = 0;  // where the range begins in its region, for accounting
  Access access = Access::local;
  pmem::Medium medium = pmem::Medium::dram;
  const Word* extents = nullptr;     // where their table is published; null: one range
  SharedAppends* appends = nullptr;  // null unless it is a registration of extents
  SharedDirty* dirty = nullptr;      // null unless it is one that peers may commit
  std::shared_ptr<pmem::mapped::Mapping> mapping;

  bool holds(Bytes offset, Bytes size) const { return offset <= length && size <= length - offset; }
};

// One local thread's cache of the registered memory of a peer.
class PeerMemory {
 public:
  explicit PeerMemory(std::shared_ptr<PeerNode> node) : node_(std::move(node)) {}

  // Null if the key is not (or no longer) valid. The pointer is valid until the next call.
  const RemoteRange* find(std::uint32_t key) {
    const std::uint32_t entry = region_entry(key);
    if (entry < known_.size()) [[likely]] {
      const RemoteRange& range = known_[entry];
      if (range.key == key && key != 0 && range.live_key->load(std::memory_order_seq_cst) == key)
          [[likely]] {
        return &range;
      }
    }
    return learn(key);
  }

  PeerNode& node() const { return *node_; }

 private:
  const RemoteRange* learn(std::uint32_t key);

  std::shared_ptr<PeerNode> node_;
  std::vector<RemoteRange> known_;
};

}  // namespace perdura::fabric::shm
