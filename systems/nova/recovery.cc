// Mounting after a failure, unmounting, and the audit of a mounted file system.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "platform/runtime/work.h"
#include "systems/nova/salvage.h"
#include "systems/nova/volume.h"

namespace perdura::systems::nova {

// An intact record belongs to an operation that has taken effect, although its words may not have
// reached memory. A word that a later operation has changed keeps its value.
void Volume::redo_journals() {
  // A process that died may have left a record in caches only. If the words were changed before the
  // record is durable, a power failure could keep some of them and lose the record and the others.
  for (std::uint32_t i = 0; i < kJournals; ++i) {
    const Bytes offset = kJournalOffset + i * kJournalBytes;
    if (region_.load(offset) != 0) region_.flush(offset, kJournalBytes);
  }
  region_.drain();
  for (std::uint32_t i = 0; i < kJournals; ++i) {
    const Bytes offset = kJournalOffset + i * kJournalBytes;
    const auto record = region_.read_object<JournalRecord>(offset);
    if (!has_possible_count(record) || record.crc != checksum(record)) continue;
    bool redone = false;
    for (std::uint32_t word = 0; word < record.count; ++word) {
      const auto& [at, before, after] = record.words[word];
      if (!is_possible(geometry_, record.words[word])) {
        if (damage_.empty()) {
          damage_ = fmt::format("journal {} changes {:#x}, which is no word of an inode", i, at);
        }
        continue;
      }
      if (region_.load(at) != before) continue;
      region_.store(at, after);
      redone = true;
    }
    if (redone) count(Happened::redone);
  }
}

struct Volume::Scanned {
  std::vector<Bytes> pages{};            // log pages
  std::vector<std::uint64_t> orphans{};  // inodes without names
  std::vector<std::uint64_t> damaged{};  // inodes whose logs cannot be read
  std::vector<std::uint64_t> missing{};  // inodes that do not exist although names refer to them
  bool has_shared_blocks = false;

  void add(const Scanned& other) {
    pages.insert(pages.end(), other.pages.begin(), other.pages.end());
    orphans.insert(orphans.end(), other.orphans.begin(), other.orphans.end());
    damaged.insert(damaged.end(), other.damaged.begin(), other.damaged.end());
    missing.insert(missing.end(), other.missing.begin(), other.missing.end());
    has_shared_blocks |= other.has_shared_blocks;
  }
  void sort() {
    std::sort(orphans.begin(), orphans.end());
    std::sort(damaged.begin(), damaged.end());
  }
};

namespace {

// A thread for fewer inodes would not have started before they are read.
constexpr std::size_t kInodesForAThread = 1024;
constexpr std::size_t kTurn = 64;  // number of adjacent inodes that a thread reads at a time

}  // namespace

// Reads part `part` of `parts` of the inodes. Threads share only the bitmap of blocks, in which a
// block of two inodes is noticed.
void Volume::scan(std::span<const std::uint64_t> numbers, std::size_t part, std::size_t parts,
                  Scanned& found) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i / kTurn % parts != part) continue;
    const std::uint64_t number = numbers[i];
    const auto inode = std::make_unique<Inode>();
    inode->number = number;
    if (!load(region_, geometry_, *inode).empty()) {
      found.damaged.push_back(number);
      continue;
    }
    if (inode->links == 0) {
      found.orphans.push_back(number);
      continue;
    }
    std::uint64_t twice = 0;
    for (const LogPage& page : inode->log.pages) {
      found.pages.push_back(page.offset);
      twice += blocks_.mark_used(page.offset / kBlock, 1);
    }
    inode->blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, Mapped mapped) {
      twice += mark_used(mapped.block(), 1);
      return true;
    });
    if (inode->extended != nullptr) {
      for (const auto& [name, value] : *inode->extended) {
        for (const Extent& extent : value.blocks) {
          twice += blocks_.mark_used(extent.first, extent.count);
        }
      }
    }
    if (inode->target_block != 0) twice += blocks_.mark_used(inode->target_block, 1);
    if (twice > 0) found.has_shared_blocks = true;
    if (inode->directory == nullptr) continue;
    inode->directory->visit(0, [&](const Name& name) {
      if (!numbers_.is_used(name.inode)) found.missing.push_back(name.inode);
      return true;
    });
  }
}

