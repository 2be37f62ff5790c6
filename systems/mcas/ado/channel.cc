#include "systems/mcas/ado/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rpc/messages.h"

namespace perdura::systems::mcas::ado {

namespace {

// Parts of one message that are taken before other tasks get a turn. Usually only lists of a pool's
// references have more than one part.
constexpr int kPartsAtOnce = 64;
// A buffer that has grown beyond this is freed after its message, so that one long message does not
// hold its memory forever; smaller ones are reused. This is the size of one direction's queue.
constexpr Bytes kKept = kQueue.slots * kQueue.message_size;

struct PartHeader {
  MessageKind kind = MessageKind::work;
  std::uint32_t last = 0;  // 1 if the message ends with this part
};

}  // namespace

bool Channel::send_encoded(MessageKind kind) {
  if (encoded_.size() > kLongestMessage) return false;
  if (ended_) return true;
  const Bytes room = room_.size() - sizeof(PartHeader);
  for (Bytes sent = 0; sent == 0 || sent < encoded_.size(); sent += room) {
    const PartHeader header{kind, sent + room >= encoded_.size() ? 1U : 0U};
    rpc::write_message(part_, header);
    const Bytes length = std::min<Bytes>(room, encoded_.size() - sent);
    std::memcpy(part_.data() + sizeof header, encoded_.data() + sent, length);
    const std::span<const std::byte> part = std::span(part_).first(sizeof header + length);
    const bool gone = parts_.empty() && peer_->try_send(part);
    if (gone) continue;
    parts_.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
    ++queued_;
  }
  if (encoded_.capacity() > kKept) encoded_ = std::string();
  if (!parts_.empty() && !std::exchange(sending_, true)) {
    Executor::current().spawn(send_all(shared_from_this()));
  }
  return true;
}

Task<> Channel::send_all(std::shared_ptr<Channel> self) {
  while (!self->ended_ && !self->parts_.empty()) {
    co_await self->peer_->send(std::as_bytes(std::span(self->parts_.front())));
    self->parts_.pop_front();
    ++self->sent_;
    self->part_sent_.wake_all();
  }
  self->sending_ = false;
}

Task<> Channel::until_sent() {
  const std::uint64_t last = queued_;
  while (!ended_ && sent_ < last) co_await wait(part_sent_);
}

void Channel::end() {
  ended_ = true;
  part_sent_.wake_all();
}

// Appends a part to the message. Returns false if the part is malformed or makes the message too
// long; the sender is then not trusted any more.
bool Channel::take_part(Message& message, std::span<const std::byte> part, bool& last) {
  if (part.size() < sizeof(PartHeader)) return false;
  const auto header = rpc::read_message<PartHeader>(part);
  const auto rest = part.subspan(sizeof header);
  if (rest.empty() && header.last == 0) return false;
  if (rest.size() > kLongestMessage - message.body.size()) return false;
  message.kind = header.kind;
  message.body.append(reinterpret_cast<const char*>(rest.data()), rest.size());
  last = header.last != 0;
  return true;
}

Task<bool> Channel::receive(Message& message) {
  message.body.clear();
  if (message.body.capacity() > kKept) message.body = std::string();
  int parts = 0;
  for (bool last = false; !last;) {
    if (++parts % kPartsAtOnce == 0) co_await yield();
    const std::optional<Bytes> length = co_await peer_->receive(room_);
    if (ended_ || !length || !take_part(message, std::span(room_).first(*length), last)) {
      co_return false;
    }
  }
  co_return true;
}

}  // namespace perdura::systems::mcas::ado
