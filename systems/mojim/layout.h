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

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "platform/base/units.h"
#include "platform/platform.h"
#include "systems/mojim/parameters.h"

namespace perdura::systems::mojim {

// Ids are unique over all connections, and sync points take effect in their order. The upper bits
// of an id are its term: how many primaries there have been, which begin with id 1 of their terms.
// So the id that was applied last also says whose requests are taken.
inline constexpr int kTermShift = 40;
constexpr std::uint64_t term_of(std::uint64_t id) { return id >> kTermShift; }
constexpr std::uint64_t begin_of(std::uint64_t term) { return term << kTermShift; }

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
// 1 while the data area is no outcome of sync points: it is being copied from the primary, or it is
// the primary's own.
inline constexpr Bytes kIncompleteOffset = 264;
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
