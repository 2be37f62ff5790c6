#include "systems/nova/salvage.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "platform/runtime/work.h"

namespace perdura::systems::nova {

namespace {

struct SalvagedEntry {
  Bytes page = 0;
  Bytes offset = 0;
  bool is_after_loss = false;  // entries may be lost between the previous one and this one
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
          std::uint64_t generation, const BlockTest& is_anothers)
      : region_(region),
        geometry_(geometry),
        number_(number),
        generation_(generation),
        is_anothers_(is_anothers) {}

  // The intact entries in the order of the log. The walk ends at a page whose link is damaged; but
  // the last page is also known from the tail.
  std::vector<SalvagedEntry> entries(Bytes head, std::uint64_t tail) {
    found_.clear();
    empty_pages_.clear();
    seen_.clear();
    is_lost_ = false;
    const Bytes end = end_of(tail);
    const Bytes last = end / kBlock * kBlock;
    const Bytes used_of_last = end - last <= geometry_.trailer_in_page() ? end - last : 0;
    for (Bytes page = head; can_be_page(page) && seen_.insert(page).second;) {
      const Bytes next = read_page(page, page == last ? used_of_last : 0);
      if (page == last) return end_at_tail(used_of_last);
      page = next;
    }
    // The pages between this one and the last one, if there are any, cannot be found.
    is_lost_ = end > 0 || !found_.empty();
    if (can_be_page(last) && seen_.insert(last).second) {
      read_page(last, used_of_last);
      return end_at_tail(used_of_last);
    }
    return std::move(found_);
  }
  // True if entries may be lost that came after all of entries().
  bool has_lost_the_end() const { return is_lost_; }
  // The pages of which no entry is left, but which are the log's and link its other pages.
  const std::vector<Bytes>& empty_pages() const { return empty_pages_; }

 private:
  std::vector<SalvagedEntry> end_at_tail(Bytes used_of_last) {
    is_lost_ |= used_of_last == 0;
    return std::move(found_);
  }

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
      SalvagedEntry entry{
          .page = page, .offset = page + at, .bytes = std::vector<std::byte>(kCacheLine)};
      region_.read(entry.offset, entry.bytes);
      const Bytes length = entry.header().lines * kCacheLine;
      bool is_whole = length > 0 && length <= std::min<Bytes>(kLargestEntry, used - at);
      if (is_whole) {
        entry.bytes.resize(length);
        region_.read(entry.offset, entry.bytes);
        is_whole = entry.header().crc == checksum(entry.bytes, number_, generation_, entry.offset);
      }
      // The next entry may begin at any of the following lines.
      at += is_whole ? length : kCacheLine;
      if (!is_whole) {
        is_lost_ = true;
        continue;
      }
      entry.is_after_loss = std::exchange(is_lost_, false);
      found_.push_back(std::move(entry));
    }
    if (found_.size() > before) return trailer.next;
    if (is_own) empty_pages_.push_back(page);
    return is_own ? trailer.next : 0;
  }

  pmem::Region& region_;
  const Geometry& geometry_;
  const std::uint64_t number_;
  const std::uint64_t generation_;
  const BlockTest& is_anothers_;
  std::vector<SalvagedEntry> found_;
  std::vector<Bytes> empty_pages_;
  std::unordered_set<Bytes> seen_;
  bool is_lost_ = false;  // since the last entry that was found
};

// The type of the inode according to its entries: all but those of extended attributes tell it.
std::uint32_t type_by(const std::vector<SalvagedEntry>& entries, std::uint32_t otherwise) {
  for (const SalvagedEntry& entry : entries) {
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

template <class Test>
bool any_block(const Extended& value, const Test& test) {
  for (const Extent& extent : value.blocks) {
    for (std::uint64_t i = 0; i < extent.count; ++i) {
      if (test(extent.first + i)) return true;
    }
  }
  return false;
}

bool has_target(pmem::Region& region, const InodeBase& base) {
  std::vector<std::byte> target(base.target_length);
  region.read(base.target_block * kBlock, target);
  return crc32(0, target) == base.target_crc;
}

void make_holes(Inode& inode, const std::vector<std::uint64_t>& indexes) {
  for (const std::uint64_t index : indexes) {
    inode.blocks.erase(index, index, [&](std::uint64_t, Mapped old) {
      inode.log.drop(old.page());
      --inode.block_count;
    });
  }
}

// Applies the entries that the log has left. Entries after lost ones get a page number of their own,
// by which they can be told from the entries before.
Salvaged apply_all(const Geometry& geometry, Inode& inode,
                   const std::vector<SalvagedEntry>& entries, bool has_lost_the_end) {
  Salvaged salvaged{.is_readable = true, .has_lost_entries = false};
  Bytes page = 0;
  bool is_after_loss = false;
  for (const SalvagedEntry& entry : entries) {
    is_after_loss |= entry.is_after_loss;
    const bool is_new_page = entry.page != page;
    // A page that is in the log twice would be freed twice; one without an offset is none.
    const LogPage next{.offset = is_new_page ? entry.page : 0};
    if (is_new_page || is_after_loss) inode.log.pages.push_back(next);
    page = entry.page;
    if (is_after_loss) {
      salvaged.has_lost_entries = true;
      salvaged.first_certain = inode.log.last_page();
    }
    const EntryView view{entry.bytes, entry.offset, inode.log.last_page()};
    // An entry that is impossible in this log counts as lost.
    is_after_loss = !problem_with(geometry, inode, view).empty();
    if (!is_after_loss) apply(inode, view, nullptr);
  }
  if (is_after_loss || has_lost_the_end) {
    salvaged.has_lost_entries = true;
    salvaged.first_certain = inode.log.first_page + inode.log.pages.size();
  }
  return salvaged;
}

}  // namespace

bool has_lost_its_state(const Geometry& geometry, std::uint64_t number, const InodeRecord& record) {
  return (record.state & 1) == 0 && record.base.generation == record.state >> 1 &&
         problem_with(geometry, number, record.base).empty();
}

std::uint64_t leave_out_doubtful(Inode& inode, const Salvaged& salvaged, const BlockTest& is_own,
                                 const BlockTest& is_free) {
  std::vector<std::uint64_t> doubtful;
  inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t index, Mapped mapped) {
    if (salvaged.is_doubtful(mapped.page()) && !is_own(mapped.block())) doubtful.push_back(index);
    return true;
  });
  make_holes(inode, doubtful);
  if (inode.extended != nullptr) {
    std::erase_if(*inode.extended, [&](const auto& each) {
      return salvaged.is_doubtful(each.second.page) && any_block(each.second, is_free);
    });
  }
  return doubtful.size();
}

