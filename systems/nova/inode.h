// An inode as it is in DRAM while the file system is mounted: what its log says, and where that
// stands. Made when the inode is first used, by reading the log.
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
  std::uint64_t live = 0;  // what stands in it and still holds
  // It has entries that end what others say, so it must stay as long as older pages do.
  bool ends_others = false;
};

struct Log {
  std::uint64_t tail = 0;     // the word, as it is in memory
  std::uint64_t version = 0;  // that the next word gets
  Bytes end = 0;              // where the next entry goes if it fits; 0: there is no page
  std::vector<LogPage> pages{};
  std::uint64_t first_page = 0;    // the number of pages[0]
  std::uint64_t dead_pages = 0;    // about, that can be freed
  std::uint64_t collected_at = 0;  // pages, when garbage was last collected thoroughly
  std::vector<Bytes> spare{};      // for the operation under way

  std::uint64_t last_page() const { return first_page + pages.size() - 1; }
  // `number` may be given modulo Mapped::kPages.
  LogPage& page(std::uint64_t number) { return pages[(number - first_page) % Mapped::kPages]; }
  void hold(std::uint64_t number) { ++page(number).live; }
  void drop(std::uint64_t number) {
    if (number != kNoPage && --page(number).live == 0) ++dead_pages;
  }
};

struct Extended {
  Bytes place = 0;  // of its entry
  std::uint64_t page = 0;
  std::uint32_t name_length = 0;
  std::uint32_t value_length = 0;
  std::uint16_t lines = 0;
  std::vector<Extent> blocks{};  // of a long value
};
// A value that is in blocks; nothing if its checksum is wrong.
std::optional<std::vector<std::byte>> read_long_value(pmem::Region& region,
                                                      const Extended& extended);

struct Inode {
  std::atomic<bool> used{false};  // since inodes that are not were looked for
  bool loaded = false;
  bool exists = false;
  bool damaged = false;
  std::uint64_t number = 0;
  std::uint64_t generation = 0;

  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 0;  // of a directory 1 as long as it is not removed
  std::uint64_t device = 0;
  Bytes size = 0;
  fs::Timestamp accessed{};
  fs::Timestamp modified{};
  fs::Timestamp changed{};
  fs::Timestamp created{};
  std::uint64_t target_block = 0;

  std::uint64_t holds = 0;
  std::uint64_t mappings = 0;  // for direct access
  // Of a directory; changes under the lock of renames.
  std::atomic<std::uint64_t> parent_word{0};
  std::uint64_t parent() const { return parent_of(parent_word.load()); }

  Log log;
  std::uint64_t attributes_page = kNoPage;  // with the last entry of all attributes
  std::uint64_t modified_page = kNoPage;    // with the last one that set `modified` or the size
  BlockMap blocks;
  std::uint64_t block_count = 0;  // of data
  std::unique_ptr<Directory> directory;
  std::unique_ptr<std::map<std::string, Extended, std::less<>>> extended;

  bool is(std::uint32_t type) const { return (mode & S_IFMT) == type; }
  std::uint64_t extended_blocks() const;
  std::uint32_t shown_links() const {
    return directory != nullptr && links != 0 ? 2 + directory->subdirectories() : links;
  }
  fs::Attributes attributes() const;
  // What a log with nothing dead in it would have.
  std::uint64_t live_lines() const;
  // Everything that is in the log, and the log itself.
  void forget_log();
  void begin(const InodeBase& base);
};

// An entry in front of its application.
struct EntryView {
  std::span<const std::byte> bytes;
  Bytes place = 0;
  std::uint64_t page = 0;  // number

  template <class T>
  T as() const {
    T result;
    std::memcpy(static_cast<void*>(&result), bytes.data(), std::min(sizeof(T), bytes.size()));
    return result;
  }
  std::string_view text(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<const char*>(bytes.data()) + offset, length};
  }
};

// That says all attributes that such an entry says, as they are.
AttributesEntry attributes_entry(const Inode& inode);

// Does to the inode what the entry says; what it no longer has is appended to `freed`.
void apply(Inode& inode, const EntryView& entry, std::vector<Extent>* freed);

// The damage of what an inode was made with, but for the generation, or with an entry of its
// log, as a phrase; empty if it can be believed.
std::string problem_with(const Geometry& geometry, std::uint64_t number, const InodeBase& base);
std::string problem_with(const Geometry& geometry, const Inode& inode, const EntryView& entry);

// Makes the inode from its record and its log, without believing either. Returns what is wrong, as
// a phrase with its place; then the inode is what the log says before that.
std::string load(pmem::Region& region, const Geometry& geometry, Inode& inode);
// The same with a record that was read before. `seen`, if there is one, is called with each entry.
using SeenEntry = std::function<void(const EntryView&)>;
std::string load(pmem::Region& region, const Geometry& geometry, Inode& inode,
                 const InodeRecord& record, const SeenEntry& seen = {});

void add_extent(std::vector<Extent>& extents, std::uint64_t first, std::uint64_t count);

}  // namespace perdura::systems::nova
