// Operations of a queue pair from posting to completion, and the end of the connection.
#include "platform/fabric/tcp/queue_pair.h"

#include <algorithm>
#include <utility>

#include "platform/fabric/tcp/endpoint.h"
#include "platform/fabric/tcp/pieces.h"

namespace perdura::fabric::tcp {
namespace {

// The bytes that may be unacknowledged, besides one message. More is held back, since the peer must
// keep them while it has no receive buffer.
constexpr Bytes kWindow = 1 * MiB;

}  // namespace

TcpQueuePair::TcpQueuePair(TcpEndpoint& endpoint, File socket, Address peer,
                           const QueuePairOptions& options)
    : endpoint_(endpoint),
      socket_(std::move(socket)),
      peer_(peer),
      options_(options),
      traffic_(endpoint.context_.traffic.open(peer.node)) {
  if (options_.reported_as == nullptr) options_.reported_as = this;
  if (options_.receive_queue != nullptr) {
    receive_queue_ = static_cast<TcpReceiveQueue*>(options_.receive_queue)->posted();
  }
  wanted_ = EPOLLIN;
  endpoint_.events_.add(socket_.get(), *this, wanted_);
}

TcpQueuePair::~TcpQueuePair() {
  if (options_.completions != nullptr) options_.completions->forget(*options_.reported_as);
  // The application has dropped this end, so it gets no completions.
  options_.completions = nullptr;
  if (connected_) transmit();
  break_off(Status::flushed, Peer::there);
  std::erase_if(endpoint_.failed_, [this](SendEntry* entry) {
    if (entry->queue_pair != this) return false;
    finish(entry, entry->status);
    return true;
  });
}

void TcpQueuePair::post(RdmaOperation& operation) {
  check_pieces(operation.request().local);
  submit(make_entry(operation.request(), &operation));
}

void TcpQueuePair::post_unsignaled(const WorkRequest& request) {
  if (!connected_) return;
  check_pieces(request.local);
  submit(make_entry(request, nullptr));
}

SendEntry* TcpQueuePair::make_entry(const WorkRequest& request, RdmaOperation* operation) {
  SendEntry* const entry = endpoint_.pool_.take();
  entry->queue_pair = this;
  entry->operation = operation;
  entry->abandoned = false;
  entry->request = request;
  entry->owns_data = request.flags.inlined && request.local.length() <= kMaxInline;
  if (entry->owns_data && request.opcode != Opcode::read) {
    gather(request.local, 0, std::span(entry->data).first(request.local.length()));
  }
  if (operation != nullptr) operation->transport_state = entry;
  return entry;
}

void TcpQueuePair::submit(SendEntry* entry) {
  if (!connected_) {
    // Not completed at once: a task that retries in a loop must leave time to others.
    endpoint_.complete_later(entry, Status::flushed);
    return;
  }
  waiting_.push_back(entry);
  start_waiting();
}

Status TcpQueuePair::error_of(const WorkRequest& request) {
  if (request.opcode != Opcode::send && request.opcode != Opcode::write &&
      request.opcode != Opcode::read && request.opcode != Opcode::append) {
    return Status::unsupported;
  }
  if (commits(request)) return Status::unsupported;  // there is no FLUSH for persistence either
  if (request.flags.inlined && request.local.length() > kMaxInline) return Status::unsupported;
  return request.local.length() > kMaxMessage ? Status::message_too_long : Status::success;
}

bool TcpQueuePair::may_start(const WorkRequest& request) const {
  if (outstanding_.size() >= std::max(options_.send_depth, 1U)) return false;
  if (request.flags.fenced && reads_ != 0) return false;
  return request.opcode == Opcode::read || in_flight_ == 0 ||
         in_flight_ + request.local.length() <= kWindow;
}

void TcpQueuePair::start_waiting() {
  while (connected_ && !waiting_.empty()) {
    SendEntry* const entry = waiting_.front();
    if (entry->abandoned) {
      waiting_.pop_front();
      endpoint_.pool_.give_back(entry);
    } else if (const Status error = error_of(entry->request); error != Status::success) {
      // Operations complete in order, even one that is never sent.
      if (!outstanding_.empty()) return;
      break_off(error, Peer::there);
    } else if (may_start(entry->request)) {
      waiting_.pop_front();
      start(entry);
    } else {
      return;
    }
  }
}

void TcpQueuePair::start(SendEntry* entry) {
  const WorkRequest& request = entry->request;
  Outgoing outgoing;
  outgoing.frame.length = request.local.length();
  outgoing.frame.key = request.remote.key.value;
  outgoing.frame.offset = request.remote.offset;
  outgoing.entry = entry;
  outgoing.pieces = request.local;
  switch (request.opcode) {
    case Opcode::read:
      outgoing.frame.kind = FrameKind::read;
      ++reads_;
      break;
    case Opcode::write:
    case Opcode::append:
      outgoing.frame.kind = request.opcode == Opcode::write ? FrameKind::write : FrameKind::append;
      in_flight_ += request.local.length();
      break;
    default:
      outgoing.frame.kind = FrameKind::send;
      in_flight_ += request.local.length();
  }
  outstanding_.push_back(entry);
  put_in_line(std::move(outgoing));
}

void TcpQueuePair::no_longer_under_way(const SendEntry& entry) {
  if (entry.request.opcode == Opcode::read) {
    --reads_;
  } else {
    in_flight_ -= entry.request.local.length();
  }
}

void TcpQueuePair::complete_oldest(Status status, std::uint64_t old_value) {
  if (status != Status::success) {
    break_off(status, Peer::there);
    return;
  }
  SendEntry* const entry = outstanding_.take_front();
  no_longer_under_way(*entry);
  traffic_.count(entry->request);
  finish(entry, Status::success, old_value);
  start_waiting();
}

void TcpQueuePair::finish(SendEntry* entry, Status status, std::uint64_t old_value) {
  if (entry->operation != nullptr) entry->operation->complete(status, old_value);
  endpoint_.pool_.give_back(entry);
}

void TcpQueuePair::abandon(RdmaOperation& operation) {
  auto* const entry = static_cast<SendEntry*>(operation.transport_state);
  if (entry == nullptr) return;  // it could not be posted
  entry->operation = nullptr;
  entry->abandoned = true;
  if (!connected_) return;
  for (std::size_t i = 0; i < line_.size(); ++i) {
    if (line_[i].entry != entry) continue;
    if (i == 0 && begun_) {
      // The peer waits for the rest of the frame, and this end no longer has it.
      if (!entry->owns_data) break_off(Status::flushed, Peer::gone);
      return;
    }
    line_.take(i);
    outstanding_.erase(entry);
    no_longer_under_way(*entry);
    endpoint_.pool_.give_back(entry);
    start_waiting();
    return;
  }
}

void TcpQueuePair::refuse(Status status) {
  line_.push_back(
      {.frame = {.kind = FrameKind::acknowledgment, .status = static_cast<std::uint32_t>(status)}});
  break_off(Status::flushed, Peer::there);
}

void TcpQueuePair::break_off(Status oldest, Peer peer) {
  if (!connected_) return;
  connected_ = false;
  endpoint_.events_.remove(socket_.get(), *this);
  endpoint_.forget(*this);
  std::optional<std::vector<std::byte>> rest;
  if (peer == Peer::there) rest = unsent();
  if (rest) {
    endpoint_.linger(std::move(socket_), std::move(*rest));
  } else {
    socket_ = File();
  }
  line_.clear();
  held_.clear();
  while (!outstanding_.empty() || !waiting_.empty()) {
    finish((outstanding_.empty() ? waiting_ : outstanding_).take_front(), oldest);
    oldest = Status::flushed;
  }
  if (options_.completions != nullptr) {
    options_.completions->push({options_.reported_as, Status::disconnected, std::nullopt, {}, 0});
  }
}

}  // namespace perdura::fabric::tcp