void leave_out_shared(Inode& inode, const BlockTest& is_anothers) {
  // The page of the last entry that claims the block.
  std::unordered_map<std::uint64_t, std::uint64_t> last;
  const auto claim = [&](std::uint64_t block, std::uint64_t page) {
    std::uint64_t& latest = last.try_emplace(block, page).first->second;
    latest = std::max(latest, page);
  };
  for (const LogPage& page : inode.log.pages) claim(page.offset / kBlock, kNoPage);
  inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, Mapped mapped) {
    claim(mapped.block(), mapped.page());
    return true;
  });
  if (inode.extended != nullptr) {
    for (const auto& [name, value] : *inode.extended) {
      any_block(value, [&](std::uint64_t block) {
        claim(block, value.page);
        return false;
      });
    }
  }
  std::unordered_set<std::uint64_t> own;
  const auto is_not_own = [&](std::uint64_t block, std::uint64_t page) {
    return is_anothers(block) || last.at(block) != page || !own.insert(block).second;
  };
  std::vector<std::uint64_t> shared;
  inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t index, Mapped mapped) {
    if (is_not_own(mapped.block(), mapped.page())) shared.push_back(index);
    return true;
  });
  make_holes(inode, shared);
  if (inode.extended == nullptr) return;
  std::erase_if(*inode.extended, [&](const auto& each) {
    return any_block(each.second,
                     [&](std::uint64_t block) { return is_not_own(block, each.second.page); });
  });
}

Salvaged salvage(pmem::Region& region, const Geometry& geometry, Inode& inode, InodeRecord& record,
                 std::uint32_t type, const BlockTest& is_anothers) {
  InodeBase& base = record.base;
  const bool has_base = problem_with(geometry, inode.number, base).empty();
  const std::uint64_t generation = has_base ? base.generation : record.state >> 1;
  inode.loaded = true;
  inode.exists = false;
  inode.holds = 0;

  Salvage reader(region, geometry, inode.number, generation, is_anothers);
  const std::uint64_t which = version_of(record.tail) & 1;
  std::vector<SalvagedEntry> entries = reader.entries(record.head[which], record.tail);
  bool has_lost_the_end = reader.has_lost_the_end();
  if (entries.empty()) {
    // The other head's log is an earlier one.
    entries = reader.entries(record.head[1 - which], record.tail);
    has_lost_the_end |= !entries.empty();
  }

  if (!has_base) {
    // A repair that was interrupted may have removed the names that told the type. A regular file
    // without contents is then all that can be kept.
    has_lost_the_end |= type_by(entries, type) == 0;
    type = type_by(entries, type != 0 ? type : S_IFREG);
    // A symbolic link cannot be salvaged: its target is in the record.
    if (type != S_IFREG && type != S_IFDIR) return {};
    const bool is_root = inode.number == static_cast<std::uint64_t>(fs::kRootInode);
    base = InodeBase{.mode = type | (is_root           ? 0755U
                                     : type == S_IFDIR ? 0700U
                                                       : 0600U),
                     .number = inode.number,
                     .generation = generation,
                     .links = 1};
    base.crc = checksum(base);
  } else if (base.target_block != 0 &&
             (is_anothers(base.target_block) || !has_target(region, base))) {
    return {};
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
  const Salvaged salvaged = apply_all(geometry, inode, entries, has_lost_the_end);
  for (const Bytes page : reader.empty_pages()) inode.log.pages.push_back({.offset = page});
  leave_out_wrong_values(region, inode);
  leave_out_shared(inode, is_anothers);
  return salvaged;
}

}  // namespace perdura::systems::nova
