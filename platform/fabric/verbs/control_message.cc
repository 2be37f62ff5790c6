#include "platform/fabric/verbs/control_message.h"

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::fabric::verbs {
namespace {

constexpr std::uint32_t kMagic = 0x50445256;  // "PDRV"

struct Frame {
  std::uint32_t magic = kMagic;
  MessageKind kind = MessageKind::hello;
  std::uint32_t from_node = 0;
  std::uint32_t to_node = 0;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint32_t data_length = 0;
  std::uint64_t from_id = 0;
  std::uint64_t to_id = 0;
  std::array<std::uint64_t, 6> words{};
};
static_assert(sizeof(Frame) == 88);

}  // namespace

std::vector<std::byte> encode(const Message& message) {
  Frame frame;
  frame.kind = message.kind;
  frame.from_node = message.from.node;
  frame.from_port = message.from.port;
  frame.to_node = message.to.node;
  frame.to_port = message.to.port;
  frame.data_length = static_cast<std::uint32_t>(message.data.size());
  frame.from_id = message.from_id;
  frame.to_id = message.to_id;
  frame.words = message.words;
  std::vector<std::byte> bytes(sizeof(Frame) + message.data.size());
  std::memcpy(bytes.data(), &frame, sizeof(Frame));
  if (!message.data.empty()) {
    std::memcpy(bytes.data() + sizeof(Frame), message.data.data(), message.data.size());
  }
  return bytes;
}

void MessageReader::add(std::span<const std::byte> bytes) {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken_));
  taken_ = 0;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::optional<Message> MessageReader::next() {
  // Another program is recognized by its first bytes, even if it sends fewer than a frame has.
  const std::size_t here = std::min(bytes_.size() - taken_, sizeof(Frame));
  if (here < sizeof(Frame::magic)) return std::nullopt;
  Frame frame;
  std::memcpy(&frame, bytes_.data() + taken_, here < sizeof(Frame) ? sizeof(Frame::magic) : here);
  if (frame.magic != kMagic || frame.kind < MessageKind::hello || frame.kind > kLastMessageKind ||
      frame.data_length > kMaxMessageData) {
    throw PlatformError(
        "platform verbs: what arrived on the control connection is not from this version of "
        "perdura; start the same version on all hosts");
  }
  if (here < sizeof(Frame)) return std::nullopt;
  if (bytes_.size() - taken_ < sizeof(Frame) + frame.data_length) return std::nullopt;
  const auto data = bytes_.begin() + static_cast<std::ptrdiff_t>(taken_ + sizeof(Frame));
  Message message;
  message.kind = frame.kind;
  message.from = {frame.from_node, frame.from_port};
  message.to = {frame.to_node, frame.to_port};
  message.from_id = frame.from_id;
  message.to_id = frame.to_id;
  message.words = frame.words;
  message.data.assign(data, data + frame.data_length);
  taken_ += sizeof(Frame) + frame.data_length;
  return message;
}

}  // namespace perdura::fabric::verbs
