// Sending and receiving the frames of a queue pair.
#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/fabric/tcp/endpoint.h"
#include "platform/fabric/tcp/pieces.h"
#include "platform/fabric/tcp/queue_pair.h"

namespace perdura::fabric::tcp {
namespace {

// Payloads are read and stored in parts of this size, so that a longer one needs no more memory.
constexpr std::size_t kPart = 64 * KiB;
constexpr std::size_t kRoom = 16 * KiB;  // least free space in the receive buffer
// How often one poll receives from a socket, so that the other sockets get their turn.
constexpr int kReceivesAtOnce = 8;
// A longer buffer of outgoing bytes is not kept for the next ones.
constexpr std::size_t kKept = 4 * kPart;

}  // namespace

// --- sending ------------------------------------------------------------------------------------

void TcpQueuePair::put_in_line(Outgoing outgoing) {
  line_.push_back(std::move(outgoing));
  endpoint_.transmit_later(*this);
}

void TcpQueuePair::want(std::uint32_t events) {
  if (std::exchange(wanted_, events) == events) return;
  endpoint_.events_.change(socket_.get(), *this, events);
}

void TcpQueuePair::transmit() {
  to_transmit_ = false;
  while (connected_) {
    if (out_sent_ == out_.size()) {
      fill();
      if (!connected_) return;
      if (out_.empty()) {
        want(EPOLLIN);
        return;
      }
    }
    const auto sent = send_some(socket_.get(), std::span(out_).subspan(out_sent_));
    if (!sent) {
      break_off(Status::flushed, Peer::gone);
    } else if (*sent == 0) {
      want(EPOLLIN | EPOLLOUT);
      return;
    } else {
      out_sent_ += *sent;
    }
  }
}

// Fills `out_`, whose contents have been sent, with the next frames in line.
void TcpQueuePair::fill() {
  out_.clear();
  if (out_.capacity() > kKept) out_ = std::vector<std::byte>();
  out_sent_ = 0;
  while (!line_.empty() && out_.size() < kPart) {
    const Outgoing& first = line_.front();
    if (first.through_extents()) {
      const bool is_answered = add_answer(first);
      line_.take_front();
      if (is_answered) continue;
      break_off(Status::flushed, Peer::there);
      return;
    }
    if (!std::exchange(begun_, true)) {
      add_frame(out_, first.frame);
      position_ = 0;
    }
    const std::size_t left = first.frame.payload() - position_;
    std::size_t part = std::min(left, kPart - std::min(kPart, out_.size()));
    if (part < left) part = whole_words(first.pieces, position_, part);
    if (!append_payload(first, part)) {
      break_off(Status::flushed, Peer::gone);
      return;
    }
    if (part < left) return;
    begun_ = false;
    line_.take_front();
  }
}

// Appends the next part of a payload to `out_`; returns false if the payload no longer exists.
bool TcpQueuePair::append_payload(const Outgoing& outgoing, std::size_t length) {
  if (length == 0) return true;
  const std::size_t before = out_.size();
  out_.resize(before + length);
  const auto into = std::span(out_).subspan(before);
  if (outgoing.entry != nullptr && outgoing.entry->owns_data) {
    std::memcpy(into.data(), outgoing.entry->data.data() + position_, length);
  } else {
    std::shared_ptr<void> mapping;
    if (outgoing.memory != nullptr && (mapping = outgoing.memory->mapping.lock()) == nullptr) {
      return false;
    }
    gather(outgoing.pieces, position_, into);
  }
  position_ += length;
  return true;
}

// Returns what the peer of a connection that ends must still get: the answers to its requests, and
// the rest of a request that it has begun to receive. Returns nullopt if that rest no longer
// exists.
std::optional<std::vector<std::byte>> TcpQueuePair::unsent() {
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(out_sent_));
  for (std::size_t i = 0; i < line_.size(); ++i) {
    const Outgoing& each = line_[i];
    if (each.through_extents()) {
      add_answer(each);
      continue;
    }
    if (!std::exchange(begun_, false)) {
      if (each.entry != nullptr) continue;
      add_frame(out_, each.frame);
      position_ = 0;
    }
    if (!append_payload(each, each.frame.payload() - position_)) return std::nullopt;
  }
  return std::move(out_);
}