namespace {

// Calls visit(block) for each block of the inode's log and data.
template <class Visit>
void visit_blocks(const Inode& inode, Visit&& visit) {
  for (const LogPage& page : inode.log.pages) {
    if (page.offset != 0) visit(page.offset / kBlock);
  }
  inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, Mapped mapped) {
    visit(mapped.block());
    return true;
  });
  if (inode.extended != nullptr) {
    for (const auto& [name, value] : *inode.extended) {
      for (const Extent& extent : value.blocks) {
        for (std::uint64_t i = 0; i < extent.count; ++i) visit(extent.first + i);
      }
    }
  }
  if (inode.target_block != 0) visit(inode.target_block);
}

}  // namespace

// Keeps the blocks of all readable parts of the damaged inodes, for a later repair. Parts that cannot
// be found may be overwritten: nobody could read them anyway.
void Volume::keep_readable(std::span<const std::uint64_t> damaged) {
  std::vector<std::uint64_t> readable;
  const auto is_anothers = [this](std::uint64_t block) { return is_used(block); };
  for (const std::uint64_t number : damaged) {
    Inode inode;
    inode.number = number;
    auto record = region_.read_object<InodeRecord>(geometry_.inode_offset(number));
    if (!salvage(region_, geometry_, inode, record, 0, is_anothers).is_readable) continue;
    visit_blocks(inode, [&](std::uint64_t block) { readable.push_back(block); });
  }
  // Only now, since a block that one of them had before may be another one's log page.
  for (const std::uint64_t block : readable) mark_used(block, 1);
}

// Returns the inodes that share a block with another one. One of the two is damaged, and nobody can
// tell which. As long as neither is changed, neither loses anything.
std::vector<std::uint64_t> Volume::sharing_blocks(std::span<const std::uint64_t> numbers) {
  std::vector<std::uint8_t> owners(geometry_.blocks);
  std::unordered_map<std::uint64_t, std::uint8_t> owners_of_pages;
  const auto owners_of = [&](std::uint64_t block) -> std::uint8_t& {
    return geometry_.is_elsewhere(block) ? owners_of_pages[block] : owners[block];
  };
  const auto visit_all = [&](const auto& visit) {
    for (const std::uint64_t number : numbers) {
      Inode inode;
      inode.number = number;
      if (!load(region_, geometry_, inode).empty() || inode.links == 0) continue;
      visit_blocks(inode, [&](std::uint64_t block) { visit(number, block); });
    }
  };
  visit_all([&](std::uint64_t, std::uint64_t block) {
    if (owners_of(block) < 2) ++owners_of(block);
  });
  std::vector<std::uint64_t> sharing;
  visit_all([&](std::uint64_t number, std::uint64_t block) {
    if (owners_of(block) > 1 && (sharing.empty() || sharing.back() != number)) {
      sharing.push_back(number);
    }
  });
  return sharing;
}

Task<Volume::Scanned> Volume::scan_all(Thread& thread, std::span<const std::uint64_t> numbers) {
  const std::size_t parts =
      std::min<std::size_t>(sessions_.size(), numbers.size() / kInodesForAThread + 1);
  std::vector<Scanned> found(parts);
  std::vector<std::unique_ptr<BackgroundThread>> others;
  std::size_t running = parts - 1;
  WaitList ended;
  const auto scan_part = [](Volume* volume, std::span<const std::uint64_t> all, std::size_t part,
                            std::size_t of, Scanned* into) -> Task<> {
    volume->scan(all, part, of, *into);
    co_return;
  };
  const auto run = [](BackgroundThread* on, Task<> work, std::size_t* left,
                      WaitList* waiting) -> Task<> {
    co_await on->run(std::move(work));
    if (--*left == 0) waiting->wake_all();
  };
  for (std::size_t part = 1; part < parts; ++part) {
    others.push_back(thread.node.start_background_thread());
    thread.executor.spawn(run(others.back().get(),
                              scan_part(this, numbers, part, parts, &found[part]), &running,
                              &ended));
  }
  if (running > 0) co_await yield();  // lets the spawned tasks start the other threads
  scan(numbers, 0, parts, found[0]);
  while (running > 0) co_await wait(ended);
  for (std::size_t part = 1; part < parts; ++part) found[0].add(found[part]);
  found[0].sort();
  co_return std::move(found[0]);
}

