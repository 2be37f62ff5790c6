// The sending end of a connection: SENDs requests into a log of a following node. The primary has
// one for each connection and copy, a mirror one for each of its logs and each backup.
//
// Belongs to the thread that made it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "platform/platform.h"
#include "platform/runtime/ring.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "systems/mojim/messages.h"

namespace perdura::systems::mojim {

class Sender {
 public:
  // Sends to the log `log` of the node `to`, over an endpoint of the thread. What is sent is
  // acknowledged as `acknowledgment` says. `is_lost`: somebody has given up this node, which may
  // then wait forever for what another log does not get. It must outlive this. While something is
  // waited for that the node's processor has to do, the connection ends if no heartbeat is seen for
  // `timeout`.
  Sender(Thread& thread, fabric::Endpoint& endpoint, NodeId to, std::uint32_t log,
         const Shape& shape, Acknowledgment acknowledgment, const std::atomic<bool>& is_lost,
         Picoseconds timeout);
  ~Sender();
  // Says, before connect(), that nobody waits for what will be sent (Hello::in_background).
  void send_in_background() { in_background_ = true; }

  // Connects, or connects again (Hello). Refusal::Reason::none if that succeeded; nothing if nobody
  // answers: for `timeout`, or, if that is zero, as long as the platform usually waits.
  Task<std::optional<Refusal>> connect(std::uint64_t from, Hello::Contents contents,
                                       Picoseconds timeout = {});
  bool connected() const { return queue_pair_ && !given_up_ && queue_pair_->connected(); }
  // After connect(): the id up to which the log needs no requests.
  std::uint64_t last_id() const { return welcome_.last_id; }
  // After connect(): everything up to this id is applied there, from all logs.
  std::uint64_t applied() const { return welcome_.applied; }
  // After connect(): true if the region has to be given to the node.
  bool is_incomplete() const { return welcome_.incomplete != 0; }
  void disconnect();
  NodeId to() const { return to_; }
  // 0 before the first connect().
  std::uint64_t term() const { return term_; }

  // Posts requests that are not the last ones of a sync point. Waits while the log is full. False
  // if the connection broke, or the node is lost. Their memory must not change until finish() has
  // returned.
  Task<bool> post(std::span<const fabric::LocalPieces> requests);
  // Posts the last one of these requests, which has this id, and waits until it has arrived, or, if
  // it ends the sync point, until that is acknowledged. False as above.
  Task<bool> finish(const fabric::LocalPieces& request, std::uint64_t id, bool ends);
  // Waits until this id is acknowledged, as for a sync point that had arrived before the connection
  // was made.
  Task<bool> wait_for(std::uint64_t id);

  // Reads a range of the node's data area into registered memory.
  Task<bool> read_data(Bytes offset, fabric::LocalBuffer into);

  // After connect() with Contents::written: write_data() WRITEs a data area, which may change
  // meanwhile, to that of the node; end_data() says that it is complete once this id is applied
  // there.
  Task<bool> write_data(const fabric::MemoryRegion& data, Bytes size);
  Task<bool> end_data(std::uint64_t complete_from);

  // How often it has had to wait because the log was full.
  std::uint64_t stalls() const { return stalls_; }

 private:
  static constexpr std::uint32_t kWindow = 32;  // acknowledgments under way

  bool has_room() const { return position_ < welcome_.free_until; }
  Task<bool> wait_for_room();
  Task<bool> read_control();
  static Task<> watch(std::shared_ptr<Sender*> watched, Picoseconds timeout);
  void give_up_waiting();
  void take(const fabric::ReceiveCompletion& completion);

  fabric::Endpoint& endpoint_;
  NodeId to_;
  std::uint32_t log_;
  Shape shape_;
  Acknowledgment acknowledgment_;
  const std::atomic<bool>& is_lost_;
  Picoseconds timeout_;
  // Words to READ into and to WRITE from, then buffers for acknowledgments.
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  rpc::ReceiveBuffers buffers_;
  fabric::CompletionQueue completions_;
  std::optional<rpc::Calls<Acknowledged>> calls_;
  struct Awaited {
    std::uint64_t id = 0;
    rpc::Call call = 0;
  };
  Ring<Awaited> awaited_;  // acknowledgments, by ascending ids
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  std::optional<fabric::RdmaOperation> look_;  // the last READ of the heartbeat
  Welcome welcome_;
  std::uint64_t term_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t stalls_ = 0;
  std::uint32_t waiting_ = 0;  // tasks that wait for the node's processor
  bool in_background_ = false;
  bool given_up_ = false;             // the connection: no heartbeat was seen
  std::shared_ptr<Sender*> watched_;  // shared with watch(); holds null when this is gone
};

}  // namespace perdura::systems::mojim