// --- receiving ----------------------------------------------------------------------------------

void TcpQueuePair::ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) transmit();
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
  for (int i = 0; connected_ && i < kReceivesAtOnce; ++i) {
    make_room();
    const auto room = std::span(in_).subspan(in_end_);
    const auto received = receive_some(socket_.get(), room);
    if (!received) {
      break_off(Status::flushed, Peer::gone);
      return;
    }
    in_end_ += *received;
    parse();
    if (*received < room.size()) return;
  }
}

void TcpQueuePair::make_room() {
  if (in_begin_ != 0) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= std::exchange(in_begin_, 0);
  }
  std::size_t wanted = in_end_ + kRoom;
  if (in_frame_) wanted = std::max(wanted, next_part(arriving_) + kRoom);
  if (in_.size() < wanted) in_.resize(wanted);
}

void TcpQueuePair::parse() {
  while (connected_) {
    const auto bytes = std::span(in_).subspan(in_begin_, in_end_ - in_begin_);
    if (!in_frame_) {
      if (bytes.size() < sizeof(Frame)) return;
      arriving_ = {};
      std::memcpy(&arriving_.frame, bytes.data(), sizeof(Frame));
      in_begin_ += sizeof(Frame);
      in_frame_ = true;
      if (!begin_frame()) {
        // A peer of this version does not send such a frame.
        break_off(Status::flushed, Peer::gone);
      }
      if (!connected_) return;
    } else {
      const std::size_t part = next_part(arriving_);
      if (bytes.size() < part) return;
      place(arriving_, bytes.first(part));
      in_begin_ += part;
      if (connected_ && arriving_.position == arriving_.frame.payload()) end_frame();
    }
  }
}

// The number of bytes of the payload that are placed next.
std::size_t TcpQueuePair::next_part(const Arrival& arrival) const {
  const std::size_t left = arrival.frame.payload() - arrival.position;
  return left <= kPart ? left : whole_words(arrival.pieces, arrival.position, kPart);
}

bool TcpQueuePair::begin_frame() {
  const Frame& frame = arriving_.frame;
  if (frame.payload() > kMaxMessage) return false;
  const bool answers = frame.kind == FrameKind::acknowledgment || frame.kind == FrameKind::answer;
  if (answers) {
    if (outstanding_.empty()) return false;
    const WorkRequest& request = outstanding_.front()->request;
    const bool is_read = request.opcode == Opcode::read;
    if (frame.kind == FrameKind::answer) {
      arriving_.sink = Arrival::Sink::operation;
      arriving_.pieces = request.local;
      return is_read && frame.length == request.local.length();
    }
    return frame.length == 0 && !(is_read && frame.status == 0);
  }
  if (frame.kind != FrameKind::send && frame.kind != FrameKind::write &&
      frame.kind != FrameKind::append && frame.kind != FrameKind::read) {
    return false;
  }
  if (!held_.empty() || !begin_request(arriving_)) hold();
  return true;
}

void TcpQueuePair::hold() {
  if (held_.empty()) endpoint_.resume_later(*this);
  held_.push_back({.frame = arriving_.frame});
  arriving_.sink = Arrival::Sink::held;
}

// Determines the destination of a request's payload, or refuses the request; returns false if it
// must wait for a receive buffer.
bool TcpQueuePair::begin_request(Arrival& arrival) {
  const Frame& frame = arrival.frame;
  if (frame.kind != FrameKind::send) {
    const bool reads = frame.kind == FrameKind::read;
    arrival.memory = endpoint_.memory_.find({{frame.key}, frame.offset}, frame.length,
                                            reads ? Access::remote_read : Access::remote_write);
    const bool appends = frame.kind == FrameKind::append;
    if (arrival.memory == nullptr || (appends && !arrival.memory->appends)) {
      refuse(Status::remote_access_error);
      return true;
    }
    if (arrival.memory->extents) {
      if (!reads) arrival.sink = Arrival::Sink::extents;
      return true;
    }
    arrival.sink = Arrival::Sink::memory;
    arrival.pieces =
        LocalBuffer{&arrival.memory->view, arrival.memory->offset + frame.offset, frame.length};
    return true;
  }
  if (receive_queue_ == nullptr || receive_queue_->empty()) return false;
  const PostedBuffer buffer = receive_queue_->take_front();
  arrival.sink = Arrival::Sink::buffer;
  arrival.pieces = buffer.pieces;
  arrival.buffer_id = buffer.id;
  if (frame.length > buffer.pieces.length()) {
    if (options_.completions != nullptr) {
      options_.completions->push({options_.reported_as, Status::message_too_long, std::nullopt,
                                  buffer.pieces.first().first(0), buffer.id});
    }
    refuse(Status::message_too_long);
  }
  return true;
}