// The state that recovery finds may be in caches only, if a process has died but not the machine
// (docs/restart.md). So before anything else is written, recovery flushes all words that it relies
// on, and its own changes. Other threads only read.
Task<> Volume::recover(Thread& thread, bool only_reads) {
  redo_journals();
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
    const Bytes offset = geometry_.inode_offset(number);
    region_.flush(offset, kCacheLine);
    if ((region_.load(offset + kStateWord) & 1) == 0) continue;
    numbers.push_back(number);
    numbers_.mark_used(number, 1);
  }
  const Scanned found = co_await scan_all(thread, numbers);
  std::vector<std::uint64_t> unusable = found.damaged;
  for (const std::uint64_t number : found.missing) {
    const auto record = region_.read_object<InodeRecord>(geometry_.inode_offset(number));
    if (numbers_.is_used(number) || !has_lost_its_state(geometry_, number, record)) continue;
    numbers_.mark_used(number, 1);
    unusable.push_back(number);
  }
  keep_readable(unusable);
  if (found.has_shared_blocks && !only_reads) {
    const std::vector<std::uint64_t> sharing = sharing_blocks(numbers);
    sharing_.insert(sharing.begin(), sharing.end());
    unusable.insert(unusable.end(), sharing.begin(), sharing.end());
  }
  if (found.has_shared_blocks) needs_recovery_ = true;
  if (!unusable.empty()) {
    needs_recovery_ = true;
    damage_ = fmt::format(
        "inode {}{} cannot be read", unusable.front(),
        unusable.size() == 1 ? std::string() : fmt::format(" and {} others", unusable.size() - 1));
  }
  for (const Bytes page : found.pages) {
    region_.flush(page + geometry_.trailer_in_page(), kCacheLine);
  }
  // Delete the inodes that have no name any more. Their blocks have not been marked, so they are
  // free.
  for (const std::uint64_t orphan : found.orphans) {
    const Bytes state = geometry_.inode_offset(orphan) + kStateWord;
    region_.store(state, region_.load(state) & ~std::uint64_t{1});
    region_.flush(state, kWord);
    numbers_.free(orphan, 1);
    count(Happened::orphans);
  }
  region_.drain();
  // The words that the records would change are durable, so the records are not needed any more;
  // and sessions of this mount start their sequence numbers anew.
  constexpr std::array<std::byte, kJournalBytes> kNothing{};
  for (std::uint32_t i = 0; i < kJournals; ++i) {
    const Bytes offset = kJournalOffset + i * kJournalBytes;
    if (region_.load(offset) == 0) continue;
    region_.write(offset, kNothing);
    region_.flush(offset, kJournalBytes);
  }
  region_.drain();
}

std::string Volume::root_damage() {
  const Locked locked(*this, Locked::For::changing, {static_cast<std::uint64_t>(fs::kRootInode)});
  Inode& root = *locked[0];
  if (std::string damage = load(region_, geometry_, root); !damage.empty()) return damage;
  if (!root.exists) return "it does not exist";
  return S_ISDIR(root.mode) ? "" : "it is no directory";
}

bool Volume::load_saved(std::uint64_t mark) {
  std::vector<std::uint64_t> blocks(geometry_.saved_block_bytes() / kWord);
  std::vector<std::uint64_t> inodes(geometry_.saved_inode_bytes() / kWord);
  region_.read(geometry_.saved_blocks, std::as_writable_bytes(std::span(blocks)));
  region_.read(geometry_.saved_inodes, std::as_writable_bytes(std::span(inodes)));
  if (mark != clean_mark(blocks, inodes)) return false;
  blocks_.assign(blocks);
  numbers_.assign(inodes);
  return true;
}

