// The message that a requester SENDs, and its layout in a receive buffer. If the buffer is in
// persistent memory, it holds all that recovery needs to replay the message (section 3.2 of
// "Correct, Fast Remote Persistence": "the application's recovery subsystem can be used to find and
// apply the sent message").
//
//   0    magic | crc
//   8    sequence
//   16   updates | carries
//   24   offset of a | offset of b             in the responder's region
//   40   length of a | length of b
//   48   a, padded to 8 bytes; b              if it carries them; `send &a` ends here
//
// All numbers are little-endian, as on every machine that has persistent memory. The checksum
// covers all bytes that follow it, up to the end of the data. Its seed is the generation of the
// connection (methods/message_ring.h), so that a message of an earlier connection never
// verifies.
//
// A WRITE_WITH_IMM has no room for such a header. Its immediate names the update: bit 31 says which
// one (0 is a), the other bits are its offset in units of 8 bytes. Its length is taken to be the
// largest, on which the two sides have agreed when they connected.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"

namespace perdura::methods {

inline constexpr std::uint32_t kMessageMagic = 0x54445055;  // "UPDT"

// A set of updates: bit 0 stands for a, bit 1 for b.
using UpdateSet = std::uint32_t;
inline constexpr UpdateSet kUpdateA = 1;
inline constexpr UpdateSet kUpdateB = 2;

struct MessageHeader {
  std::uint32_t magic = kMessageMagic;
  std::uint32_t crc = 0;
  std::uint64_t sequence = 0;  // counts the messages of the session, from 1
  UpdateSet updates = 0;
  std::uint32_t carries = 0;  // 1 if the data follows
  std::array<std::uint64_t, 2> offset{};
  std::array<std::uint32_t, 2> length{};
};
static_assert(sizeof(MessageHeader) == 48);
static_assert(offsetof(MessageHeader, crc) == 4);
static_assert(offsetof(MessageHeader, sequence) == 8);
static_assert(offsetof(MessageHeader, updates) == 16);
static_assert(offsetof(MessageHeader, carries) == 20);
static_assert(offsetof(MessageHeader, offset) == 24);
static_assert(offsetof(MessageHeader, length) == 40);

// The size of the largest message, which is the size of a receive buffer.
constexpr Bytes message_room(Bytes largest_a, Bytes largest_b) {
  return round_up(sizeof(MessageHeader) + round_up(largest_a, kWord) + largest_b, kCacheLine);
}
// The size of a message with this header.
Bytes message_size(const MessageHeader& header);
// The offset within the message of an update's data; `update` is 0 for a, 1 for b.
Bytes data_offset(const MessageHeader& header, std::size_t update);

// The header at the beginning of a message; nullopt if there is no valid one, the message is too
// short for it, or an update lies outside of `region_size`.
std::optional<MessageHeader> read_header(std::span<const std::byte> message, Bytes region_size);

// Write the header: the first without a checksum; the second, for messages that may be replayed,
// with a checksum that covers the data after the header.
void write_header(const MessageHeader& header, std::span<std::byte> message);
void write_sealed_header(const MessageHeader& header, std::uint32_t generation,
                         std::span<std::byte> message);
bool is_whole(std::span<const std::byte> message, std::uint32_t generation);

inline constexpr Bytes kLargestImmediateRegion = Bytes{1} << 34;  // 31 bits of 8-byte units

constexpr std::uint32_t immediate_of(std::size_t update, Bytes offset) {
  return static_cast<std::uint32_t>(update << 31 | offset / kWord);
}
constexpr std::size_t update_of(std::uint32_t immediate) { return immediate >> 31; }
constexpr Bytes offset_of(std::uint32_t immediate) {
  return Bytes{immediate & 0x7FFF'FFFF} * kWord;
}
static_assert(update_of(immediate_of(1, kLargestImmediateRegion - kWord)) == 1);
static_assert(offset_of(immediate_of(1, kLargestImmediateRegion - kWord)) ==
              kLargestImmediateRegion - kWord);

}  // namespace perdura::methods
