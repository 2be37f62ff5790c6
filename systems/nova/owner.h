// The contract between a volume and the system whose metadata it holds. nova itself keeps the data of
// files in blocks of its region. A system that keeps it elsewhere, such as on other nodes, gives its
// volumes an owner (Geometry::owner), which knows that data: then the log entries of files refer to
// numbered pages of the owner instead of blocks. Log pages, long values of extended attributes and
// long targets of links are blocks of the region in any case.
//
// With an owner, the following holds:
//
// - The operations that read, write, allocate, zero or map data (operations.h) must not be called,
//   since the volume cannot reach it. Holes can be punched in whole pages. A file that grows from
//   within a page keeps the rest of that page, which whoever truncates the file has to zero.
// - Opening the volume always reads all logs, also after a clean unmount, since only they tell which
//   pages are used. Before that, no page is.
// - The collection of logs merges runs of pages that are adjacent, in the file and by number, into
//   one run. So if are_pages() holds for two such runs, it must hold for both in one; an owner of
//   several stores leaves a gap between their numbers.
//
// All functions may be called by several threads at once, with inodes locked; they must neither
// suspend nor use the volume.
#pragma once

#include <cstdint>

#include "platform/base/units.h"

namespace perdura::systems::nova {

// Pages are numbered from here; the numbers of blocks are smaller.
inline constexpr std::uint64_t kFirstPage = std::uint64_t{1} << 32;
// The end of the numbers, which block maps hold in 40 bits.
inline constexpr std::uint64_t kEndOfPages = std::uint64_t{1} << 40;

class Owner {
 public:
  virtual ~Owner() = default;

  // True if all `count` pages from `first` on exist, so that a file may have its data there.
  virtual bool are_pages(std::uint64_t first, std::uint64_t count) const = 0;
  // An inode's log refers to these pages from now on, or refers to them anew. Returns how many of
  // them were used before.
  virtual std::uint64_t mark_used(std::uint64_t first, std::uint64_t count) = 0;
  // No durable word refers to these pages any more.
  virtual void free(std::uint64_t first, std::uint64_t count) = 0;
  virtual bool is_used(std::uint64_t page) const = 0;
  // Words of the inode's record, or links within its log, have changed durably: by an operation, by
  // the collection of its log, or since the inode was evicted from DRAM. Recovery does not call it.
  virtual void changed(std::uint64_t inode) = 0;
  // Whoever has looked at the volume at time `at` has seen everything that was committed up to the
  // time that is returned; at once, unless the owner shows it later. The delay of what is freed
  // (Parameters::free_delay) begins when it is seen.
  virtual Time seen_until(Time at) { return at; }
};

}  // namespace perdura::systems::nova