// The saved bitmaps are durable before the mark that says so.
void Volume::save() {
  Context context;
  for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
    Inode* const inode = find(number);
    if (inode != nullptr) apply_waiting(*inode);
    // Without sessions there are no holds, so inodes without names can go.
    if (inode == nullptr || !inode->loaded || !inode->exists || inode->damaged || inode->links > 0)
      continue;
    context.begin();
    will_discard(context, *inode);
    if (commit(context, Urgency::frees) == std::errc{}) discard(context, *inode);
  }
  free_waiting(Time::max());
  std::vector<std::uint64_t> blocks(geometry_.saved_block_bytes() / kWord);
  std::vector<std::uint64_t> inodes(geometry_.saved_inode_bytes() / kWord);
  std::copy(blocks_.words().begin(), blocks_.words().end(), blocks.begin());
  std::copy(numbers_.words().begin(), numbers_.words().end(), inodes.begin());
  region_.write_streaming(geometry_.saved_blocks, std::as_bytes(std::span(blocks)));
  region_.write_streaming(geometry_.saved_inodes, std::as_bytes(std::span(inodes)));
  constexpr std::array<std::byte, kJournalBytes> kNothing{};
  for (std::uint32_t i = 0; i < kJournals; ++i) {
    const Bytes offset = kJournalOffset + i * kJournalBytes;
    if (region_.load(offset) == 0) continue;
    region_.write(offset, kNothing);
    region_.flush(offset, kJournalBytes);
  }
  region_.drain();
  // Without the mark the next mount recovers, which finds the blocks that no inode owns.
  if (needs_recovery_) return;
  region_.store(kCleanOffset, clean_mark(blocks, inodes));
  region_.persist(kCleanOffset, kWord);
}

