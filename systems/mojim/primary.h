// What the application threads of a primary share: ids, the connections to the copies, and what has
// not been flushed (section 3.2.2).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "platform/runtime/ring.h"
#include "platform/runtime/sync.h"
#include "systems/mojim/layout.h"
#include "systems/mojim/logs.h"
#include "systems/mojim/mode.h"
#include "systems/mojim/sender.h"

namespace perdura::systems::mojim {

inline constexpr Bytes kPage = 4 * KiB;

class Primary {
 public:
  enum class Contents : std::uint8_t {
    fresh,   // just made, as those of the copies
    own,     // what is to be copied
    loaded,  // to be loaded from a copy before anything is mapped
  };
  // `region` and the node's own `logs`, which say whether the region is complete, must outlive
  // this. It is as long as its contents are nowhere else: until the copies have been given it, and
  // when all of them are lost.
  Primary(Node& node, pmem::Region& region, Logs& logs, const Mode& mode,
          const services::MemoryConfig& config, const Parameters& parameters, Contents contents);

  pmem::Region& region() { return region_; }
  const Mode& mode() const { return mode_; }
  const Shape& shape() const { return shape_; }
  const Parameters& parameters() const { return parameters_; }
  const std::vector<NodeId>& copies() const { return copies_; }
  bool is_checked() const { return shape_.checked != 0; }
  // Whether what is sent is a copy of the region at the sync point, instead of being gathered from
  // the region when it is sent: for checksums, and where the application goes on meanwhile.
  bool copies_data() const { return is_checked() || !mode_.waits; }

  // A connection to the copies, with a log on each: used by one thread, in turns.
  struct Channel {
    // Whoever takes an id also takes a turn, so that ids ascend in each log.
    SpinLock lock;
    std::uint64_t turns = 0;
    Ring<std::uint64_t> first_ids;  // of the turns that have not ended
    // Of the thread that posts.
    std::uint64_t serving = 0;
    WaitList waiting;
    std::vector<std::unique_ptr<Sender>> senders;  // by copy; none: not connected
    std::unique_ptr<BackgroundThread> thread;      // null if an application's thread posts

    bool connecting = false;
    bool is_kept = false;  // a task of `thread` will disconnect

    // To be called on the thread that posts, before its endpoint is gone.
    void disconnect() { senders.clear(); }
  };
  struct Turn {
    std::uint64_t number = 0;
    std::uint64_t first_id = 0;
  };
  // For `count` requests.
  Turn take_turn(Channel& channel, std::uint32_t count);
  void end_turn(Channel& channel);
  std::uint64_t last_id() const { return next_id_.load(std::memory_order_relaxed) - 1; }
  // The channel of the application's thread of this number.
  Channel& channel_of(std::uint32_t thread) { return *channels_[thread % channels_.size()]; }
  // Whether an application's thread posts its own requests; else a background thread does, which
  // several may share.
  bool posts_itself() const { return posts_itself_; }
  // A number for a thread of the application, below MemoryConfig::threads, until it gives it back:
  // it decides which channel the thread has. Waits for one that is about to be given back. Throws
  // UsageError if none is.
  Task<std::uint32_t> take_number();
  void give_back(std::uint32_t number) { has_number_[number] = false; }

  // Connects a channel's senders, which belong to `thread`, unless it is connected. Throws
  // UsageError if another primary has replaced this one.
  Task<> connect(Thread& thread, Channel& channel, std::uint32_t number);

  // Connects again when the connection has broken; the copy may be another one now.
  Task<std::optional<Refusal>> connect_again(Sender& sender);

  // --- lost copies and other primaries -----------------------------------------------------------

  bool is_lost(std::size_t copy) const { return lost_[copy].load(std::memory_order_relaxed); }
  bool has_lost(NodeId node) const;
  bool has_lost_any() const;
  bool has_lost_all() const;
  // All are lost, and what had been safe only there is durable here.
  bool is_alone() const { return keeps_own() && has_lost_all(); }
  // Whether there is a copy that is complete, as far as is known, and not lost. If there is none,
  // the region is what this node begins with if it fails, too: what only copies had safe becomes
  // durable here, before keeps_own(), and sync points are flushed as long as that is so.
  bool has_complete_copy() const;
  bool keeps_own() const { return keeps_own_.load(std::memory_order_relaxed); }
  Task<> wait_until_own();
  // Before is_lost(), it is durable here that the copy has been given up.
  Task<> note_lost(std::size_t copy);
  // Another node has become the primary.
  bool is_replaced() const { return replaced_.load(std::memory_order_relaxed); }

  // Whether a copy has to be given all of the region, which the first to ask does for all copies.
  // Others that map the region wait until it has called end_copying() with the last id of it.
  bool begin_copying();
  Task<> wait_for_copying();
  void end_copying(std::uint64_t last_id);

  // These ranges are safe only because a copy has them.
  void note_unflushed(std::span<const services::MemoryRange> ranges);

 private:
  Task<> connect_first(Sender& sender, std::size_t copy);
  Task<> note_completeness(const Sender& sender, std::size_t copy);
  Task<> keep_own();
  void flush_unflushed();
  Task<> load_once(Thread& thread, Sender& source);
  Task<> load_from(Thread& thread, Sender& source);
  std::uint64_t given_up() const;  // with completeness_; a bit for each copy

  Node& node_;
  pmem::Region& region_;
  Logs& logs_;
  const Mode& mode_;
  Parameters parameters_;
  Shape shape_;
  std::vector<NodeId> copies_;
  std::size_t source_;  // the copy from which the region is loaded
  Acknowledgment acknowledgment_;
  std::uint64_t term_;
  bool posts_itself_;
  std::atomic<std::uint64_t> next_id_;
  std::vector<std::atomic<bool>> has_number_;  // threads
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::atomic<bool>> lost_;        // by copy
  std::vector<std::atomic<bool>> incomplete_;  // by copy
  std::atomic<bool> keeps_own_;
  std::mutex completeness_;  // of the region, while that changes
  // With completeness_.
  std::vector<bool> giving_up_;  // by copy; it will be lost
  bool begins_to_keep_own_ = false;
  std::atomic<bool> replaced_{false};
  enum class Loading : std::uint8_t { necessary, begun, done };
  std::atomic<Loading> loading_;
  enum class Copying : std::uint8_t { unnecessary, wanted, begun, ended };
  std::atomic<Copying> copying_{Copying::unnecessary};
  std::atomic<std::uint64_t> copied_until_{0};  // ids
  Contents contents_;
  // A bit for each page.
  std::vector<std::atomic<std::uint64_t>> unflushed_;
};

// Who gets what the primary sends, of the nodes of a configuration.
std::vector<NodeId> copies_behind(const Mode& mode, std::span<const NodeId> nodes, NodeId node);

}  // namespace perdura::systems::mojim
