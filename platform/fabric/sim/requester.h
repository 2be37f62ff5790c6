// The requester of an end of a simulated connection: the operations that the end's queue pair
// posts, until they have completed or have been flushed. Its messages go to the responder of the
// peer's end.
#pragma once

#include <coroutine>
#include <memory>
#include <vector>

#include "platform/fabric/sim/network.h"

namespace perdura::fabric::sim {

class RelaxedPipe;

class Requester {
 public:
  Requester(End& end, Network& network, Nic& nic, std::uint32_t send_depth);
  ~Requester();
  // To be called once, when both ends are made.
  void join(Responder& responder, std::shared_ptr<pmem::sim::Journal> journal);

  void post(const WorkRequest& request, RdmaOperation* operation);
  // The number of operations that wait for those under way.
  std::size_t in_line() const { return waiting_.size(); }

  // The number of operations that may be under way.
  std::uint32_t send_depth() const { return send_depth_; }

  Responder& responder() const { return *responder_; }
  // Null unless durability is tracked.
  pmem::sim::Journal* journal() const { return journal_.get(); }
  // To be called only for flights that are observed.
  perdura::sim::RunObserver& observer() const { return *journal_->observer(); }

  // The responder calls these when it sends an answer: an acknowledgment, of which the last byte
  // arrives at `arrives`, or something else that completes the operation at `at`. The answer leaves
  // the responder at `sent`.
  void acknowledged(Flight& flight, Time sent, Time arrives);
  void complete_at(Flight& flight, Time sent, Time at);
  // Returns when an answer of so many bytes is in memory whose packets arrive at these times.
  Time take_answer(const Flight& flight, Bytes bytes, Time first_arrival, Time last_arrival);
  // The event at the time of complete_at().
  void answered(Flight& flight);

  // The connection has broken: completes all operations as flushed.
  void flush();
  // The queue pair is being destroyed: forgets all operations. Packets that have left arrive.
  void drop();
  // Cuts the messages that are on the wire, as the death of this end's process would.
  void cut_off();
  // The responder's process has died, and its device has finished what it had begun at `at`.
  void responder_died(Time at);

  // The operations in a relaxed simulation, and the same if any was posted, else null.
  RelaxedPipe& relaxed();
  RelaxedPipe* relaxed_if_any() const { return relaxed_.get(); }

 private:
  static std::coroutine_handle<> awaited_by(const Flight& flight);

  void observe(Flight& flight) const;
  void advance();
  void transmit(Flight& flight);
  Time leave(Flight& flight, Bytes bytes, Bytes on_wire);
  Time take_copy(Flight& flight, Bytes on_wire);
  Time delayed(Time departure, Picoseconds wire);
  void complete(Flight& flight);
  void cut_off(Flight& flight);
  void tell_completed(Flight& flight, Time sent);

  End& end_;
  Network& network_;
  Nic& nic_;
  Responder* responder_ = nullptr;  // until join()
  std::uint32_t send_depth_;

  FlightQueue<&Flight::next> waiting_;      // posted, not yet started
  FlightQueue<&Flight::next> outstanding_;  // started, not yet completed
  std::uint32_t outstanding_count_ = 0;
  std::uint32_t awaited_by_fence_ = 0;  // those of them that a fence waits for
  Time last_departure_{};
  Time last_request_arrives_{};
  Time last_delayed_{};  // when the last message that may have been delayed has left

  // The journal of the responder's node, and its number for this direction of the connection; null
  // unless durability is tracked.
  std::shared_ptr<pmem::sim::Journal> journal_;
  pmem::sim::Journal::ConnectionId connection_ = 0;
  std::vector<pmem::sim::Journal::Operation> unreported_;  // completed, but not awaited
  Time last_told_{};  // when the last operation that the journal knows of completed

  std::unique_ptr<RelaxedPipe> relaxed_;  // null until it posts in a relaxed simulation
};

}  // namespace perdura::fabric::sim
