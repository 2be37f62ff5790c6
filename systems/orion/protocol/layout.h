// The layout of an Orion file system on its servers, and the names in it ("Building Distributed Systems
// with Non-Volatile Main Memories and RDMA Networks", Yang, 2019; sections 4.1 and 4.2).
//
// The metadata server (MDS) has the inodes and their logs in a region named after the file system,
// in the layout of nova (systems/nova/layout.h). A write entry there does not refer to blocks of
// that region, but to pages of data stores, by a global page address (GPA): a number that fits where
// nova has a block number.
//
//     39      32 31                     0
//    | group + 1 | page                  |     page 0 of a store is its header, so no GPA has it
//
// All stores of a replication group have the same pages, so a GPA names a page in each of them.
// Chunks of adjacent pages are the unit in which the MDS delegates allocation to clients.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "platform/base/units.h"
#include "systems/nova/layout.h"
#include "systems/nova/owner.h"

namespace perdura::systems::orion {

inline constexpr Bytes kPage = nova::kBlock;
inline constexpr int kGroupShift = 32;
static_assert(std::uint64_t{1} << kGroupShift == nova::kFirstPage);
inline constexpr std::uint32_t kMostGroups = 254;
// A write entry of a log is for at most so many bytes (section 4.2.2).
inline constexpr Bytes kLongestWrite = 512 * MiB;

constexpr std::uint64_t gpa_of(std::uint32_t group, std::uint64_t page) {
  return std::uint64_t{group + 1} << kGroupShift | page;
}
constexpr std::uint32_t group_of(std::uint64_t gpa) {
  return static_cast<std::uint32_t>(gpa >> kGroupShift) - 1;
}
constexpr std::uint64_t page_of(std::uint64_t gpa) { return gpa & (nova::kFirstPage - 1); }

// The regions of a file system `name` on the nodes that have a part of it.
inline std::string pages_region(const std::string& name) { return name + ".pages"; }
inline std::string immediates_region(const std::string& name) { return name + ".immediates"; }
inline std::string pair_region(const std::string& name) { return name + ".pair"; }
inline std::string buffers_region(const std::string& name) { return name + ".buffers"; }

// At this offset of the MDS' region, after nova's superblock.
inline constexpr Bytes kOrionOffset = 512;
inline constexpr std::uint64_t kOrionMagic = 0x4E4F49524F445250;  // "PRDORION"
struct OrionSuperblock {
  std::uint64_t magic = 0;
  std::uint32_t crc = 0;  // covers the fields that follow
  std::uint32_t groups = 0;
  std::uint64_t pages = 0;  // in each group, page 0 included
  std::uint64_t chunk_pages = 0;
};
static_assert(sizeof(OrionSuperblock) == 32);
// A word after it counts how often the MDS has been opened.
inline constexpr Bytes kEpochOffset = kOrionOffset + sizeof(OrionSuperblock);
// A word for each data store: what the MDS knows about it (mds/members.h).
inline constexpr Bytes kMembersOffset = 1024;

// Data stores are numbered in the order of the configuration.
inline constexpr std::uint32_t kMostStores = 64;
using StoreSet = std::uint64_t;  // a bit for each store
constexpr StoreSet set_of(std::uint32_t store) { return StoreSet{1} << store; }
constexpr bool contains(StoreSet stores, std::uint32_t store) { return (stores >> store & 1) != 0; }

// The MDS changes the members of groups in steps, each of which begins an epoch. Epochs are numbered
// upwards, also over restarts of the MDS, and have at most 56 bits.
constexpr std::uint64_t first_epoch(std::uint64_t opened) { return opened << 24; }
constexpr std::uint64_t opened_of(std::uint64_t epoch) { return epoch >> 24; }

// Page 0 of a store.
inline constexpr std::uint64_t kStoreMagic = 0x524F545344525045;  // "EPRDSTOR"
struct StoreHeader {
  std::uint64_t magic = 0;
  std::uint32_t crc = 0;  // covers the fields that follow
  std::uint32_t group = 0;
  std::uint64_t pages = 0;
};
static_assert(sizeof(StoreHeader) == 24);
// A word of page 0: the last epoch in which the store was up to date, as far as it was told; 0 if it
// never was.
inline constexpr Bytes kStoreEpochOffset = kCacheLine;

// The words of an inode that change, in the order in which the MDS publishes them: a line for each
// inode in a region of DRAM, which clients READ (mds/published.h).
struct InodeWords {
  std::uint64_t state = 0;
  std::uint64_t tail = 0;
  std::array<std::uint64_t, 2> head{};
  std::uint64_t parent = 0;
  std::uint64_t epoch = 0;  // whoever reads the inode's pages must know the members of this epoch
  std::array<std::uint64_t, 2> unused{};

  bool exists() const { return (state & 1) != 0; }
  std::uint64_t generation() const { return state >> 1; }
};
static_assert(sizeof(InodeWords) == kCacheLine);

// The line before that of inode 1: the stores that clients use. `epoch` and `same_epoch` differ
// while it changes.
struct MembersLine {
  std::uint64_t epoch = 0;
  StoreSet members = 0;  // up to date: a page is READ from one of its group
  StoreSet targets = 0;  // and those that are catching up: a page is written to all of its group
  std::uint64_t same_epoch = 0;
  std::array<std::uint64_t, 4> unused{};
};
static_assert(sizeof(MembersLine) == kCacheLine);
// A file with this extended attribute is shared intensively (section 4.2.3): all of its updates are
// RPCs. The paper has an ioctl; an attribute lasts, and all clients see it.
inline constexpr std::string_view kSharedAttribute = "user.orion.shared";

// The size of a receive buffer at the MDS.
inline constexpr Bytes kMessageRoom = 4 * KiB;

}  // namespace perdura::systems::orion
