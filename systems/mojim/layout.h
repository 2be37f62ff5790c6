// The persistent memory of a Mojim node: the region NAME, which is the data area, and the region
// NAME.logs beside it, into which a copy receives sync points (section 3.2.2). A mirror of
// M-syncdisk keeps its data area on a disk, in the region NAME.disk, instead.
//
//   0      +--------------------------------------------------------------+
//          | magic | version, on disk, crc | shape                        |   LogsHeader
//   256    +--------------------------------------------------------------+
//          | applied | incomplete | given up | begun | in background      |   the state
//   512    +--------------------------------------------------------------+
//          | log 0: slots, a ring; each a request: header | data          |
//          | log 1: ...                                                   |
//          +--------------------------------------------------------------+
//
// The slots are the receive buffers into which the device places what the preceding node SENDs, so
// a log is filled without this node's CPU. Nothing in memory says which slots hold requests that
// have not been applied: recovery examines all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "platform/base/units.h"
#include "platform/platform.h"
#include "systems/mojim/parameters.h"

namespace perdura::systems::mojim {

// Ids are unique over all connections, and sync points take effect in the order of their ids. The
// upper bits of an id are its term. Each primary has a term of its own, in which its ids begin with
// 1. So the id that was applied last also says whose requests are accepted.
inline constexpr int kTermShift = 40;
constexpr std::uint64_t term_of(std::uint64_t id) { return id >> kTermShift; }
constexpr std::uint64_t begin_of(std::uint64_t term) { return term << kTermShift; }

// Copies that are promoted without having heard of each other count the same number of primaries
// before them. So a term consists of a round, which is that number plus one, and in its lower bits
// the number of the node. Of two terms of one round, the later one is that of the greater node. A
// node never begins the same round twice.
inline constexpr int kRoundShift = 6;
inline constexpr NodeId kMostNodes = NodeId{1} << kRoundShift;
inline constexpr std::uint64_t kMostRounds = std::uint64_t{1} << (64 - kTermShift - kRoundShift);
constexpr std::uint64_t round_of(std::uint64_t term) { return term >> kRoundShift; }
constexpr NodeId node_of(std::uint64_t term) { return static_cast<NodeId>(term % kMostNodes); }
// The term that `node` begins if `known` is the latest term of which it has heard, or 0 if it has
// heard of none. Regions from before there were rounds have terms from 1 on; a term of the second
// round or later follows them.
constexpr std::uint64_t term_after(std::uint64_t known, NodeId node) {
  const std::uint64_t before = known == 0 ? 0 : std::max<std::uint64_t>(round_of(known), 1);
  return (before + 1) << kRoundShift | node;
}
// True if a node that has heard of no later term than `known` follows the primary that begins
// `term`. A primary of the same round has not heard of the one that the node has followed so far.
// If the node itself was that one, its followers say so.
constexpr bool follows(NodeId node, std::uint64_t known, std::uint64_t term) {
  if (known == 0) return true;
  return term > known && (round_of(term) > round_of(known) || node_of(known) == node);
}

// Values of RequestHeader::copied. They mark the sync points by which a primary copies its whole
// region to a node whose own copy is not the outcome of sync points, and the last one of these.
inline constexpr std::uint32_t kOfCopy = 1;
inline constexpr std::uint32_t kEndOfCopy = 2;

// Precedes the data of each request. The requests of a sync point are consecutive in a log and have
// consecutive ids; the last one is the one whose index is count - 1 (the end mark).
struct RequestHeader {
  std::uint64_t id = 0;
  std::uint64_t offset = 0;  // where the data belongs in the data area
  std::uint32_t length = 0;
  std::uint32_t index = 0;   // among the requests of its sync point
  std::uint32_t count = 0;   // requests of the sync point
  std::uint32_t copied = 0;  // 0, kOfCopy or kEndOfCopy
  std::uint32_t crc =
      0;  // checksum of the fields above and the data; 0 with persistence as in the paper
  std::uint32_t reserved[7] = {};
};
static_assert(offsetof(RequestHeader, crc) == 32);
static_assert(sizeof(RequestHeader) == kCacheLine);

// The checksum that a request with this header and data must have.
std::uint32_t checksum(const RequestHeader& header, std::span<const std::byte> data);

struct Shape {
  std::uint64_t size = 0;  // bytes of the data area
  std::uint64_t logs = 0;
  std::uint64_t slots = 0;       // per log
  std::uint64_t slot_bytes = 0;  // data bytes per slot
  std::uint64_t checked = 0;     // 1: requests have checksums

  Shape() = default;
  Shape(const services::MemoryConfig& config, const Parameters& parameters);

  Bytes slot_size() const { return sizeof(RequestHeader) + round_up(slot_bytes, kCacheLine); }
  // Returns the offset, in the region of the logs, of the slot at `position` of an endless log.
  Bytes slot_offset(std::uint64_t log, std::uint64_t position) const;
  Bytes log_size() const { return slots * slot_size(); }
  Bytes logs_size() const;

  friend bool operator==(const Shape&, const Shape&) = default;
};
static_assert(sizeof(Shape) == 40);

// The id of the last request that has been applied to the data area, as have all before it;
// durable, unless persistence is as in the paper. A data area on a disk may hold more, which the
// logs then still have.
inline constexpr Bytes kAppliedOffset = 256;
// kIncomplete while the data area is not the outcome of sync points: it is being copied from the
// primary, or it is the primary's own. kAlone if it belongs to a primary that has gone on without a
// copy: no other node may have what it has acknowledged.
inline constexpr Bytes kIncompleteOffset = 264;
inline constexpr std::uint64_t kComplete = 0;
inline constexpr std::uint64_t kIncomplete = 1;
inline constexpr std::uint64_t kAlone = 2;
// On a primary: the copies that it has given up since they were given the whole region, a bit for
// each. They lack sync points.
inline constexpr Bytes kGivenUpOffset = 272;
// The term that the copy has begun last. If it is later than that of the last applied id, a failure
// has interrupted DataArea::begin_term(), which recovery then completes.
inline constexpr Bytes kBegunOffset = 280;
// 1 if the sync points of this term arrive in the background: they were acknowledged before they
// arrived, so one after a gap must not be applied without those in the gap.
inline constexpr Bytes kInBackgroundOffset = 288;
inline constexpr Bytes kSlotsOffset = 512;

struct Regions {
  std::unique_ptr<pmem::Region> data;  // on the requested medium
  std::unique_ptr<pmem::Region> logs;
  bool created = false;  // the data area was made now, not found
};

// Opens a node's regions, or creates them, with the data area on `medium`; if it is on the other
// one, it is copied first. Throws UsageError if they exist with another shape.
Regions open_regions(Node& node, const std::string& name, const Shape& shape, pmem::Medium medium);
// Copies the data area from the disk into persistent memory, and records durably that it is there
// from now on. Nobody may change it meanwhile.
std::unique_ptr<pmem::Region> load_from_disk(Node& node, const std::string& name,
                                             pmem::Region& logs);

}  // namespace perdura::systems::mojim
