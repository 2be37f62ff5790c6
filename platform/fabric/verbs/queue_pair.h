// One end of a connection: a reliable-connected queue pair of the device.
//
// Operations are collected while tasks run and handed to the device together at the end of the
// executor's turn (VerbsEndpoint::poll). An operation that this side knows to be impossible (an
// unknown key, a wrong range, a missing right, a feature that the device lacks) fails here, in its
// place among the others, and breaks the connection as the peer's refusal would.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/traffic.h"
#include "platform/fabric/verbs/bring_up.h"
#include "platform/fabric/verbs/receive_queue.h"
#include "platform/fabric/verbs/send_queue.h"
#include "platform/fabric/verbs/send_request.h"
#include "platform/runtime/ring.h"

namespace perdura::fabric::verbs {

class VerbsQueuePair final : public QueuePair {
 public:
  VerbsQueuePair(VerbsEndpoint& endpoint, std::uint32_t id, const QueuePairOptions& options);
  ~VerbsQueuePair() override;

  void post_unsignaled(const WorkRequest& request) override;
  bool connected() const override { return connected_; }
  std::size_t in_line() const override { return waiting_.size(); }
  Address peer() const override { return peer_; }

  // --- called by the endpoint ------------------------------------------------------------------

  std::uint32_t id() const { return id_; }
  std::uint32_t number() const { return pair_->qp_num; }
  QueuePairAddress own_address() const { return bring_up_->address(); }
  // Connect to the peer's end, which the peer calls `peer_id`: accept() at the passive end,
  // connect() at the active end. Throw PlatformError; see bring_up.h.
  void accept(Address peer, std::uint64_t peer_id, const QueuePairAddress& theirs);
  Task<Status> connect(Address peer, std::uint64_t peer_id, QueuePairAddress theirs, Time deadline);
  // To be called when the peer can receive.
  void peer_is_ready();
  // To be called when the connection could not be established, or the peer is gone.
  void born_broken(Address peer);
  // To be called when the peer reports that it has ended the connection.
  void peer_has_ended();

  void start_waiting();
  void completed(const ibv_wc& completion);
  [[gnu::noinline]] void received(const ibv_wc& completion, ReceiveQueueState& queue,
                                  std::uint32_t slot);
  void key_found(std::uint32_t key, const std::optional<RemoteRange>& range);
  // Ends the connection from this side; the oldest operation under way ends with `oldest`.
  [[gnu::cold, gnu::noinline]] void break_off(Status oldest);
  // To be called when everything that arrived before the end has been handed out.
  [[gnu::cold, gnu::noinline]] void announce_end();
  // Gives up on outstanding requests: the device no longer completes anything.
  [[gnu::cold, gnu::noinline]] void give_up();

  bool noted = false;  // true if in the endpoint's list of those with something to start

 private:
  enum class Readiness : std::uint8_t { ready, not_yet, never };

  [[gnu::flatten]] void post(RdmaOperation& operation) override;
  void abandon(RdmaOperation& operation) override;

  void begin(Address peer, std::uint64_t peer_id);
  void submit(const WorkRequest& request, RdmaOperation* operation);
  Readiness examine(SendRequest& request, Status& failure);
  bool look_up(SendRequest& request);
  Status check(const SendRequest& request) const;
  [[gnu::cold, gnu::noinline]] bool wait_until_alone();
  bool replaces_persistent(const SendRequest& request) const;
  [[gnu::noinline]] void read_old_contents(const SendRequest& request);
  [[gnu::noinline]] void count_replacement(SendRequest& request);
  void hand_over(SendRequest* request, Posting posting);
  Posting posting_of(SendRequest& request) const;
  void ring();
  void finish(SendRequest* request, Status status);
  void settle(const ibv_wc& completion, std::uint32_t before);
  void count_completed(SendRequest& request);
  [[gnu::cold, gnu::noinline]] void report(const ibv_wc& completion, Opcode opcode,
                                           std::string_view words);

  VerbsEndpoint& endpoint_;
  const std::uint32_t id_;
  QueuePairOptions options_;
  std::uint32_t depth_;
  std::shared_ptr<ReceiveQueueState> receive_queue_;
  Handle<ibv_qp> pair_;
  SendQueue send_queue_;
  std::unique_ptr<BringUp> bring_up_;

  Address peer_{};
  std::uint64_t peer_id_ = 0;
  TrafficMeter::Counter* traffic_ = nullptr;  // set before the first operation
  bool opened_ = false;                       // the peer knows of this end
  bool connected_ = false;
  bool ready_ = false;  // the peer can receive
  bool ended_ = false;  // nothing is handed out anymore
  Status oldest_ = Status::flushed;

  Ring<SendRequest*> waiting_;
  Ring<SendRequest*> in_flight_;
  std::uint32_t next_number_ = 0;
  std::uint32_t overtaking_ = 0;  // those in flight that have overtaken others
  std::uint32_t unsignaled_ = 0;  // requests since the last signaled one
  bool counting_ = false;         // the READ of old contents is under way

  std::vector<std::byte> gathered_;  // a payload in several pieces, for accounting
  std::vector<std::byte> old_contents_;
  Handle<ibv_mr> old_contents_memory_;
};

}  // namespace perdura::fabric::verbs
