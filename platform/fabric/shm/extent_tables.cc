#include "platform/fabric/shm/extent_tables.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "platform/base/error.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::fabric::shm {
namespace {

constexpr Bytes kHeader = offsetof(SharedExtents, extents);

constexpr std::uint64_t published_as(std::uint64_t offset, std::uint32_t changes) {
  return (offset / kCacheLine) << 32 | changes;
}
constexpr std::uint64_t offset_of(std::uint64_t published) {
  return (published >> 32) * kCacheLine;
}

}  // namespace

ExtentTables::Room ExtentTables::take(Bytes size) {
  size = std::bit_ceil(std::max(size, kCacheLine));
  auto& free = free_[size];
  if (!free.empty()) {
    const Room room{free.back(), size};
    free.pop_back();
    return room;
  }
  if (size > kExtentRoom - next_) {
    throw PlatformError(
        fmt::format("no room for a table of extents of {} bytes: a node has {} for all; register "
                    "fewer or larger extents",
                    size, kExtentRoom));
  }
  // Memory is allocated now: if /dev/shm is full, this is an error here, and would be a SIGBUS at
  // the first access.
  constexpr Bytes kPage = 4 * KiB;
  std::byte* const begin = segment_->extents.data() + next_;
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / kPage * kPage;
  const auto end = round_up(reinterpret_cast<std::uintptr_t>(begin) + size, kPage);
  if (::madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE) != 0) {
    throw PlatformError(fmt::format("cannot reserve {} bytes for a table of extents: {}", size,
                                    pmem::mapped::error_text(errno)));
  }
  const Room room{next_, size};
  next_ += size;
  return room;
}

void ExtentTables::publish(Word& published, const ExtentTable& table) {
  const auto extents = table.extents();
  const Room room = take(kHeader + extents.size() * sizeof(SharedExtent));
  auto& shared = *reinterpret_cast<SharedExtents*>(segment_->extents.data() + room.offset);
  shared.count.store(extents.size(), std::memory_order_relaxed);
  SharedExtent* to = shared.extents.data();
  for (const Extent& extent : extents) {
    to->at.store(extent.at, std::memory_order_relaxed);
    to->offset.store(extent.offset, std::memory_order_relaxed);
    to->length.store(extent.length, std::memory_order_relaxed);
    ++to;
  }
  // The number of changes is never 0, since a word of 0 stands for "no table".
  if (++changes_ == 0) ++changes_;
  published.store(published_as(room.offset, changes_), std::memory_order_seq_cst);
  // The word is replaced before the old table's room is reused, so a reader that is still reading
  // the old table finds that the word has changed and reads again.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (const auto old = used_.find(&published); old != used_.end()) {
    free_[old->second.size].push_back(old->second.offset);
    old->second = room;
  } else {
    used_.emplace(&published, room);
  }
}

void ExtentTables::withdraw(Word& published) {
  const auto old = used_.find(&published);
  if (old == used_.end()) return;
  published.store(0, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  free_[old->second.size].push_back(old->second.offset);
  used_.erase(old);
}

namespace {

// Calls use(count, extent_of) with the table that is published as `published`, again if the table
// has changed meanwhile. Returns the word that published it, or 0 if there is no table.
template <class Use>
std::uint64_t use_published(const NodeSegment& segment, const Word& published, const Use& use) {
  for (;;) {
    const std::uint64_t seen = published.load(std::memory_order_seq_cst);
    if (seen == 0) return 0;
    const Bytes offset = offset_of(seen);
    const auto& shared = *reinterpret_cast<const SharedExtents*>(segment.extents.data() + offset);
    // The room may have been reused for another table meanwhile, so the count may be anything; it
    // is bounded here, and the word is checked below.
    const std::uint64_t count =
        std::min<std::uint64_t>(shared.count.load(std::memory_order_relaxed),
                                (kExtentRoom - offset - kHeader) / sizeof(SharedExtent));
    const SharedExtent* const extents = shared.extents.data();
    use(count, [extents](std::size_t i) {
      return Extent{extents[i].at.load(std::memory_order_relaxed),
                    extents[i].offset.load(std::memory_order_relaxed),
                    extents[i].length.load(std::memory_order_relaxed)};
    });
    std::atomic_thread_fence(std::memory_order_acquire);
    if (published.load(std::memory_order_relaxed) == seen) return seen;
  }
}

}  // namespace

bool find_published(const NodeSegment& segment, const Word& published, Bytes at, Bytes length,
                    std::vector<RegionPiece>& pieces, std::uint64_t& seen) {
  bool found = false;
  seen = use_published(segment, published, [&](std::uint64_t count, const auto& extent_of) {
    found = find_pieces(count, extent_of, at, length, pieces);
  });
  return seen != 0 && found;
}

void add_published(const NodeSegment& segment, const Word& published,
                   std::span<const DirtyRange> ranges, std::vector<RegionPiece>& pieces) {
  const std::size_t before = pieces.size();
  use_published(segment, published, [&](std::uint64_t count, const auto& extent_of) {
    pieces.resize(before);
    for (const DirtyRange& range : ranges) {
      add_mapped(count, extent_of, range.begin, range.end, pieces);
    }
  });
}

}  // namespace perdura::fabric::shm
