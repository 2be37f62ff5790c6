// The fabric of one thread on shared memory.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/shm/job.h"
#include "platform/fabric/shm/node_memory.h"
#include "platform/fabric/shm/peer.h"
#include "platform/fabric/shm/queue_pair.h"
#include "platform/fabric/shm/receive_queue.h"
#include "platform/fabric/shm/segment.h"
#include "platform/fabric/shm/send_entry.h"
#include "platform/fabric/traffic.h"
#include "platform/host/thread_executor.h"

namespace perdura::fabric::shm {

struct FabricOptions {
  // One-way latency: an operation takes effect this long after it was posted and completes the same
  // time later. Zero adds no delay to the time of the copy.
  Picoseconds network_latency{0};
  // How long a sender waits before it looks for a receive buffer again, and how many times it
  // retries (7: without limit), as in libibverbs.
  Picoseconds rnr_timer = Microseconds(100);
  int rnr_retries = 7;
  // How long connect() waits for the peer to appear and to answer.
  Picoseconds connection_timeout = std::chrono::seconds(10);
};
inline constexpr int kRetryForever = 7;

class ShmEndpoint final : public Endpoint, public host::Poller {
 public:
  ShmEndpoint(Job& job, NodeMemory& memory, TrafficMeter& traffic, Watch& watch,
              const FabricOptions& options, Address address, std::uint32_t doorbell,
              host::ThreadExecutor& executor);
  ~ShmEndpoint() override;

  Address address() const override { return address_; }
  Capabilities capabilities() const override;
  MemoryRegion register_memory(pmem::Region& region, Bytes offset, Bytes length,
                               Access access) override;
  void deregister_memory(RemoteKey key) override;
  ExtentMap register_extents(pmem::Region& region, std::span<const Extent> extents,
                             Access access) override;
  Task<> map_extent(const ExtentMap& map, Extent extent) override;
  Task<> unmap_extents(const ExtentMap& map, Bytes at, Bytes length) override;
  void allow_appends(const ExtentMap& map, Bytes size, RangeFaults& faults) override;
  std::unique_ptr<ReceiveQueue> create_receive_queue(std::uint32_t depth) override;
  Task<Connection> connect(Address to, QueuePairOptions options,
                           std::vector<std::byte> private_data) override;
  Task<std::unique_ptr<ConnectionRequest>> next_connection() override;

  bool poll() override;
  Time due() const override;

 private:
  friend class ShmQueuePair;
  friend class ShmConnectionRequest;
  class PendingSlot;

  // The process-local part of a connection slot.
  struct LocalSlot {
    enum class Use : std::uint8_t { free, connecting, connected, leaving };
    Use use = Use::free;
    ShmQueuePair* queue_pair = nullptr;
    std::shared_ptr<ReceiveQueueState> receive_queue;
    std::shared_ptr<PeerNode> peer;
    std::uint64_t ring_slots = 0;
    bool ring_is_watched = false;
  };

  struct Request {
    Address from;
    std::uint64_t generation = 0;
    std::uint32_t slot = 0;
    std::vector<std::byte> private_data;
  };

  std::shared_ptr<PeerNode> reach(Address to, std::shared_ptr<PeerSegment>& segment);
  bool post_mail(EndpointSegment& peer, std::uint32_t slot,
                 const std::vector<std::byte>& private_data);
  void collect_mail();
  void reject(const Request& request, std::span<const std::byte> private_data);
  std::uint32_t open_slot(const QueuePairOptions& options, std::shared_ptr<PeerNode> peer,
                          SlotState state);
  void leave_slot(std::uint32_t slot);
  bool free_if_left(std::uint32_t slot);
  std::shared_ptr<PeerMemory> memory_of(const std::shared_ptr<PeerNode>& node);
  void notify(EndpointSegment& peer) const;
  Task<> operations_end();

  bool deliver_messages();
  bool report_range_faults();
  void attend();
  bool advance_entries();
  // Returns true a limited number of times between two polls, so that a task that never has to wait
  // does not starve the others.
  bool may_complete_at_once() { return completions_at_once_ != 0 && completions_at_once_-- != 0; }

  Job& job_;
  NodeMemory& memory_;
  TrafficMeter& traffic_;
  Watch& watch_;
  FabricOptions options_;
  Address address_;
  host::ThreadExecutor& executor_;
  OwnSegment segment_;
  const std::uint64_t life_;  // the life of this thread's node
  int listener_;

  std::vector<LocalSlot> slots_;
  std::uint32_t watched_rings_ = 0;
  std::vector<ShmQueuePair*> watched_;                              // queue pairs with such a ring
  std::map<std::uint64_t, std::weak_ptr<PeerMemory>> peer_memory_;  // by generation
  std::deque<Request> requests_;
  WaitList acceptors_;

  // The registrations of this thread to which peers may append.
  struct Appendable {
    RemoteKey key;
    RangeFaults* faults = nullptr;
    Bytes reported = 0;
  };
  std::vector<Appendable> appendables_;

  EntryPool pool_;
  EntryList arriving_;
  EntryList completing_;
  std::vector<ShmQueuePair*> stalled_;
  int completions_at_once_ = 0;
};

}  // namespace perdura::fabric::shm
