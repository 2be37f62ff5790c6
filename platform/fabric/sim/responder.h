// The responder of an end of a simulated connection: what the end's device does with the messages
// that the requester of the peer's end sends, and the completions that the end's queue pair
// receives.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/fabric/sim/network.h"
#include "platform/runtime/ring.h"

namespace perdura::fabric::sim {

class SimReceiveQueue final : public ReceiveQueue {
 public:
  explicit SimReceiveQueue(std::uint32_t depth) : depth_(depth) {}
  std::uint32_t depth() const override { return depth_; }
  void post(const LocalPieces& buffer, std::uint64_t buffer_id) override;

  struct Posted {
    LocalPieces buffer;
    std::uint64_t id;
  };
  bool empty() const { return posted_.empty(); }
  // The result is valid until the next post().
  const Posted& take() {
    const Posted& first = posted_.front();
    posted_.pop_front();
    return first;
  }

 private:
  std::uint32_t depth_;
  Ring<Posted> posted_;
};

class Responder {
 public:
  Responder(End& end, Network& network, Nic& nic, const QueuePairOptions& options);

  // The events of a message.
  void arrived(Flight& flight);
  void first_packet_read(Flight& flight);
  void executed(Flight& flight);

  // Sets the queue pair that completions name, and reports the completions that came before it was
  // made.
  void attach(QueuePair& queue_pair);
  // The requester has flushed its operations, so held messages may be flushed, too.
  void requester_has_flushed();
  // The connection has broken: no message is answered anymore.
  void stop();
  // Reports the end of the connection to the queue pair: after the last placement and the last
  // atomic, when nothing of the connection is under way anymore.
  void report_disconnected();
  // The queue pair is being destroyed: nothing is reported anymore.
  void close();

  // The event of a delivery.
  void delivered(Delivery& delivery);
  void report(ReceiveCompletion completion);

  bool ended() const { return phase_ >= Phase::ended; }
  // True if somebody takes receive completions.
  bool reports() const { return phase_ != Phase::closed && completions_ != nullptr; }
  QueuePair* queue_pair() const { return queue_pair_; }
  SimReceiveQueue* receive_queue() const { return receive_queue_; }
  Network& network() const { return network_; }
  // The time at which the device has finished all that it has begun.
  Time busy_until() const { return busy_until_; }

 private:
  enum class Phase : std::uint8_t {
    serves,
    requester_has_flushed,  // serves, but the requester awaits none of the messages that are held
    ended,                  // answers nothing; the requester gives up after its retries
    closed,                 // has no queue pair anymore
  };
  struct RetryTimer final : Event {
    explicit RetryTimer(Responder& its_responder) : responder(its_responder) {}
    Responder& responder;
    void fire() override { responder.retry_held(); }
  };

  bool process(Flight& flight);  // false: no receive buffer, or no memory for an APPEND
  bool process_append(Flight& flight, Time at);
  void retry_held_later();
  void retry_held();
  bool lacks_buffer_again();

  // Returns the time from which on an operation of this kind may take effect: not before the
  // earlier operations of other kinds that it must not overtake. The device executes operations of
  // the same kind in the order in which they arrive.
  template <WorkKind kKind>
  Time behind_earlier(Time at) const {
    static_assert(kKind == WorkKind::read || order_of(WorkKind::read, kKind) != Order::kept,
                  "no time is kept of a READ for other operations to wait for");
    const auto await = [&](WorkKind earlier, Time last) {
      if (earlier != kKind && order_of(earlier, kKind) == Order::kept) at = std::max(at, last);
    };
    await(WorkKind::posted, last_placement_);
    await(WorkKind::atomic, last_atomic_);
    await(WorkKind::flush, last_push_);
    return at;
  }
  void place(Flight& flight, const Targets& targets, Time at);
  std::int64_t write_targets(const Targets& targets, Bytes bytes, Time start, Time& end) const;
  void place_in_turn(const Flight& flight, const Targets& targets, Time next, Picoseconds per_line);
  void execute_read(Flight& flight, Time at);
  void execute_at(Flight& flight, Time at);
  void keep_busy(Flight& flight, Time until);

  // Commits (commit.cc).
  void accepted(Flight& flight, Time at);
  static void note_dirty(const Flight& flight, Bytes length, Time placed);
  void begin_commit(Flight& flight, Time at);
  void execute_commit(Flight& flight);
  static void observe_execution(const Flight& flight, const Target& target, Time at);

  void acknowledge(Flight& flight, Time at);
  Time send_response(Flight& flight, Bytes bytes, Time last_packet);
  void respond(Flight& flight);
  void refuse(Flight& flight, Status status, Time at);
  Delivery& deliver(const ReceiveCompletion& completion, Time at);

  // The members that a message without a receive buffer reads on every retry, which happens
  // thousands of times, are on the first cache line.
  RetryTimer retry_timer_{*this};
  Network& network_;
  Nic& nic_;
  SimReceiveQueue* receive_queue_;
  // Messages that have arrived while the first of them found no receive buffer. The timer runs
  // while this is not empty.
  FlightQueue<&Flight::next_held> held_;
  std::uint32_t rnr_retries_ = 0;
  bool waits_for_memory_ = false;  // the first of them is an APPEND
  Phase phase_ = Phase::serves;

  End& end_;
  CompletionQueue* completions_;
  QueuePair* reported_as_;           // instead of the queue pair; null: the queue pair itself
  QueuePair* queue_pair_ = nullptr;  // named in completions
  // Completions that were delivered before the connecting task had its queue pair, because the peer
  // was quick or died.
  std::vector<ReceiveCompletion> early_;
  Time last_delivery_{};

  Time last_placement_{};
  Time last_atomic_{};  // when the last atomic that has begun takes effect
  Time last_push_{};    // when the last FLUSH began to push
  Time busy_until_{};   // when the device has ended all that it has begun
  std::uint32_t placements_ = 0;
  Time last_answer_{};  // when the last answer began to leave
  Time last_answer_arrives_{};
};

}  // namespace perdura::fabric::sim
