// What Erda's client and server say to each other (Liu et al., section 3.3).
//
// A session has a number of lanes, one for each operation that may be under way. A lane has a slot
// in the server's memory, into which the client writes its request by WRITE_WITH_IMM; the immediate
// is the client's identifier: session × lanes + lane. The answer comes by SEND. A report of an
// incomplete object goes by SEND and is not answered.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "platform/fabric/types.h"
#include "systems/hopscotch/geometry.h"
#include "systems/kv.h"

namespace perdura::systems::erda {

inline constexpr std::uint32_t kLanes = 16;

// Private data of an accepted connection.
struct Welcome {
  std::uint32_t session = 0;
  fabric::RemoteKey pool;     // the whole pool, for READs and WRITEs
  fabric::RemoteKey control;  // DRAM: displacement counter, then the request slots
};

// Offsets in the control region.
inline constexpr Bytes kDisplacements = 0;
inline constexpr Bytes kRequestSlots = 64;

enum class RequestKind : std::uint8_t { put, erase, report };

struct RequestHeader {
  RequestKind kind = RequestKind::put;
  std::uint8_t format = 0;          // of the key, as in a hash entry
  std::uint16_t stored_length = 0;  // of what follows: the key, or its digest
  std::uint32_t object_size = 0;    // to be reserved in the log
  std::uint64_t word = 0;  // in a report: the version word whose newest object is incomplete
};
static_assert(sizeof(RequestHeader) == 16);

// A request is its header and the key as a hash entry holds it.
inline Bytes request_slot_size(const hopscotch::Geometry& table) {
  return round_up(sizeof(RequestHeader) + table.slot_size(), kCacheLine);
}
inline Bytes request_slot(const hopscotch::Geometry& table, std::uint32_t client) {
  return kRequestSlots + client * request_slot_size(table);
}

enum class Outcome : std::uint8_t { ok, not_found, out_of_space, too_large };

struct Reply {
  std::uint32_t lane = 0;
  Outcome outcome = Outcome::ok;
  std::uint8_t unused[3] = {};
  Bytes object_offset = 0;  // in the pool: the last written address of the log
};
static_assert(sizeof(Reply) == 16);

}  // namespace perdura::systems::erda
