#include "systems/mcas/ado/channel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rpc/messages.h"

namespace perdura::systems::mcas::ado {

namespace {

struct PartHeader {
  std::uint64_t launch = 0;
  MessageKind kind = MessageKind::work;
  std::uint32_t last = 0;  // whether the message ends with this part
};
constexpr Bytes kRoom = kRingShape.message_size - sizeof(PartHeader);

}  // namespace

std::shared_ptr<Channel> Channel::open(Node& node, const std::string& memory, Side side) {
  MessageRings& rings = rings_of(node);
  const std::string to_process = memory + ".to_ado";
  const std::string to_shard = memory + ".from_ado";
  const bool of_shard = side == Side::shard;
  auto out = rings.open_producer(of_shard ? to_process : to_shard, kRingShape);
  auto in = rings.open_consumer(of_shard ? to_shard : to_process, kRingShape);
  std::shared_ptr<Channel> channel(new Channel(std::move(out), std::move(in)));
  Executor::current().spawn(push_all(channel));
  Executor::current().spawn(pop_all(channel));
  return channel;
}

void Channel::begin(std::uint64_t launch) {
  end();
  launch_ = launch;
}

void Channel::end() {
  launch_ = 0;
  parts_.clear();
  incoming_ = {};
  received_.clear();
  has_received_.wake_all();
}

void Channel::send_bytes(MessageKind kind, const std::string& body) {
  if (launch_ == 0) return;
  for (Bytes sent = 0; sent == 0 || sent < body.size(); sent += kRoom) {
    const std::string rest = body.substr(sent, kRoom);
    const PartHeader header{launch_, kind, sent + kRoom >= body.size() ? 1U : 0U};
    parts_.push_back(std::string(reinterpret_cast<const char*>(&header), sizeof header) + rest);
  }
  has_parts_.wake_one();
}

// A part is taken out of the queue before it is pushed: the queue may be cleared meanwhile. If the
// other side has died while the ring was full, its successor pops what is there, and drops it.
Task<> Channel::push_all(std::shared_ptr<Channel> self) {
  for (;;) {
    while (self->parts_.empty()) co_await wait(self->has_parts_);
    const std::string part = std::move(self->parts_.front());
    self->parts_.pop_front();
    co_await self->out_->push(std::as_bytes(std::span(part)));
  }
}

Task<> Channel::pop_all(std::shared_ptr<Channel> self) {
  std::array<std::byte, kRingShape.message_size> room;
  for (;;) {
    const Bytes length = co_await self->in_->pop(room);
    self->take_part(std::span(room).first(length));
  }
}

void Channel::take_part(std::span<const std::byte> part) {
  const auto header = rpc::read_message<PartHeader>(part);
  if (part.size() < sizeof header || header.launch != launch_) return;
  const auto rest = part.subspan(sizeof header);
  incoming_.kind = header.kind;
  incoming_.body.append(reinterpret_cast<const char*>(rest.data()), rest.size());
  if (header.last == 0) return;
  received_.push_back(std::exchange(incoming_, {}));
  has_received_.wake_one();
}

Task<std::optional<Channel::Message>> Channel::receive() {
  const std::uint64_t launch = launch_;
  while (launch_ != 0 && launch_ == launch && received_.empty()) co_await wait(has_received_);
  if (launch_ == 0 || launch_ != launch) co_return std::nullopt;
  Message message = std::move(received_.front());
  received_.pop_front();
  co_return message;
}

}  // namespace perdura::systems::mcas::ado
