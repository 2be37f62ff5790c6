// The fabric of one thread on an RDMA device.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/traffic.h"
#include "platform/fabric/verbs/control_plane.h"
#include "platform/fabric/verbs/device.h"
#include "platform/fabric/verbs/node_memory.h"
#include "platform/fabric/verbs/queue_pair.h"
#include "platform/fabric/verbs/receive_queue.h"
#include "platform/fabric/verbs/send_request.h"
#include "platform/host/thread_executor.h"

namespace perdura::fabric::verbs {

struct FabricOptions {
  // How often a sender that finds no receive buffer tries again (7: forever), and how often one
  // that gets no answer does, as in libibverbs. Attempts without an answer are 4.096 us * 2^timeout
  // apart.
  std::uint8_t rnr_retries = 7;
  std::uint8_t retries = 7;
  std::uint8_t timeout = 14;
  // How long connect() waits for the peer to appear and to answer.
  Picoseconds connection_timeout = std::chrono::seconds(10);
};

// The encoding of work request ids, which completions carry: a send request is named by its queue
// pair and its number there, a receive buffer by its queue and its slot.
inline constexpr std::uint64_t kReceiveId = std::uint64_t{1} << 63;
constexpr std::uint64_t send_id(std::uint32_t queue_pair, std::uint32_t number) {
  return std::uint64_t{queue_pair} << 32 | number;
}
constexpr std::uint64_t receive_id(std::uint32_t queue, std::uint32_t slot) {
  return kReceiveId | std::uint64_t{queue} << 32 | slot;
}

class VerbsEndpoint final : public Endpoint, public host::Poller {
 public:
  VerbsEndpoint(std::shared_ptr<Device> device, std::shared_ptr<NodeMemory> memory,
                TrafficMeter& traffic, ControlPlane& control, const FabricOptions& options,
                Address address, host::ThreadExecutor& executor);
  ~VerbsEndpoint() override;

  Address address() const override { return address_; }
  Capabilities capabilities() const override;
  MemoryRegion register_memory(pmem::Region& region, Bytes offset, Bytes length,
                               Access access) override;
  void deregister_memory(RemoteKey key) override { memory_->revoke(key); }
  // Not supported by devices: see Endpoint.
  ExtentMap register_extents(pmem::Region& region, std::span<const Extent> extents,
                             Access access) override;
  Task<> map_extent(const ExtentMap& map, Extent extent) override;
  Task<> unmap_extents(const ExtentMap& map, Bytes at, Bytes length) override;
  std::unique_ptr<ReceiveQueue> create_receive_queue(std::uint32_t depth) override;
  Task<Connection> connect(Address to, QueuePairOptions options,
                           std::vector<std::byte> private_data) override;
  Task<std::unique_ptr<ConnectionRequest>> next_connection() override;

  // The fast path is inlined into this function; rare cases are kept out of it.
  [[gnu::flatten]] bool poll() override;
  int arm() override;

  // --- for its queue pairs and receive queues ----------------------------------------------------

  const Device& device() const { return *device_; }
  const FabricOptions& options() const { return options_; }
  ibv_cq* completions() const { return completions_.get(); }
  RequestPool& pool() { return pool_; }
  Mailbox& mailbox() { return mailbox_; }
  TrafficMeter& traffic() { return traffic_; }

  // Makes room for completions; throws PlatformError if the device has no more.
  void reserve_completions(std::uint32_t count);
  void release_completions(std::uint32_t count) { reserved_ -= count; }
  void add(VerbsQueuePair& queue_pair, std::uint32_t depth);
  void remove(VerbsQueuePair& queue_pair, std::uint32_t depth);
  std::uint32_t add_receive_queue(ReceiveQueueState& queue);
  void remove_receive_queue(std::uint32_t index) { receive_queues_[index] = nullptr; }

  // Notes that a queue pair has work to start at the end of this turn.
  void note(VerbsQueuePair& queue_pair);
  // Schedules the announcement of a queue pair's end, after everything that has arrived.
  void ends(VerbsQueuePair& queue_pair);
  bool poll_completions();

  // The name of a queue pair of this endpoint in control messages. No other endpoint uses it, so
  // messages for an endpoint that was at this address before are recognized.
  std::uint64_t named(std::uint32_t queue_pair) const {
    return std::uint64_t{name_} << 32 | queue_pair;
  }
  // Sends a message to the peer's end of a connection, which the peer calls `peer_id`.
  // `queue_pair`: this side's end; 0: none.
  void tell(MessageKind kind, Address peer, std::uint32_t queue_pair, std::uint64_t peer_id);
  // The buffer's location as the device takes it; a buffer outside its region ends the process.
  ibv_sge locate(const LocalBuffer& buffer);
  // Null if this thread has not learned yet which range the key stands for.
  const RemoteRange* known_range(NodeId node, std::uint32_t key) const;
  [[gnu::cold, gnu::noinline]] void ask(Address peer, std::uint32_t queue_pair, std::uint32_t key);
  // Counts `length` bytes that the device has placed in local memory. `before` holds the bytes that
  // they replace, if contents are compared.
  static void count_placed(const LocalPieces& pieces, Bytes length,
                           std::span<const std::byte> before);
  static bool lands_in_persistent(const LocalPieces& pieces);
  static void copy_contents(const LocalPieces& pieces, std::vector<std::byte>& into);

 private:
  friend class VerbsConnectionRequest;
  struct Pending;

  [[gnu::cold, gnu::noinline]] void handle(Message message);
  void handle_lost(NodeId node);
  bool start_noted();
  VerbsQueuePair* find(std::uint32_t id) const;
  VerbsQueuePair* find_named(std::uint64_t name) const;
  std::uint32_t next_id();
  static std::uint64_t range_id(NodeId node, std::uint32_t key);

  std::shared_ptr<Device> device_;
  std::shared_ptr<NodeMemory> memory_;
  TrafficMeter& traffic_;
  ControlPlane& control_;
  FabricOptions options_;
  Address address_;
  host::ThreadExecutor& executor_;
  Mailbox mailbox_;

  Handle<ibv_comp_channel> channel_;
  std::uint32_t capacity_;
  std::uint32_t reserved_ = 0;
  Handle<ibv_cq> completions_;
  RequestPool pool_;

  const std::uint32_t name_;  // drawn at random
  std::uint32_t last_id_ = 0;
  std::unordered_map<std::uint32_t, VerbsQueuePair*> by_id_;
  std::unordered_map<std::uint32_t, VerbsQueuePair*> by_number_;
  std::vector<ReceiveQueueState*> receive_queues_;
  std::vector<VerbsQueuePair*> noted_;
  std::vector<VerbsQueuePair*> ending_;

  std::unordered_map<std::uint64_t, RemoteRange> ranges_;  // by node and key
  std::array<LocalKey, 8> local_keys_{};                   // the most recently used
  std::size_t next_local_key_ = 0;
  std::uint64_t local_version_ = 0;

  bool listening_ = false;
  std::deque<Message> requests_;
  WaitList acceptors_;
  std::map<std::uint64_t, Pending*> pending_;
};

}  // namespace perdura::fabric::verbs
