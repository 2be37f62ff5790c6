#include "methods/message.h"

#include <cstring>

#include "platform/runtime/work.h"

namespace perdura::methods {

namespace {

constexpr Bytes kSealedFrom = offsetof(MessageHeader, sequence);

std::uint32_t checksum(std::span<const std::byte> message, std::uint32_t generation) {
  return crc32(generation, message.subspan(kSealedFrom));
}

}  // namespace

Bytes data_offset(const MessageHeader& header, std::size_t update) {
  const bool after_a = update == 1 && (header.updates & kUpdateA) != 0;
  return sizeof header + (after_a ? round_up(header.length[0], kWord) : 0);
}

Bytes message_size(const MessageHeader& header) {
  if (header.carries == 0) return sizeof header;
  const std::size_t last = (header.updates & kUpdateB) != 0 ? 1 : 0;
  return data_offset(header, last) + header.length[last];
}

std::optional<MessageHeader> read_header(std::span<const std::byte> message, Bytes region_size) {
  MessageHeader header;
  if (message.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, message.data(), sizeof header);
  if (header.magic != kMessageMagic || header.updates < kUpdateA ||
      header.updates > (kUpdateA | kUpdateB) || header.carries > 1) {
    return std::nullopt;
  }
  for (std::size_t update = 0; update < 2; ++update) {
    if ((header.updates >> update & 1) == 0) continue;
    if (header.offset[update] > region_size ||
        header.length[update] > region_size - header.offset[update]) {
      return std::nullopt;
    }
  }
  if (message_size(header) > message.size()) return std::nullopt;
  return header;
}

void write_header(const MessageHeader& header, std::span<std::byte> message) {
  std::memcpy(message.data(), &header, sizeof header);
}

void write_sealed_header(const MessageHeader& header, std::uint32_t generation,
                         std::span<std::byte> message) {
  write_header(header, message);
  const std::uint32_t crc = checksum(message.first(message_size(header)), generation);
  std::memcpy(message.data() + offsetof(MessageHeader, crc), &crc, sizeof crc);
}

bool is_whole(std::span<const std::byte> message, std::uint32_t generation) {
  MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  return checksum(message.first(message_size(header)), generation) == header.crc;
}

}  // namespace perdura::methods
