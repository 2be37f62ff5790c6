// One end of a simulated reliable connection: the requester and the responder of a queue pair, and
// the state that the two have in common. An operation goes from the requester of one end to the
// responder of the other (flight.h).
#pragma once

#include "platform/fabric/sim/network.h"
#include "platform/fabric/sim/requester.h"
#include "platform/fabric/sim/responder.h"

namespace perdura::fabric::sim {

class alignas(kCacheLine) End {
 public:
  enum class State : std::uint8_t { connected, error, closed };

  End(Network& network, Nic& nic, SimThread& thread, Address address,
      const QueuePairOptions& options);

  // Both ends are made before they are joined.
  static void join(End& a, End& b);
  void attach(QueuePair& queue_pair) { responder_.attach(queue_pair); }

  Requester& requester() { return requester_; }
  const Requester& requester() const { return requester_; }
  Responder& responder() { return responder_; }
  // An end that is not joined yet has no peer.
  bool has_peer() const { return peer_ != nullptr; }
  End& peer() const { return *peer_; }

  State state() const { return state_; }
  bool connected() const { return state_ == State::connected; }
  // The connection breaks: an operation has failed, the peer is gone, or its message was refused.
  void enter_error();
  // The queue pair is being destroyed.
  void close();
  // The connection breaks for a reason outside the model.
  void break_off();

  Network& network() const { return network_; }
  Nic& nic() const { return nic_; }
  SimThread& thread() const { return thread_; }
  Address address() const { return address_; }

  // The link between the two nodes.
  const perdura::sim::LinkProfile& path() const { return path_; }
  // When a message starts to cross to the other end: its own link has it from `departure` on. The
  // receiver's link has it while it arrives, so it arrives at once if no other message does, and
  // else it waits before that link. Messages of a connection arrive in their order: no part of this
  // one arrives before `last_arrival`, the end of the one before it, which is moved on.
  Time enter_path(Time departure, Bytes on_wire, Time& last_arrival) {
    const Time arrival = peer_->nic_.link_in.take(
        network_.engine.now(), std::max(departure + path_.propagation, last_arrival),
        perdura::sim::transfer_time(on_wire, peer_->nic_.profile.link.bandwidth));
    last_arrival = arrival + perdura::sim::transfer_time(on_wire, path_.bandwidth);
    return arrival - path_.propagation;
  }
  void count_sent(Bytes on_wire) {
    nic_.traffic.sent += on_wire;
    peer_->nic_.traffic.received += on_wire;
  }

 private:
  // The end of the connection becomes known here after `delay`.
  void lose_connection(Picoseconds delay);

  Responder responder_;  // first, since its first members share a cache line
  Network& network_;
  Nic& nic_;
  SimThread& thread_;
  Address address_;
  End* peer_ = nullptr;
  perdura::sim::LinkProfile path_;
  State state_ = State::connected;
  Requester requester_;
};

}  // namespace perdura::fabric::sim
