// What Erda's client and server say to each other (Liu et al., sections 3.3 and 4.4).
//
// A session has a number of lanes, one for each operation that may be under way. Normally a client
// writes its request by WRITE_WITH_IMM into its lane's slot in the server's memory; the immediate
// is the client's identifier: session × lanes + lane. The answer comes by SEND. A report of an
// incomplete object goes by SEND and is not answered. If puts are to be durable when they are
// acknowledged and only the server's CPU can see to that, it is asked by SEND, and answers.
//
// While a head is cleaned, requests for its keys go by SEND, gets too, and carry the whole object.
// The server announces the beginning and the end of it by a notice; a client acknowledges the
// beginning when none of its one-sided operations on the head is under way any more. So the server
// knows when the longest round trip is over, however long that is. A client that connects finds the
// state of every head in the server's control region.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "platform/fabric/types.h"
#include "services/kv/kv.h"
#include "systems/erda/layout.h"
#include "systems/hopscotch/geometry.h"

namespace perdura::systems::erda {

inline constexpr std::uint32_t kLanes = 16;
// Keys up to this length are taken even if the typical key is shorter.
inline constexpr Bytes kLongestKey = 4 * KiB;

// Private data of an accepted connection.
struct Welcome {
  std::uint32_t session = 0;
  fabric::RemoteKey pool;     // the whole pool, for READs and WRITEs
  fabric::RemoteKey control;  // DRAM: displacement counter, states of heads, then the request slots
};

// How clients are to access a head: a word of the control region, and in a notice.
struct HeadAccess {
  // Counts beginnings and ends of cleanings since the server started: odd while one is under way.
  std::uint32_t generation = 0;
  std::uint32_t chain = 0;  // that the head points to

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
  persist,  // the object that the lane has written; only with a method that asks the server
};

struct RequestHeader {
  RequestKind kind = RequestKind::put;
  std::uint8_t format = 0;  // of the key, as in a hash entry
  // Of an acknowledgment the head; else the lane's sequence number, by which a request or an answer
  // that comes twice is recognized.
  std::uint16_t head_or_sequence = 0;
  std::uint32_t object_size = 0;  // to be reserved in the log; by SEND, of the object that follows
  // In a report the version word whose newest object is incomplete, in an acknowledgment the
  // generation, in other requests by SEND the client's identifier.
  std::uint64_t word = 0;
};
static_assert(sizeof(RequestHeader) == 16);

// A request is its header and the key as a hash entry holds it; by SEND the object follows, at the
// distance of a slot.
inline Bytes request_slot_size(const hopscotch::Geometry& table) {
  return round_up(sizeof(RequestHeader) + table.slot_size(), kCacheLine);
}
inline Bytes request_slots(const PoolLayout& layout) {
  return round_up(kHeadAccess + layout.shape().heads * kWord, kCacheLine);
}
inline Bytes request_slot(const PoolLayout& layout, std::uint32_t client) {
  return request_slots(layout) + client * request_slot_size(layout.table());
}

// The largest object of a configuration.
inline Bytes largest_object(const KvConfig& config, const PoolLayout& layout) {
  const Bytes size = round_up(
      kLongHeader + std::max(config.key_size, kLongestKey) + config.max_value_size, kCacheLine);
  return std::min(size, layout.shape().segment_bytes - kWord);
}
inline Bytes largest_request(const KvConfig& config, const PoolLayout& layout) {
  return request_slot_size(layout.table()) + largest_object(config, layout);
}

// --- from the server -----------------------------------------------------------------------------

enum class MessageKind : std::uint8_t { reply, notice };

enum class Outcome : std::uint8_t {
  ok,
  not_found,
  out_of_space,
  too_large,
  use_send,  // the head is being cleaned: ask again by SEND
};

struct Message {
  MessageKind kind = MessageKind::reply;
  Outcome outcome = Outcome::ok;
  std::uint16_t target = 0;  // a notice's head, or a reply's lane and sequence number
  std::uint32_t life = 0;    // of the region in which the object is to be written
  // Of a put: the object's offset in the pool, the last written address of the log. Of a get by
  // SEND: the length of the value that follows. Of a notice: a HeadAccess.
  std::uint64_t value = 0;
};
static_assert(sizeof(Message) == 16);
inline constexpr std::uint16_t kSequences = 1 << 12;
inline constexpr std::uint16_t reply_target(std::uint32_t lane, std::uint16_t sequence) {
  return static_cast<std::uint16_t>(sequence * kLanes + lane);
}
static_assert(kSequences * kLanes == 1 << 16);

}  // namespace perdura::systems::erda
