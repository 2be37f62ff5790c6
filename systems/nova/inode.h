// The DRAM copy of an inode of a mounted file system: its current state and where in its log each
// part of that state is recorded. Built when the inode is first used, by reading its log.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platform/runtime/sync.h"
#include "services/fs/fs.h"
#include "systems/nova/allocator.h"
#include "systems/nova/block_map.h"
#include "systems/nova/directory.h"
#include "systems/nova/layout.h"

namespace perdura::systems::nova {

inline constexpr std::uint64_t kNoPage = ~std::uint64_t{0};

struct LogPage {
  Bytes offset = 0;        // 0: it has been freed
  std::uint64_t live = 0;  // blocks, names and attributes whose latest entry is in this page
  // The page has entries that supersede others, so it must stay as long as older pages do.
  bool ends_others = false;
};

struct Log {
  std::uint64_t tail = 0;     // the tail word, as it is in memory
  std::uint64_t version = 0;  // version that the next tail word gets
  Bytes end = 0;              // where the next entry goes if it fits; 0: there is no page
  std::vector<LogPage> pages{};
  std::uint64_t first_page = 0;    // the number of pages[0]
  std::uint64_t dead_pages = 0;    // pages that can be freed, approximately
  std::uint64_t collected_at = 0;  // length in pages at the last thorough collection
  std::vector<Bytes> spare{};      // pages reserved for the operation under way

  std::uint64_t last_page() const { return first_page + pages.size() - 1; }
  // `number` may be given modulo Mapped::kPages.
  LogPage& page(std::uint64_t number) { return pages[(number - first_page) % Mapped::kPages]; }
  void hold(std::uint64_t number) { ++page(number).live; }
  void drop(std::uint64_t number) {
    if (number != kNoPage && --page(number).live == 0) ++dead_pages;
  }
};

// An extended attribute. Its name and value stay in persistent memory.
struct Extended {
  Bytes offset = 0;  // offset of its log entry
  std::uint64_t page = 0;
  std::uint32_t name_length = 0;
  std::uint32_t value_length = 0;
  std::uint16_t lines = 0;
  std::vector<Extent> blocks{};  // blocks of a long value
};
// Reads a value that is stored in blocks. Returns nothing if its checksum is wrong.
std::optional<std::vector<std::byte>> read_long_value(pmem::Region& region,
                                                      const Extended& extended);

// An entry of the log that has yet to be applied to the inode in DRAM.
struct AppendedEntry {
  std::array<std::byte, kCacheLine> bytes{};
  Bytes offset = 0;
  std::uint64_t page = 0;
};

struct Inode {
  std::atomic<bool> used{false};  // it was used since the eviction hand last passed
  bool loaded = false;
  bool exists = false;
  bool damaged = false;
  std::uint64_t number = 0;
  std::uint64_t generation = 0;

  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 0;  // a directory has 1 until it is removed
  std::uint64_t device = 0;
  Bytes size = 0;
  fs::Timestamp accessed{};
  fs::Timestamp modified{};
  fs::Timestamp changed{};
  fs::Timestamp created{};
  std::uint64_t target_block = 0;

  std::uint64_t holds = 0;
  std::uint64_t mappings = 0;  // direct mappings (Operations::map)
  bool is_bound = false;       // somebody is told of changes of the layout (Volume::bind)
  Bytes told_size = 0;         // the size of which they know
  // The parent of a directory, as the word in memory; changes only under the lock of renames.
  std::atomic<std::uint64_t> parent_word{0};
  std::uint64_t parent() const { return parent_of(parent_word.load()); }

  Log log;
  // The log's last entries that have yet to be applied, in order; null if there are none.
  std::unique_ptr<std::vector<AppendedEntry>> waiting;
  std::uint64_t attributes_page = kNoPage;  // the last entry that sets all attributes
  std::uint64_t modified_page = kNoPage;    // the last entry that set `modified` or the size
  // The entries that set the size and the link count, if later ones have only kept them.
  std::uint64_t size_page = kNoPage;
  std::uint64_t links_page = kNoPage;
  BlockMap blocks;
  std::uint64_t block_count = 0;  // data blocks
  std::unique_ptr<Directory> directory;
  std::unique_ptr<std::map<std::string, Extended, std::less<>>> extended;

  bool is(std::uint32_t type) const { return (mode & S_IFMT) == type; }
  std::uint64_t extended_blocks() const;
  std::uint32_t shown_links() const {
    return directory != nullptr && links != 0 ? 2 + directory->subdirectories() : links;
  }
  fs::Attributes attributes() const;
  // The length of the log after a thorough collection, in cache lines.
  std::uint64_t live_lines() const;
  // Drops the cached log and all state that was read from it.
  void forget_log();
  // Sets the state that a new inode has, as `base` describes it, with an empty log.
  void begin(const InodeBase& base);
};

// A log entry that has yet to be applied.
struct EntryView {
  std::span<const std::byte> bytes;
  Bytes offset = 0;
  std::uint64_t page = 0;  // number of its log page

  template <class T>
  T as() const {
    T result;
    std::memcpy(static_cast<void*>(&result), bytes.data(), std::min(sizeof(T), bytes.size()));
    return result;
  }
  std::string_view text(std::size_t begin, std::size_t length) const {
    return {reinterpret_cast<const char*>(bytes.data()) + begin, length};
  }
};

// Returns a log entry that sets all attributes to their current values.
AttributesEntry attributes_entry(const Inode& inode);

// Applies the entry to the inode in DRAM. Blocks that the inode loses are appended to `freed`,
// unless it is null.
void apply(Inode& inode, const EntryView& entry, std::vector<Extent>* freed);

// Returns what is wrong with an inode's base record, whose generation is not checked, or with an
// entry of its log, as a phrase; empty if nothing is.
std::string problem_with(const Geometry& geometry, std::uint64_t number, const InodeBase& base);
std::string problem_with(const Geometry& geometry, const Inode& inode, const EntryView& entry);

// Builds the inode from its record and its log, neither of which is trusted. Returns what is wrong,
// as a phrase that gives the place, or an empty string; if something is wrong, the inode is marked
// damaged and has the state that the log describes before that place.
std::string load(pmem::Region& region, const Geometry& geometry, Inode& inode);
// The same for a record that the caller has read. Calls `seen`, unless it is empty, for each entry.
using SeenEntry = std::function<void(const EntryView&)>;
std::string load(pmem::Region& region, const Geometry& geometry, Inode& inode,
                 const InodeRecord& record, const SeenEntry& seen = {});

// Appends a run of blocks, merging it with the last extent if they are adjacent.
void add_extent(std::vector<Extent>& extents, std::uint64_t first, std::uint64_t count);

}  // namespace perdura::systems::nova
