// The state that the application threads of a primary share: ids, the connections to the copies,
// and what has not been flushed (section 3.2.2).
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
#include "systems/mojim/local_copy.h"
#include "systems/mojim/mode.h"
#include "systems/mojim/sender.h"

namespace perdura::systems::mojim {

inline constexpr Bytes kPage = 4 * KiB;

class Primary {
 public:
  enum class Contents : std::uint8_t {
    fresh,   // just made, as are those of the copies
    own,     // the node's own, to be given to the copies
    loaded,  // to be loaded from a copy before anything is mapped
  };
  // `region` and the node's own copy must outlive this. The copy's state records whether the region
  // is complete: it is while its contents are nowhere else, that is, until the copies have been
  // given it, and when all of them are lost.
  Primary(Node& node, pmem::Region& region, LocalCopy& local, const Mode& mode,
          const services::MemoryConfig& config, const Parameters& parameters, Contents contents);

  pmem::Region& region() { return region_; }
  const Mode& mode() const { return mode_; }
  const Shape& shape() const { return shape_; }
  const Parameters& parameters() const { return parameters_; }
  const std::vector<NodeId>& copies() const { return copies_; }
  bool is_checked() const { return shape_.checked != 0; }
  // True if requests contain a copy of the region as of the sync point, instead of being gathered
  // from the region when they are sent: for checksums, and where the application goes on meanwhile.
  bool copies_data() const { return is_checked() || !mode_.waits; }

  // The connections to all copies that lead into the same log of each. One thread posts there, for
  // one sync point after the other, in turns.
  struct Channel {
    // Guards taking an id and a turn together, so that ids ascend in each log.
    SpinLock lock;
    std::uint64_t turns = 0;
    Ring<std::uint64_t> first_ids;  // the first ids of the turns that have not ended
    // Used by the thread that posts.
    std::uint64_t serving = 0;
    WaitList waiting;
    std::vector<std::unique_ptr<Sender>> senders;  // the sender to each copy; empty: not connected
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
  // Takes `count` ids in a row, and the turn in which their requests are sent.
  Turn take_turn(Channel& channel, std::uint32_t count);
  void end_turn(Channel& channel);
  std::uint64_t last_id() const { return next_id_.load(std::memory_order_relaxed) - 1; }
  // The channel of the application thread with this number.
  Channel& channel_of(std::uint32_t thread) { return *channels_[thread % channels_.size()]; }
  // True if application threads post their own requests; else a background thread does, which
  // several of them may share.
  bool posts_itself() const { return posts_itself_; }
  // Returns a number below MemoryConfig::threads for an application thread, which decides its
  // channel and is its own until give_back(). Waits a moment for one that is about to be given
  // back. Throws UsageError if none is.
  Task<std::uint32_t> take_number();
  void give_back(std::uint32_t number) { has_number_[number] = false; }

  // Connects a channel's senders, which belong to `thread`, unless it is connected; loads the
  // region first if that is necessary. Throws UsageError if another primary has replaced this one
  // or a copy does not fit, PlatformError if a copy does not answer or another primary uses it.
  Task<> connect(Thread& thread, Channel& channel, std::uint32_t number);

  // Reconnects after a connection has broken; another node may be the copy now.
  Task<std::optional<Refusal>> connect_again(Sender& sender);

  // --- lost copies and other primaries -----------------------------------------------------------

  bool is_lost(std::size_t copy) const { return lost_[copy].load(std::memory_order_relaxed); }
  bool has_lost(NodeId node) const;
  bool has_lost_any() const;
  bool has_lost_all() const;
  // True if all copies are lost, and what had been safe only there is durable here.
  bool is_alone() const { return keeps_own() && has_lost_all(); }
  // True if some copy is complete, as far as is known, and not lost. If none is, a primary that
  // fails later starts from its own region: what only copies had safe becomes durable here, then
  // keeps_own() becomes true, and sync points are flushed as long as it is.
  bool has_complete_copy() const;
  bool keeps_own() const { return keeps_own_.load(std::memory_order_relaxed); }
  Task<> wait_until_own();
  // Gives up a copy. If another one is complete, this is recorded durably before is_lost() becomes
  // true; else this node begins to keep its own region.
  Task<> note_lost(std::size_t copy);
  // True if another node has become the primary.
  bool is_replaced() const { return replaced_.load(std::memory_order_relaxed); }

  // begin_copying() returns true if a copy has to be given the whole region. The first caller does
  // that for all copies; others that map the region wait until it has called end_copying() with the
  // last id that it used.
  bool begin_copying();
  Task<> wait_for_copying();
  void end_copying(std::uint64_t last_id);

  // Notes that these ranges are safe only because a copy has them.
  void note_unflushed(std::span<const services::MemoryRange> ranges);

 private:
  Task<> connect_first(Sender& sender, std::size_t copy);
  Task<> note_completeness(const Sender& sender, std::size_t copy);
  Task<> keep_own();
  void flush_unflushed();
  Task<> load_once(Thread& thread, Sender& source);
  Task<> load_from(Thread& thread, Sender& source);
  std::uint64_t given_up() const;  // requires completeness_; a bit for each copy

  Node& node_;
  pmem::Region& region_;
  LocalCopy& local_;
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
  std::mutex completeness_;  // held while the region's completeness changes
  // Guarded by completeness_.
  std::vector<bool> giving_up_;  // by copy; true: it is about to be lost
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

// Returns the nodes of a configuration to which `node` sends sync points.
std::vector<NodeId> copies_behind(const Mode& mode, std::span<const NodeId> nodes, NodeId node);

}  // namespace perdura::systems::mojim
