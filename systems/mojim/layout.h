// What a node of Mojim keeps in persistent memory: the region NAME, which is the data area, and the
// region NAME.logs beside it, into which a copy receives what is synced (section 3.2.2). The data
// area of a mirror of M-syncdisk is the region NAME.disk on a disk instead.
//
//   0      +--------------------------------------------------------------+
//          | magic | version, on disk, crc | shape                        |   as long as it is
//          there
//   256    +--------------------------------------------------------------+
//          | applied | incomplete | given up | term that begins | in      |   the state
//          | the background                                               |
//   512    +--------------------------------------------------------------+
//          | log 0: slots, a ring; each a request: header | data          |
//          | log 1: ...                                                   |
//          +--------------------------------------------------------------+
//
// The slots are the buffers into which the device places what the node before SENDs, so a log is
// written without this node's CPU. Which slots hold requests that have not been applied is nowhere
// in memory: recovery looks at all of them.
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

// Ids are unique over all connections, and sync points take effect in their order. The upper bits
// of an id are its term. Each primary has another term, and begins with id 1 of it. So the id that
// was applied last also says whose requests are taken.
inline constexpr int kTermShift = 40;
constexpr std::uint64_t term_of(std::uint64_t id) { return id >> kTermShift; }
constexpr std::uint64_t begin_of(std::uint64_t term) { return term << kTermShift; }

// Copies that are promoted without having heard of each other count the same primaries before them.
// So a term is a round, which is how many there have been as far as the node knows, and in its
// lower bits the number of the node: of two nodes of one round, the later term is that of the node
// with the greater number. A node never begins the same round twice.
inline constexpr int kRoundShift = 6;
inline constexpr NodeId kMostNodes = NodeId{1} << kRoundShift;
inline constexpr std::uint64_t kMostRounds = std::uint64_t{1} << (64 - kTermShift - kRoundShift);
constexpr std::uint64_t round_of(std::uint64_t term) { return term >> kRoundShift; }
constexpr NodeId node_of(std::uint64_t term) { return static_cast<NodeId>(term % kMostNodes); }
// The one that this node begins when `known` is the latest of which it has heard; 0: of none. Terms
// of regions that are older than rounds are numbers from 1 on, and none of a first round follows.
constexpr std::uint64_t term_after(std::uint64_t known, NodeId node) {
  const std::uint64_t before = known == 0 ? 0 : std::max<std::uint64_t>(round_of(known), 1);
  return (before + 1) << kRoundShift | node;
}
// Whether a node that has heard of no later term than `known` follows the primary that begins this
// one. A primary of the same round has not heard of the one that the node has followed so far; where
// the node itself was that one, those that have followed it say so.
constexpr bool follows(NodeId node, std::uint64_t known, std::uint64_t term) {
  if (known == 0) return true;
  return term > known && (round_of(term) > round_of(known) || node_of(known) == node);
}

// Sync points by which a primary copies its whole region to a node whose own copy is not the
// outcome of sync points, until the last one of them.
inline constexpr std::uint32_t kOfCopy = 1;
inline constexpr std::uint32_t kEndOfCopy = 2;

// In front of the data of each request. The requests of a sync point are consecutive in a log and
// have consecutive ids; the last one is the one whose index is count - 1 (the end mark).
struct RequestHeader {
  std::uint64_t id = 0;
  std::uint64_t offset = 0;  // of the data, in the data area
  std::uint32_t length = 0;
  std::uint32_t index = 0;   // among the requests of its sync point
  std::uint32_t count = 0;   // of those
  std::uint32_t copied = 0;  // kOfCopy, kEndOfCopy
  std::uint32_t crc = 0;     // of all before it and of the data; 0 with persistence as in the paper
  std::uint32_t reserved[7] = {};
};
static_assert(offsetof(RequestHeader, crc) == 32);
static_assert(sizeof(RequestHeader) == kCacheLine);

// The checksum that a request has to have.
std::uint32_t checksum(const RequestHeader& header, std::span<const std::byte> data);

struct Shape {
  std::uint64_t size = 0;  // of the data area
  std::uint64_t logs = 0;
  std::uint64_t slots = 0;       // of each log
  std::uint64_t slot_bytes = 0;  // of data, in each slot
  std::uint64_t checked = 0;     // 1: requests have checksums

  Shape() = default;
  Shape(const services::MemoryConfig& config, const Parameters& parameters);

  Bytes slot_size() const { return sizeof(RequestHeader) + round_up(slot_bytes, kCacheLine); }
  // Of the slot that has the position `position` of an endless log.
  Bytes slot_offset(std::uint64_t log, std::uint64_t position) const;
  Bytes log_size() const { return slots * slot_size(); }
  Bytes logs_size() const;

  friend bool operator==(const Shape&, const Shape&) = default;
};
static_assert(sizeof(Shape) == 40);

// The id of the last request that is part of the data area, as all before it are; durably, unless
// persistence is as in the paper. On a disk the data area may hold more: what the logs still have.
inline constexpr Bytes kAppliedOffset = 256;
// kIncomplete while the data area is no outcome of sync points: it is being copied from the primary,
// or it is the primary's own. kAlone if it is that of a primary that has gone on without a copy:
// nobody else may have what it has acknowledged.
inline constexpr Bytes kIncompleteOffset = 264;
inline constexpr std::uint64_t kComplete = 0;
inline constexpr std::uint64_t kIncomplete = 1;
inline constexpr std::uint64_t kAlone = 2;
// Of a primary: which copies it has given up, a bit for each, since they had all of the region.
// They lack sync points.
inline constexpr Bytes kGivenUpOffset = 272;
// The term that a copy has begun last. While it is later than that of the id that was applied last,
// the copy applies what the primary before may have been told to be safe, whatever is missing.
inline constexpr Bytes kBegunOffset = 280;
// 1 if the sync points of this term come in the background: they were acknowledged before they were
// here, so one behind a gap must not be there without the others.
inline constexpr Bytes kInBackgroundOffset = 288;
inline constexpr Bytes kSlotsOffset = 512;

struct Regions {
  std::unique_ptr<pmem::Region> data;  // of the medium that was asked for
  std::unique_ptr<pmem::Region> logs;
  bool created = false;  // now; else they were there
};

// Opens a node's regions, or makes them, with the data area on this medium: if it is on the other
// one it is copied first. Throws UsageError if they are there with another shape.
Regions open_regions(Node& node, const std::string& name, const Shape& shape, pmem::Medium medium);
// Copies the data area from the disk into persistent memory, where it is from then on, also if a
// failure follows. Nobody may change it meanwhile.
std::unique_ptr<pmem::Region> load_from_disk(Node& node, const std::string& name,
                                             pmem::Region& logs);

}  // namespace perdura::systems::mojim
