// The messages between Erda's client and server (Liu et al., sections 3.3 and 4.4).
//
// A session has a fixed number of lanes, one for each operation in flight. Normally a client writes
// its request by WRITE_WITH_IMM into its lane's slot in the server's memory; the immediate is the
// client's identifier: session × lanes + lane. The server answers with a SEND. A client reports an
// incomplete object with a SEND, which is not answered. If puts are to be durable when they are
// acknowledged and only the server's CPU can make them so, the client asks for that with a SEND,
// which is answered.
//
// While a head is being cleaned, all requests for its keys, gets included, are SENDs, and puts
// carry the whole object. The server announces the beginning and the end of a cleaning by notices.
// A client acknowledges a beginning once none of its one-sided operations on the head is in flight.
// So the server does not depend on an assumed maximum round-trip time. A client that connects reads
// the state of every head from the server's control region.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "platform/fabric/needs.h"
#include "platform/fabric/types.h"
#include "services/kv/kv.h"
#include "systems/erda/layout.h"
#include "systems/hopscotch/geometry.h"

namespace perdura::systems::erda {

inline constexpr fabric::DeviceNeeds kDeviceNeeds{.write_with_immediate = true};
inline constexpr std::uint32_t kLanes = 16;
// Keys of up to this length are accepted even if the typical key is shorter.
inline constexpr Bytes kLongestKey = 4 * KiB;

// The private data with which the server accepts a connection.
struct Welcome {
  std::uint32_t session = 0;
  fabric::RemoteKey pool;     // the whole pool, for READs and WRITEs
  fabric::RemoteKey control;  // DRAM: displacement counter, states of heads, then the request slots
};

// How clients are to access a head. It is a word of the control region, and is sent in notices.
struct HeadAccess {
  // The number of beginnings and ends of cleanings since the server started: odd during a cleaning.
  std::uint32_t generation = 0;
  std::uint32_t chain = 0;  // the chain that the head points to

  bool one_sided() const { return generation % 2 == 0; }
  std::uint64_t word() const { return std::uint64_t{generation} << 1 | chain; }
  static HeadAccess of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 1), static_cast<std::uint32_t>(word & 1)};
  }
};

// Offsets in the control region.
inline constexpr Bytes kDisplacements = 0;
inline constexpr Bytes kHeadAccess = 64;

enum class RequestKind : std::uint8_t {
  put,
  erase,
  report,
  get,
  acknowledge,
  persist,  // makes durable what the lane has written; only with methods that ask the server
};

struct RequestHeader {
  RequestKind kind = RequestKind::put;
  std::uint8_t format = 0;  // the key's format, as in a hash entry
  // The head in an acknowledgment. Otherwise the lane's sequence number, by which the receiver
  // recognizes duplicate requests or answers.
  std::uint16_t head_or_sequence = 0;
  // The size to be reserved in the log; in a SEND, the size of the object that follows.
  std::uint32_t object_size = 0;
  // In a report, the version word whose newest object is incomplete; in an acknowledgment, the
  // generation; in other requests by SEND, the client's identifier.
  std::uint64_t word = 0;
};
static_assert(sizeof(RequestHeader) == 16);

// A request is its header, followed by the key as a hash entry stores it. In a SEND the object
// follows, request_slot_size() bytes after the beginning of the request.
inline Bytes request_slot_size(const hopscotch::Geometry& table) {
  return round_up(sizeof(RequestHeader) + table.slot_size(), kCacheLine);
}
inline Bytes request_slots(const PoolLayout& layout) {
  return round_up(kHeadAccess + layout.shape().heads * kWord, kCacheLine);
}
inline Bytes request_slot(const PoolLayout& layout, std::uint32_t client) {
  return request_slots(layout) + client * request_slot_size(layout.table());
}

// The size of the largest object that a configuration allows.
inline Bytes largest_object(const kv::KvConfig& config, const PoolLayout& layout) {
  const Bytes size = round_up(
      kLongHeader + std::max(config.key_size, kLongestKey) + config.max_value_size, kCacheLine);
  return std::min(size, layout.shape().segment_bytes - kWord);
}
inline Bytes largest_request(const kv::KvConfig& config, const PoolLayout& layout) {
  return request_slot_size(layout.table()) + largest_object(config, layout);
}

// --- from the server -----------------------------------------------------------------------------

enum class MessageKind : std::uint8_t { reply, notice };

enum class Outcome : std::uint8_t {
  ok,
  not_found,
  out_of_space,
  too_large,
  use_send,  // the head is being cleaned: repeat the request as a SEND
};

struct Message {
  MessageKind kind = MessageKind::reply;
  Outcome outcome = Outcome::ok;
  std::uint16_t target = 0;  // the head of a notice, or lane and sequence number of a reply
  std::uint32_t life = 0;    // life (layout.h) of the region that receives the object
  // For a put: the object's offset in the pool, which the paper calls the last written address. For
  // a get by SEND: the length of the value that follows. In a notice: a HeadAccess.
  std::uint64_t value = 0;
};
static_assert(sizeof(Message) == 16);
inline constexpr std::uint16_t kSequences = 1 << 12;
inline constexpr std::uint16_t reply_target(std::uint32_t lane, std::uint16_t sequence) {
  return static_cast<std::uint16_t>(sequence * kLanes + lane);
}
static_assert(kSequences * kLanes == 1 << 16);

}  // namespace perdura::systems::erda