void TcpQueuePair::place(Arrival& arrival, std::span<const std::byte> bytes) {
  switch (arrival.sink) {
    case Arrival::Sink::nowhere:
      break;
    case Arrival::Sink::memory: {
      const auto mapping = arrival.memory->mapping.lock();
      if (mapping == nullptr) {
        refuse(Status::remote_access_error);
        return;
      }
      scatter(arrival.pieces, arrival.position, bytes);
      break;
    }
    case Arrival::Sink::extents:
      take_for_extents(arrival, bytes);
      break;
    case Arrival::Sink::buffer:
      scatter(arrival.pieces, arrival.position, bytes);
      break;
    case Arrival::Sink::operation:
      if (!outstanding_.front()->abandoned) scatter(arrival.pieces, arrival.position, bytes);
      break;
    case Arrival::Sink::held:
      held_.back().payload.insert(held_.back().payload.end(), bytes.begin(), bytes.end());
  }
  arrival.position += bytes.size();
  endpoint_.stored_ |= !bytes.empty() && arrival.sink != Arrival::Sink::held;
}

void TcpQueuePair::end_frame() {
  in_frame_ = false;
  if (arriving_.sink == Arrival::Sink::held) {
    held_.back().whole = true;
  } else if (arriving_.frame.kind == FrameKind::acknowledgment) {
    complete_oldest(static_cast<Status>(arriving_.frame.status), arriving_.frame.offset);
  } else if (arriving_.frame.kind == FrameKind::answer) {
    complete_oldest(Status::success);
  } else {
    end_request(arriving_);
  }
}

void TcpQueuePair::end_request(const Arrival& arrival) {
  const std::uint32_t length = arrival.frame.length;
  if (arrival.frame.kind == FrameKind::read) {
    put_in_line({.frame = {.kind = FrameKind::answer, .length = length},
                 .pieces = arrival.pieces,
                 .memory = arrival.memory,
                 .at = arrival.frame.offset});
    return;
  }
  put_in_line({.frame = {.kind = FrameKind::acknowledgment, .offset = arrival.placed_at}});
  if (arrival.frame.kind == FrameKind::send && options_.completions != nullptr) {
    const LocalBuffer& first = arrival.pieces.first();
    options_.completions->push({options_.reported_as, Status::success, std::nullopt,
                                first.first(std::min(length, first.length)), arrival.buffer_id,
                                length});
  }
}

bool TcpQueuePair::can_resume() const {
  if (held_.empty() || !held_.front().whole) return false;
  const Held& first = held_.front();
  if (first.frame.kind == FrameKind::send) {
    return receive_queue_ != nullptr && !receive_queue_->empty();
  }
  return first.lacking == nullptr || first.lacking->changes != first.changes ||
         first.lacking->mapping.expired();
}

void TcpQueuePair::resume() {
  while (connected_ && !held_.empty() && held_.front().whole) {
    Arrival arrival{.frame = held_.front().frame};
    if (!begin_request(arrival)) break;
    if (arrival.sink == Arrival::Sink::extents) {
      if (!place_whole(arrival, held_.front().payload)) {
        wait_for_memory(held_.front(), arrival.memory);
        break;
      }
      arrival.position = arrival.frame.payload();
    }
    while (connected_ && arrival.position < arrival.frame.payload()) {
      const auto& payload = held_.front().payload;
      place(arrival, std::span(payload).subspan(arrival.position, next_part(arrival)));
    }
    if (!connected_) return;
    end_request(arrival);
    held_.pop_front();
  }
  if (connected_ && !held_.empty()) endpoint_.resume_later(*this);
}

}  // namespace perdura::fabric::tcp
