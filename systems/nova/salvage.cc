#include "systems/nova/salvage.h"

#include <unordered_set>

namespace perdura::systems::nova {

namespace {

struct Entry {
  Bytes page = 0;
  Bytes place = 0;
  std::vector<std::byte> bytes{};

  EntryHeader header() const {
    EntryHeader header;
    std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
    return header;
  }
};

class Salvage {
 public:
  Salvage(pmem::Region& region, const Geometry& geometry, std::uint64_t number,
          std::uint64_t generation, const std::function<bool(std::uint64_t)>& is_anothers)
      : region_(region),
        geometry_(geometry),
        number_(number),
        generation_(generation),
        is_anothers_(is_anothers) {}

  // The intact entries in the order of the log. The walk ends at a page whose link is damaged; but
  // the last page is also known from the tail.
  std::vector<Entry> entries(Bytes head, std::uint64_t tail) {
    found_.clear();
    seen_.clear();
    const Bytes end = end_of(tail);
    const Bytes last = end / kBlock * kBlock;
    const Bytes used_of_last = end - last <= geometry_.trailer_in_page() ? end - last : 0;
    for (Bytes page = head; can_be_page(page) && seen_.insert(page).second;) {
      const Bytes next = read_page(page, page == last ? used_of_last : 0);
      if (page == last) return std::move(found_);
      page = next;
    }
    if (can_be_page(last) && seen_.insert(last).second) read_page(last, used_of_last);
    return std::move(found_);
  }

 private:
  bool can_be_page(Bytes page) const {
    return page % kBlock == 0 && geometry_.is_data(page / kBlock) && !is_anothers_(page / kBlock);
  }

  // Reads the entries of a page and returns where the next page should be. `used` is 0 if only the
  // page itself says how much of it is used.
  Bytes read_page(Bytes page, Bytes used) {
    const Bytes room = geometry_.trailer_in_page();
    const auto trailer = region_.read_object<PageTrailer>(page + room);
    const bool is_own = trailer.inode == number_ && trailer.generation == generation_;
    if (used == 0) {
      const bool says = is_own && trailer.used > 0 && trailer.used <= room;
      used = says ? trailer.used / kCacheLine * kCacheLine : room;
    }
    const std::size_t before = found_.size();
    for (Bytes at = 0; at < used;) {
      Entry entry{page, page + at, std::vector<std::byte>(kCacheLine)};
      region_.read(entry.place, entry.bytes);
      const Bytes length = entry.header().lines * kCacheLine;
      bool is_whole = length > 0 && length <= std::min<Bytes>(kLargestEntry, used - at);
      if (is_whole) {
        entry.bytes.resize(length);
        region_.read(entry.place, entry.bytes);
        is_whole = entry.header().crc == checksum(entry.bytes, number_, generation_, entry.place);
      }
      // The next entry may begin at any of the following lines.
      at += is_whole ? length : kCacheLine;
      if (is_whole) found_.push_back(std::move(entry));
    }
    return is_own || found_.size() > before ? trailer.next : 0;
  }

