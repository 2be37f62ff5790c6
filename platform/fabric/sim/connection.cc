#include "platform/fabric/sim/connection.h"

#include "platform/fabric/sim/packets.h"
#include "platform/fabric/sim/relaxed_pipe.h"

namespace perdura::fabric::sim {

void Flight::fire() {
  switch (stage) {
    case Stage::arrives:
      return from->responder().arrived(*this);
    case Stage::responds:
      return from->responder().first_packet_read(*this);
    case Stage::executes:
      return from->responder().executed(*this);
    case Stage::answered:
      return from->answered(*this);
    case Stage::completes:
      return;  // nothing is scheduled
  }
}

End::End(Network& network, Nic& nic, SimThread& thread, Address address,
         const QueuePairOptions& options)
    : responder_(*this, network, nic, options),
      network_(network),
      nic_(nic),
      thread_(thread),
      address_(address),
      requester_(*this, network, nic, options.send_depth) {}

void End::join(End& a, End& b) {
  a.peer_ = &b;
  b.peer_ = &a;
  for (End* end : {&a, &b}) {
    end->path_ = path_between(a.nic_.profile.link, b.nic_.profile.link);
    end->requester_.join(end->peer_->responder_, end->peer_->nic_.journal);
  }
}

void End::enter_error() {
  if (state_ != State::connected) return;
  state_ = State::error;
  responder_.stop();
  requester_.flush();
  peer_->responder_.requester_has_flushed();
  if (network_.engine.relaxed()) [[unlikely]] {
    requester_.relaxed().flush();
    peer_->requester_.relaxed().finish();
  }
  responder_.report_disconnected();
}

void End::close() {
  if (state_ == State::closed) return;
  const bool was_connected = state_ == State::connected;
  state_ = State::closed;
  requester_.drop();
  peer_->responder_.requester_has_flushed();
  responder_.close();
  if (was_connected) peer_->lose_connection(path_.propagation);
}

void End::break_off() {
  if (state_ != State::connected) return;
  requester_.cut_off();
  enter_error();
  peer_->lose_connection(nic_.profile.link.propagation);
}

void End::lose_connection(Picoseconds delay) {
  network_.after(delay, [this] { enter_error(); });
}

}  // namespace perdura::fabric::sim
