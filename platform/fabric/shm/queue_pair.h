// One end of a connection on shared memory.
//
// The initiator's thread does everything that a NIC would do: it checks the key, the range and the
// right against the peer's directory and then reads or writes the peer's memory itself; no code
// runs at the target. An operation is normally finished before post() returns. Otherwise it passes
// through these states, in this order:
//
//   waiting     more than send_depth operations are under way, or a fence holds it back
//   arriving    on its way, if there is a network latency (a list of the endpoint)
//   stalled     a SEND or WRITE_WITH_IMM found no receive buffer; all later operations wait for it
//   completing  done, its completion is on its way back (a list of the endpoint)
#pragma once

#include <memory>

#include "platform/fabric/fabric.h"
#include "platform/fabric/shm/payload.h"
#include "platform/fabric/shm/peer.h"
#include "platform/fabric/shm/receive_queue.h"
#include "platform/fabric/shm/segment.h"
#include "platform/fabric/shm/send_entry.h"
#include "platform/fabric/traffic.h"

namespace perdura::fabric::shm {

class ShmEndpoint;

// One end's knowledge of the other end of its connection; without a segment if the peer has gone
// already.
struct RemoteEnd {
  Address address;
  std::uint32_t slot = 0;
  std::shared_ptr<PeerSegment> segment;
  std::shared_ptr<PeerMemory> memory;
};

class ShmQueuePair final : public QueuePair {
 public:
  ShmQueuePair(ShmEndpoint& endpoint, std::uint32_t slot, const QueuePairOptions& options,
               RemoteEnd remote);
  ~ShmQueuePair() override;

  void post_unsignaled(const WorkRequest& request) override;
  bool connected() const override { return connected_; }
  Address peer() const override { return remote_.address; }
  std::size_t in_line() const override { return waiting_.size(); }

  // --- called by the endpoint ------------------------------------------------------------------

  // Delivers the messages that have arrived.
  void drain();
  bool has_message() const {
    return in_[(in_next_ - 1) & in_mask_].sequence.load(std::memory_order_seq_cst) == in_next_;
  }
  // The peer may have closed the connection, or be dead.
  void check_peer();
  // An operation has crossed the network.
  void arrive(SendEntry* entry);
  // Tries the stalled operations again.
  void retry(Time now);
  Time retry_at() const { return retry_at_; }
  void complete(SendEntry* entry);

 private:
  class RegistrationLock;

  // The status receiver_not_ready means that the operation must be retried later.
  struct Outcome {
    Status status = Status::success;
    std::uint64_t old_value = 0;
  };

  void post(RdmaOperation& operation) override;
  void abandon(RdmaOperation& operation) override;

  SendEntry* make_entry(const WorkRequest& request, RdmaOperation* operation);
  void submit(SendEntry* entry);
  SendEntry* admit(SendEntry* entry);
  bool may_start(const WorkRequest& request) const;
  void start(SendEntry* entry);
  void start_waiting();
  void finish(SendEntry* entry, Outcome outcome);
  void stall(SendEntry* entry);

  Outcome execute(const WorkRequest& request, const Payload& payload);
  Outcome perform(const WorkRequest& request, const Payload& payload);
  Outcome read(const WorkRequest& request);
  Outcome write(const WorkRequest& request, const Payload& payload);
  Outcome atomic(const WorkRequest& request);
  Outcome flush(const WorkRequest& request);
  Outcome append(const WorkRequest& request, const Payload& payload);
  Outcome changed(const WorkRequest& request, Bytes length, Outcome outcome);
  Outcome commit(const WorkRequest& request);
  void ask_for_extents(SharedAppends& appends, Bytes end) const;
  Outcome deliver(const WorkRequest& request, const Payload& payload);
  const RemoteRange* resolve(RemoteAddress address, Bytes length, Access needed);
  bool holds_still(const RemoteRange& range) const;
  Payload payload_of(const WorkRequest& request);
  void place_pieces(const RemoteRange& range, const Payload& payload) const;
  void note_dirty(const RemoteRange& range, Bytes at, Bytes length) const;
  void persist_dirty(const RemoteRange& range);
  void prefetch_upcoming() const;
  Status place_message(const BufferClaims::Claim& claim, const Payload& payload);

  // Ends the connection from this side; the oldest operation under way ends with `oldest`.
  void break_off(Status oldest);
  void detach_from_peer();
  ConnectionSlot& remote_slot() const;

  ShmEndpoint& endpoint_;
  const std::uint32_t slot_;
  QueuePairOptions options_;
  RemoteEnd remote_;
  TrafficMeter::Counter& traffic_;
  bool connected_ = true;
  bool detached_ = false;

  // The parts of the peer's memory that the current operation touches, as offsets from the base of
  // their range. If the range consists of extents, they were found in the table that is published
  // as `table_`.
  std::span<const RegionPiece> touched_;
  RegionPiece whole_;
  std::vector<RegionPiece> pieces_;
  std::uint64_t table_ = 0;
  std::vector<std::byte> gathered_;  // a payload of several pieces, to be compared

  // Sending.
  std::uint32_t outstanding_ = 0;
  std::uint32_t non_posted_ = 0;  // READs, atomics and FLUSHes among them
  EntryList waiting_;
  EntryList stalled_;
  Time retry_at_{};
  int retries_ = 0;
  BufferClaims claims_;
  Message* out_ = nullptr;  // the peer's ring
  std::uint64_t out_mask_ = 0;
  std::uint64_t out_next_ = 1;
  bool out_is_watched_ = false;
  Word* peer_activity_ = nullptr;
  std::uint64_t peer_activity_bit_ = 0;
  Doorbell* peer_doorbell_ = nullptr;

  // Receiving.
  std::shared_ptr<ReceiveQueueState> receive_queue_;
  Message* in_ = nullptr;
  std::uint64_t in_mask_ = 0;
  std::uint64_t in_next_ = 1;
};

// The bytes of a local buffer; one outside its region ends the process, as an access to it would.
std::span<std::byte> checked_bytes(const LocalBuffer& buffer);

}  // namespace perdura::fabric::shm
