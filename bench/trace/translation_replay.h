// Replays accesses to files as accesses to registered memory, and counts the translations that a NIC
// needs for them: each file is a registration, whose table has an entry for each page or for each
// range ("Building Distributed Systems with Non-Volatile Main Memories and RDMA Networks", sections
// 5.4.2 and 5.4.3). Pages of a registration are looked up one by one; of ranges, each that an access
// touches is looked up once.
//
// A file is registered when it first occurs. If it grows, the pages that are new are entered; if it
// shrinks, they are removed; entries that a change touches leave the cache. Parts of an access
// in holes are not looked up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/base/units.h"
#include "platform/fabric/translation/pin_down_cache.h"
#include "platform/fabric/translation/range_mtt.h"
#include "platform/sim/kernel/profile.h"
#include "services/fs/trace/trace_reader.h"

namespace perdura::bench {

struct TranslationScheme {
  std::string name;
  Bytes page = 4 * KiB;
  bool has_ranges = false;  // an entry covers any number of pages that adjoin in memory
  std::uint32_t cache_entries = 4096;
  std::uint32_t cache_ways = 4;
};

// Pages of 4 KiB, pages of 2 MiB, and ranges of pages of 4 KiB.
std::vector<TranslationScheme> usual_schemes(std::uint32_t cache_entries, std::uint32_t cache_ways);

// A part of a file that adjoins in memory, or on a device.
struct FileExtent {
  Bytes at = 0;      // in the file
  Bytes target = 0;  // there
  Bytes length = 0;
  friend bool operator==(const FileExtent&, const FileExtent&) = default;
};

struct TranslationCounts {
  std::uint64_t registrations = 0;  // files that were registered
  std::uint64_t registered = 0;     // entries that were written then
  std::uint64_t changes = 0;        // sizes of files that changed, and entries with them
  std::uint64_t changed = 0;        // entries that were written then
  std::uint64_t entries = 0;        // those of all files at the end
  std::uint64_t accesses = 0;
  std::uint64_t look_ups = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t visits = 0;    // nodes of trees that misses visited; of pages, entries
  std::uint64_t in_holes = 0;  // accesses, of which at least a part was in a hole
};

// CPU time of registering and of changes, as the profile has it.
Picoseconds registration_time(const TranslationCounts& counts,
                              const sim::TranslationProfile& profile);

// The time of reading the entries that were not cached, one after the other.
Picoseconds miss_time(const TranslationCounts& counts, const sim::TranslationProfile& profile);

// Where the memory of files is whose extents are not known. Sizes are rounded down to whole pages.
struct AssumedLayout {
  // The memory of a file consists of parts of this size that do not adjoin; 0: all of it adjoins.
  Bytes extent = 0;
  // A file that grows at its end gets memory, and translations, up to a multiple of this size; 0: no
  // more than it needs.
  Bytes growth = 0;
};

class TranslationReplay {
 public:
  explicit TranslationReplay(TranslationScheme scheme, const AssumedLayout& layout = {});

  const TranslationScheme& scheme() const { return scheme_; }
  // Adds the next file. Throws UsageError, as access() does, if it has more pages than a table can
  // have.
  void add_file(Bytes size);
  // Adds one whose extents are known and do not change.
  void add_file(std::span<const FileExtent> extents);
  // Counts such a file, which will not be accessed, and returns its entries.
  std::uint64_t count_file(std::span<const FileExtent> extents);
  void access(const fs::TraceRecord& record);
  TranslationCounts counts() const;

 private:
  struct FileTable {
    fabric::RangeMtt pages;
    bool is_fixed = false;
  };
  std::uint32_t page_number(Bytes at) const;
  void map_extents(FileTable& file, std::span<const FileExtent> extents);
  void map(FileTable& file, const fabric::RangeEntry& entry);
  void grow(std::uint64_t table, Bytes from, Bytes until);
  void fill(std::uint64_t table, std::uint32_t first, std::uint64_t end);
  void truncate(std::uint64_t table, Bytes size);
  void look_up(std::uint64_t table, std::uint32_t first, std::uint32_t last);
  void look_up_pages(std::uint64_t table, std::uint32_t first, std::uint64_t end);
  std::uint64_t entries_of(const FileTable& file) const;

  TranslationScheme scheme_;
  std::uint64_t extent_;  // in pages, as the next
  std::uint64_t growth_;
  fabric::PinDownCache cache_;
  std::vector<FileTable> files_;
  TranslationCounts counts_;
  std::uint64_t written_ = 0;  // entries, by the registration or change that is under way
};

// Replays a whole trace. `extents_of` gives the extents of a file, if they are known. Throws
// UsageError if the trace is damaged, or has more pages than a table can have.
using ExtentsOf = std::function<std::optional<std::vector<FileExtent>>(const fs::TracedFile& file)>;
void replay_trace(fs::TraceReader& trace, std::span<TranslationReplay> into,
                  const ExtentsOf& extents_of = {});

}  // namespace perdura::bench