  pmem::Region& region_;
  const Geometry& geometry_;
  const std::uint64_t number_;
  const std::uint64_t generation_;
  const std::function<bool(std::uint64_t)>& is_anothers_;
  std::vector<Entry> found_;
  std::unordered_set<Bytes> seen_;
};

// The type of the inode according to its entries: all but those of extended attributes tell it.
std::uint32_t type_by(const std::vector<Entry>& entries, std::uint32_t otherwise) {
  for (const Entry& entry : entries) {
    const EntryHeader header = entry.header();
    if (header.type == EntryType::add || header.type == EntryType::remove) return S_IFDIR;
    const bool has_mode = header.type == EntryType::write || header.type == EntryType::size ||
                          header.type == EntryType::attributes;
    if (has_mode && (header.mode & S_IFMT) != 0) return header.mode & S_IFMT;
  }
  return otherwise;
}

// Drops long values whose checksum is wrong. The entry that replaced or removed such a value may be
// unreadable; then an older entry counts, whose blocks may have been written to since.
void leave_out_wrong_values(pmem::Region& region, Inode& inode) {
  if (inode.extended == nullptr) return;
  std::erase_if(*inode.extended, [&](const auto& each) {
    return !each.second.blocks.empty() && !read_long_value(region, each.second);
  });
}

// Drops blocks that belong to another inode, or that this one has twice.
void leave_out_shared(Inode& inode, const std::function<bool(std::uint64_t)>& is_anothers) {
  std::unordered_set<std::uint64_t> own;
  for (const LogPage& page : inode.log.pages) own.insert(page.offset / kBlock);
  std::vector<std::uint64_t> shared;
  inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t index, Mapped mapped) {
    if (is_anothers(mapped.block()) || !own.insert(mapped.block()).second) shared.push_back(index);
    return true;
  });
  for (const std::uint64_t index : shared) {
    inode.blocks.erase(index, index, [&](std::uint64_t, Mapped old) {
      inode.log.drop(old.page());
      --inode.block_count;
    });
  }
  if (inode.extended == nullptr) return;
  std::erase_if(*inode.extended, [&](const auto& each) {
    for (const Extent& extent : each.second.blocks) {
      for (std::uint64_t i = 0; i < extent.count; ++i) {
        if (is_anothers(extent.first + i) || !own.insert(extent.first + i).second) return true;
      }
    }
    return false;
  });
}

}  // namespace

bool salvage(pmem::Region& region, const Geometry& geometry, Inode& inode, InodeRecord& record,
             std::uint32_t type, const std::function<bool(std::uint64_t)>& is_anothers) {
  InodeBase& base = record.base;
  const bool has_base = problem_with(geometry, inode.number, base).empty();
  const std::uint64_t generation = has_base ? base.generation : record.state >> 1;
  inode.loaded = true;
  inode.exists = false;
  inode.holds = 0;

  Salvage reader(region, geometry, inode.number, generation, is_anothers);
  const std::uint64_t which = version_of(record.tail) & 1;
  std::vector<Entry> entries = reader.entries(record.head[which], record.tail);
  if (entries.empty()) entries = reader.entries(record.head[1 - which], record.tail);

  if (!has_base) {
    // A repair that was interrupted may have removed the names that told the type. A regular file
    // without contents is then all that can be kept.
    type = type_by(entries, type != 0 ? type : S_IFREG);
    // A symbolic link cannot be salvaged: its target is in the record.
    if (type != S_IFREG && type != S_IFDIR) return false;
    const bool is_root = inode.number == static_cast<std::uint64_t>(fs::kRootInode);
    base = InodeBase{.mode = type | (is_root           ? 0755U
                                     : type == S_IFDIR ? 0700U
                                                       : 0600U),
                     .number = inode.number,
                     .generation = generation,
                     .links = 1};
    base.crc = checksum(base);
  } else if (base.target_block != 0 && is_anothers(base.target_block)) {
    return false;
  }
  record.state = state_word(generation, true);
  inode.generation = generation;
  inode.exists = true;
  inode.damaged = false;
  inode.begin(base);
  if (inode.is(S_IFDIR) &&
      (parent_of(record.parent) == 0 || parent_of(record.parent) > geometry.inodes)) {
    record.parent = parent_word_after(record.parent, static_cast<std::uint64_t>(fs::kRootInode));
  }
  inode.parent_word = record.parent;
  inode.log.tail = record.tail;
  inode.log.version = version_of(record.tail);
  for (const Entry& entry : entries) {
    if (inode.log.pages.empty() || inode.log.pages.back().offset != entry.page) {
      inode.log.pages.push_back({.offset = entry.page});
    }
    const EntryView view{entry.bytes, entry.place, inode.log.last_page()};
    if (problem_with(geometry, inode, view).empty()) apply(inode, view, nullptr);
  }
  leave_out_wrong_values(region, inode);
  leave_out_shared(inode, is_anothers);
  return true;
}

}  // namespace perdura::systems::nova