std::string Volume::audit() {
  Allocator blocks(geometry_.first_block, geometry_.blocks, 1, 0);
  std::unordered_set<std::uint64_t> pages;
  std::vector<std::uint32_t> names(geometry_.inodes + 1);
  std::vector<std::uint64_t> parents(geometry_.inodes + 1);
  std::string problem;
  const auto say = [&](std::string text) {
    if (problem.empty()) problem = std::move(text);
  };
  names[1] = 1;
  parents[1] = 1;
  const auto own_page = [&](std::uint64_t number, std::uint64_t page) {
    if (!geometry_.is_file_data(page, 1)) {
      return say(fmt::format("inode {} has page {:#x}, which is none", number, page));
    }
    if (!pages.insert(page).second) {
      say(fmt::format("page {:#x} of inode {} belongs to another one, too", page, number));
    }
    if (!geometry_.owner->is_used(page)) {
      say(fmt::format("page {:#x} of inode {} is free by its owner", page, number));
    }
  };
  const auto own = [&](std::uint64_t number, std::uint64_t first, std::uint64_t count) {
    if (geometry_.is_elsewhere(first)) return own_page(number, first);
    if (!geometry_.is_data(first, count)) {
      return say(fmt::format("inode {} has block {}, which is none", number, first));
    }
    if (blocks.mark_used(first, count) > 0) {
      say(fmt::format("block {} of inode {} belongs to another one, too", first, number));
    }
  };
  std::uint64_t existing = 0;
  for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
    const bool exists = (region_.load(geometry_.inode_offset(number) + kStateWord) & 1) != 0;
    if (exists != numbers_.is_used(number)) {
      say(fmt::format("inode {} is {}, but its number is not", number, exists ? "used" : "free"));
    }
    if (!exists) continue;
    ++existing;
    const Locked locked(*this, Locked::For::changing, {number});
    Inode& inode = *locked[0];
    if (use(inode) != std::errc{}) {
      say(fmt::format("inode {} is damaged", number));
      continue;
    }
    // The state in DRAM must be the state that recovery would read.
    Inode read;
    read.number = number;
    if (const std::string damage = load(region_, geometry_, read); !damage.empty()) {
      say(fmt::format("inode {}: {}", number, damage));
      continue;
    }
    const fs::Attributes is = inode.attributes();
    const fs::Attributes would_be = read.attributes();
    if (std::tie(is.mode, is.uid, is.gid, is.links, is.device, is.size, is.blocks, is.accessed,
                 is.modified, is.changed, is.created, is.generation) !=
        std::tie(would_be.mode, would_be.uid, would_be.gid, would_be.links, would_be.device,
                 would_be.size, would_be.blocks, would_be.accessed, would_be.modified,
                 would_be.changed, would_be.created, would_be.generation)) {
      say(fmt::format("inode {} has other attributes than its log says", number));
    }
    for (const LogPage& page : inode.log.pages) {
      if (page.offset != 0) own(number, page.offset / kBlock, 1);
    }
    inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t index, Mapped mapped) {
      own(number, mapped.block(), 1);
      const Mapped other = read.blocks.get(index);
      if (other.block() != mapped.block() || other.is_unwritten() != mapped.is_unwritten()) {
        say(fmt::format("block {} of inode {} is another one by its log", index, number));
      }
      return true;
    });
    if (inode.extended != nullptr) {
      for (const auto& [name, value] : *inode.extended) {
        if (read.extended == nullptr || !read.extended->contains(name)) {
          say(fmt::format("inode {} has an attribute that its log has not", number));
        }
        for (const Extent& extent : value.blocks) own(number, extent.first, extent.count);
      }
    }
    if (inode.target_block != 0) own(number, inode.target_block, 1);
    if (inode.directory == nullptr) continue;
    if (inode.directory->size() != read.directory->size()) {
      say(fmt::format("directory {} has other names than its log says", number));
    }
    inode.directory->visit(0, [&](const Name& name) {
      ++names[name.inode];
      if (name.is_directory()) parents[name.inode] = number;
      const Name* const other = read.directory->find_cookie(name.cookie);
      if (other == nullptr || other->inode != name.inode || other->offset != name.offset) {
        say(fmt::format("directory {} has a name that its log has not", number));
      }
      return true;
    });
  }
  waiting_lock_.lock();
  const std::deque<WaitingExtent> waiting = waiting_;
  waiting_lock_.unlock();
  for (const auto& [until, extent] : waiting) {
    for (std::uint64_t block = extent.first; block < extent.first + extent.count; ++block) {
      const bool is_again = geometry_.is_elsewhere(block) ? !pages.insert(block).second
                                                          : blocks.mark_used(block, 1) > 0;
      if (is_again)
        say(fmt::format("block {:#x} waits to be free, but is used or waits twice", block));
    }
  }
  if (!problem.empty()) return problem;
  for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
    if (!numbers_.is_used(number)) {
      if (names[number] > 0) return fmt::format("inode {} has a name, but is free", number);
      continue;
    }
    const Locked locked(*this, Locked::For::changing, {number});
    Inode& inode = *locked[0];
    if (use(inode) != std::errc{}) return fmt::format("inode {} is damaged", number);
    if (inode.links != names[number]) {
      return fmt::format("inode {} has {} links, but {} names", number, inode.links, names[number]);
    }
    if (inode.directory != nullptr && inode.links > 0 && inode.parent() != parents[number]) {
      return fmt::format("directory {} has another parent than it says", number);
    }
    if (inode.links == 0 && inode.holds == 0) {
      return fmt::format("inode {} has neither names nor holds", number);
    }
  }
  for (std::uint64_t block = geometry_.first_block; block < geometry_.blocks; ++block) {
    if (blocks.is_used(block) != blocks_.is_used(block)) {
      return fmt::format("block {} is {}", block,
                         blocks_.is_used(block) ? "used by nobody, but not free"
                                                : "used, but free to be allocated");
    }
  }
  if (blocks.free_count() != blocks_.free_count() ||
      numbers_.free_count() != geometry_.inodes - existing) {
    return "the counts of free blocks or inodes are wrong";
  }
  return {};
}

}  // namespace perdura::systems::nova
