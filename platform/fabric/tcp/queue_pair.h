// One end of a connection over TCP.
//
// An operation is in one of these states, in this order:
//
//   waiting      too many operations or bytes are under way, or a fence holds it back
//   outstanding  its frame is in line to be sent, or sent; completes with the peer's frame
//
// Requests are carried out in the order in which they were sent. A SEND that finds no receive
// buffer is held, with all later requests, until one is posted, and an APPEND that finds no memory
// until the extents change; meanwhile this end still receives the answers to its own requests. The
// amount of data held is limited by the peer, which has at most kWindow bytes, or one message,
// unacknowledged.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/tcp/frame.h"
#include "platform/fabric/tcp/receive_queue.h"
#include "platform/fabric/tcp/registration.h"
#include "platform/fabric/tcp/sockets.h"
#include "platform/fabric/traffic.h"
#include "platform/runtime/ring.h"

namespace perdura::fabric::tcp {

class TcpEndpoint;
class TcpQueuePair;

// An operation that has been posted and not completed.
struct SendEntry {
  TcpQueuePair* queue_pair = nullptr;
  RdmaOperation* operation = nullptr;  // null if unsignaled or abandoned
  bool abandoned = false;              // its buffer no longer exists
  bool owns_data = false;              // inlined: the payload is here
  WorkRequest request;
  Status status = Status::success;
  std::array<std::byte, kMaxInline> data;
};

class SendEntryPool {
 public:
  SendEntry* take() {
    if (free_.empty()) return entries_.emplace_back(std::make_unique<SendEntry>()).get();
    SendEntry* const entry = free_.back();
    free_.pop_back();
    return entry;
  }
  void give_back(SendEntry* entry) { free_.push_back(entry); }

 private:
  std::vector<std::unique_ptr<SendEntry>> entries_;
  std::vector<SendEntry*> free_;
};

class TcpQueuePair final : public QueuePair, public Watcher {
 public:
  TcpQueuePair(TcpEndpoint& endpoint, File socket, Address peer, const QueuePairOptions& options);
  ~TcpQueuePair() override;

  void post_unsignaled(const WorkRequest& request) override;
  bool connected() const override { return connected_; }
  std::size_t in_line() const override { return waiting_.size(); }
  Address peer() const override { return peer_; }

  // --- called by the endpoint ------------------------------------------------------------------

  void ready(std::uint32_t events) override;
  // Sends as much of what is in line as the socket takes.
  void transmit();
  // True if a request that was held can be carried out now.
  bool can_resume() const;
  void resume();
  // Completes an operation that failed before it was sent.
  void finish(SendEntry* entry, Status status, std::uint64_t old_value = 0);

 private:
  friend class TcpEndpoint;

  // A frame in line to be sent, and the source of its payload: the operation's buffers for a
  // request, registered memory for an answer.
  struct Outgoing {
    Frame frame;
    SendEntry* entry = nullptr;
    LocalPieces pieces{};
    std::shared_ptr<Registration> memory{};
    Bytes at = 0;  // where the data of a READ through extents begins in the registration

    bool through_extents() const { return memory != nullptr && memory->extents; }
  };
  // A frame whose payload is arriving, and the destination of the payload.
  struct Arrival {
    enum class Sink : std::uint8_t { nowhere, memory, extents, buffer, operation, held };
    Frame frame;
    Sink sink = Sink::nowhere;
    LocalPieces pieces{};
    std::shared_ptr<Registration> memory{};
    std::uint64_t buffer_id = 0;
    Bytes position = 0;
    std::vector<std::byte> begun{};  // for extents: what has arrived of a long payload
    Bytes placed_at = 0;             // where the data of an APPEND begins
  };
  // A request that waits for a receive buffer or for memory, or for an earlier one that does.
  struct Held {
    Frame frame;
    std::vector<std::byte> payload{};
    bool whole = false;
    // The registration in which an APPEND found no memory, and its count of changes at that time.
    std::shared_ptr<Registration> lacking{};
    std::uint64_t changes = 0;
  };

  void post(RdmaOperation& operation) override;
  void abandon(RdmaOperation& operation) override;

  SendEntry* make_entry(const WorkRequest& request, RdmaOperation* operation);
  void submit(SendEntry* entry);
  static Status error_of(const WorkRequest& request);
  bool may_start(const WorkRequest& request) const;
  void start(SendEntry* entry);
  void start_waiting();
  void complete_oldest(Status status, std::uint64_t old_value = 0);
  void no_longer_under_way(const SendEntry& entry);

  void put_in_line(Outgoing outgoing);
  void fill();
  bool append_payload(const Outgoing& outgoing, std::size_t length);
  bool add_answer(const Outgoing& answer);
  std::optional<std::vector<std::byte>> unsent();
  void want(std::uint32_t events);

  void make_room();
  void parse();
  bool begin_frame();
  bool begin_request(Arrival& arrival);
  void place(Arrival& arrival, std::span<const std::byte> bytes);
  std::size_t next_part(const Arrival& arrival) const;
  void take_for_extents(Arrival& arrival, std::span<const std::byte> bytes);
  bool place_whole(Arrival& arrival, std::span<const std::byte> data);
  void end_frame();
  void end_request(const Arrival& arrival);
  void hold();
  static void wait_for_memory(Held& held, std::shared_ptr<Registration> memory);
  void refuse(Status status);

  // Ends the connection from this side; the oldest operation under way ends with `oldest`. Frames
  // in line for the peer are still sent, unless the peer is gone.
  enum class Peer : std::uint8_t { there, gone };
  void break_off(Status oldest, Peer peer);

  TcpEndpoint& endpoint_;
  File socket_;
  const Address peer_;
  QueuePairOptions options_;
  TrafficMeter::Counter& traffic_;
  bool connected_ = true;

  // Requests of this end.
  Ring<SendEntry*> waiting_;
  Ring<SendEntry*> outstanding_;  // the oldest first
  std::uint32_t reads_ = 0;       // READs among them
  Bytes in_flight_ = 0;           // payload of the others among them

  // Sending.
  Ring<Outgoing> line_;
  bool begun_ = false;          // the frame of the first in line has been put into `out_`
  Bytes position_ = 0;          // bytes of its payload that have been put there, too
  std::vector<std::byte> out_;  // bytes to be written to the socket
  std::size_t out_sent_ = 0;    // how many of them have been written
  std::uint32_t wanted_ = 0;    // events that the socket is watched for
  bool to_transmit_ = false;    // true if on the endpoint's list

  // Receiving.
  std::shared_ptr<TcpReceiveQueue::Posted> receive_queue_;
  std::vector<std::byte> in_;  // bytes from in_begin_ to in_end_ have arrived
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  bool in_frame_ = false;
  Arrival arriving_;
  std::deque<Held> held_;

  std::vector<RegionPiece> found_;  // the pieces of an access through extents
};

}  // namespace perdura::fabric::tcp
