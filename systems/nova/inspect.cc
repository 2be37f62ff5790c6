#include "systems/nova/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "systems/nova/volume.h"

namespace perdura::systems::nova {

std::optional<Geometry> stored_geometry(pmem::Region& region, Bytes offset) {
  if (region.size() < offset + sizeof(Superblock)) return std::nullopt;
  const auto superblock = region.read_object<Superblock>(offset);
  if (!is_intact(superblock) || superblock.size > region.size() || superblock.size < 16 * kBlock ||
      superblock.inodes < 1 || superblock.inodes > superblock.size / sizeof(InodeRecord) ||
      superblock.log_page_bytes < kSmallestLogPage || superblock.log_page_bytes > kBlock ||
      superblock.log_page_bytes % kCacheLine != 0) {
    return std::nullopt;
  }
  const Geometry geometry(superblock.size, superblock.inodes, superblock.log_page_bytes);
  if (geometry.first_block >= geometry.blocks) return std::nullopt;
  return geometry;
}

namespace {

bool has_superblock(pmem::Region& region) {
  const auto is_there = [&](Bytes offset) {
    return region.size() >= offset + sizeof(Superblock) &&
           region.read_object<Superblock>(offset).magic == kMagic;
  };
  return is_there(0) || is_there(kSuperblockCopy);
}

}  // namespace

std::string problem_of_superblocks(pmem::Region& region) {
  if (!has_superblock(region)) return "is no file system of nova";
  for (const Bytes offset : {Bytes{0}, kSuperblockCopy}) {
    if (region.size() < offset + sizeof(Superblock)) break;
    const auto superblock = region.read_object<Superblock>(offset);
    if (is_intact(superblock) && superblock.size > region.size()) {
      return fmt::format("has {} bytes, but its superblock says {}", region.size(),
                         superblock.size);
    }
  }
  return "has no intact superblock of nova, nor a copy of it";
}

namespace {

class Inspection {
 public:
  Inspection(pmem::Region& region, bool repairs) : region_(region), repairs_(repairs) {}

  std::vector<fs::Damage> run() {
    if (!find_superblock()) return std::move(found_);
    owners_.resize(geometry_.blocks);
    inodes_.resize(geometry_.inodes + 1);
    read_journals();
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) read_inode(number);
    check_tree();
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) check_links(number);
    check_saved();
    if (repairs_) repair_names();
    return std::move(found_);
  }

 private:
  // What is known of an inode; not all that is in its log, of which there may be a million.
  struct Known {
    bool exists = false;
    bool is_whole = false;
    bool is_reached = false;
    std::uint32_t mode = 0;
    std::uint32_t links = 0;
    std::uint32_t names = 0;
    std::uint64_t parent = 0;
    std::uint64_t named_in = 0;
  };
  struct NameOf {
    std::uint64_t directory = 0;
    std::uint64_t inode = 0;
    std::uint32_t type = 0;
    std::uint64_t cookie = 0;
    std::string name;
  };
  // What log entries can repair, and where in `found_` it is named.
  struct NameToRemove {
    std::size_t damage = 0;
    std::uint64_t directory = 0;
    std::uint64_t cookie = 0;
  };
  struct LinksToSet {
    std::size_t damage = 0;
    std::uint64_t inode = 0;
    std::uint32_t links = 0;
  };

  void say(std::string where, std::string what, bool repaired = false) {
    found_.push_back({std::move(where), std::move(what), repaired});
  }
  static std::string inode_name(std::uint64_t number) { return fmt::format("inode {}", number); }

  bool find_superblock() {
    const auto first = stored_geometry(region_, 0);
    const auto copy = stored_geometry(region_, kSuperblockCopy);
    if (!first && !copy) {
      if (!has_superblock(region_)) {
        throw UsageError(fmt::format("'{}' {}", region_.name(), problem_of_superblocks(region_)));
      }
      say("superblock", fmt::format("The file system {}.", problem_of_superblocks(region_)));
      return false;
    }
    geometry_ = first ? *first : *copy;
    const Bytes lost = first ? kSuperblockCopy : 0;
    if (!first || !copy) {
      if (repairs_) {
        const Superblock superblock = superblock_of(geometry_);
        region_.write_object(lost, superblock);
        region_.persist(lost, sizeof superblock);
      }
      say(first ? "copy of the superblock" : "superblock",
          "It is not intact; the other one is, and has all that it had.", repairs_);
    }
    return true;
  }

  // What recovery would redo counts as done.
  void read_journals() {
    for (std::uint32_t i = 0; i < kJournals; ++i) {
      const auto record = region_.read_object<JournalRecord>(kJournalOffset + i * kJournalBytes);
      // A record that is not whole belongs to an operation that has not taken effect.
      if (!has_possible_count(record) || record.crc != checksum(record)) continue;
      for (std::uint32_t word = 0; word < record.count; ++word) {
        const JournalWord& change = record.words[word];
        if (!is_possible(geometry_, change)) {
          say(fmt::format("journal {}", i),
              fmt::format("It changes {:#x}, which is no word of an inode.", change.offset));
          all_whole_ = false;
        } else if (region_.load(change.offset) == change.before) {
          redone_[change.offset] = change.after;
        }
      }
    }
  }

  InodeRecord record_of(std::uint64_t number) {
    const Bytes offset = geometry_.inode_offset(number);
    auto record = region_.read_object<InodeRecord>(offset);
    for (auto word = redone_.lower_bound(offset);
         word != redone_.end() && word->first < offset + kCacheLine; ++word) {
      std::memcpy(reinterpret_cast<std::byte*>(&record) + (word->first - offset), &word->second,
                  kWord);
    }
    return record;
  }

  void own(std::uint64_t number, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t block = first; block < first + count; ++block) {
      std::uint32_t& owner = owners_[block];
      if (owner == number) {
        say(inode_name(number), fmt::format("Block {} is in it twice.", block));
      } else if (owner != 0) {
        say(inode_name(number), fmt::format("Block {} belongs to inode {}, too.", block, owner));
      }
      owner = static_cast<std::uint32_t>(number);
    }
  }

  bool has_right_value(const Extended& value) {
    if (value.blocks.empty()) return true;
    std::vector<std::byte> bytes(value.value_length);
    Bytes done = 0;
    for (const Extent& extent : value.blocks) {
      const Bytes part = std::min<Bytes>(extent.count * kBlock, bytes.size() - done);
      region_.read(extent.first * kBlock, std::span(bytes).subspan(done, part));
      done += part;
    }
    return crc32(0, bytes) == region_.read_object<ExtendedEntry>(value.place).value_crc;
  }

  void read_inode(std::uint64_t number) {
    Known& known = inodes_[number];
    const InodeRecord record = record_of(number);
    if ((record.state & 1) == 0) return;
    known.exists = true;
    Inode inode;
    inode.number = number;
    const std::string problem = load(region_, geometry_, inode, record);
    known.is_whole = problem.empty();
    if (!known.is_whole) say(inode_name(number), fmt::format("It is damaged: {}.", problem));
    all_whole_ = all_whole_ && known.is_whole;
    known.mode = inode.mode;
    known.links = inode.links;
    known.parent = inode.parent();
    for (const LogPage& page : inode.log.pages) own(number, page.offset / kBlock, 1);
    inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, Mapped mapped) {
      own(number, mapped.block(), 1);
      return true;
    });
    if (inode.target_block != 0) {
      own(number, inode.target_block, 1);
      std::vector<std::byte> target(std::min<Bytes>(inode.size, kBlock));
      region_.read(inode.target_block * kBlock, target);
      if (crc32(0, target) != record.base.target_crc) {
        say(inode_name(number), "The target of the link has a wrong checksum.");
      }
    }
    if (inode.extended != nullptr) {
      for (const auto& [name, value] : *inode.extended) {
        for (const Extent& extent : value.blocks) own(number, extent.first, extent.count);
        if (!has_right_value(value)) {
          say(inode_name(number), fmt::format("The attribute {} has a wrong checksum.", name));
        }
      }
    }
    if (inode.directory != nullptr) {
      inode.directory->visit(0, [&](const Name& name) {
        std::string text(name.length, '\0');
        region_.read(name.place + sizeof(AddEntry),
                     std::as_writable_bytes(std::span(text.data(), text.size())));
        if (inode.directory->find(region_, text) != &name) {
          say(inode_name(number), fmt::format("The name {} is in it twice.", text));
        }
        names_.push_back({number, name.inode, static_cast<std::uint32_t>(name.type) << 12,
                          name.cookie, std::move(text)});
        return true;
      });
    }
  }

  void check_tree() {
    constexpr auto kRoot = static_cast<std::uint64_t>(fs::kRootInode);
    Known& root = inodes_[kRoot];
    if (!root.exists || (root.is_whole && (root.mode & S_IFMT) != S_IFDIR)) {
      say(inode_name(kRoot), "The root directory is missing.");
    }
    root.names = 1;
    root.named_in = kRoot;
    for (const NameOf& name : names_) {
      const std::string where = fmt::format("directory {}, name {}", name.directory, name.name);
      Known& named = inodes_[name.inode];
      if (!named.exists) {
        wrong_names_.push_back({found_.size(), name.directory, name.cookie});
        say(where, fmt::format("It names inode {}, which does not exist.", name.inode));
        continue;
      }
      ++named.names;
      if (!named.is_whole) continue;
      if ((named.mode & S_IFMT) != name.type) {
        say(where, fmt::format("It has another type than inode {}.", name.inode));
      } else if (name.type == S_IFDIR) {
        named.named_in = name.directory;
        if (named.names > 1) say(where, fmt::format("Directory {} has two names.", name.inode));
      }
    }
    // Names are sorted by their directories.
    std::vector<std::uint64_t> open{kRoot};
    root.is_reached = true;
    while (!open.empty()) {
      const std::uint64_t directory = open.back();
      open.pop_back();
      auto name = std::lower_bound(
          names_.begin(), names_.end(), directory,
          [](const NameOf& entry, std::uint64_t number) { return entry.directory < number; });
      for (; name != names_.end() && name->directory == directory; ++name) {
        if (std::exchange(inodes_[name->inode].is_reached, true)) continue;
        if (name->type == S_IFDIR) open.push_back(name->inode);
      }
    }
  }

  void check_links(std::uint64_t number) {
    Known& known = inodes_[number];
    if (!known.exists || !known.is_whole) return;
    if (known.names == 0) {
      // Recovery reclaims it if it was held at the failure; else it has lost its name.
      if (known.links > 0) say(inode_name(number), "It has no name.");
      return;
    }
    if (!known.is_reached) say(inode_name(number), "It cannot be reached from the root.");
    if (known.links != known.names) {
      // A directory has one name.
      if ((known.mode & S_IFMT) != S_IFDIR || known.names == 1) {
        wrong_links_.push_back({found_.size(), number, known.names});
      }
      say(inode_name(number),
          fmt::format("It has {} names, but says {}.", known.names, known.links));
    }
    // A directory that is named as a file only, say, has no parent to compare with.
    if ((known.mode & S_IFMT) == S_IFDIR && known.named_in != 0 && known.parent != known.named_in) {
      if (repairs_) {
        const Bytes place = geometry_.inode_offset(number) + kParentWord;
        region_.store(place, parent_word_after(region_.load(place), known.named_in));
        region_.persist(place, kWord);
      }
      say(inode_name(number),
          fmt::format("It is in directory {}, but says {}.", known.named_in, known.parent),
          repairs_);
    }
  }

  void check_saved() {
    const std::uint64_t mark = region_.load(kCleanOffset);
    if (mark == 0) return;
    std::vector<std::uint64_t> blocks(geometry_.saved_block_bytes() / kWord);
    std::vector<std::uint64_t> inodes(geometry_.saved_inode_bytes() / kWord);
    region_.read(geometry_.saved_blocks, std::as_writable_bytes(std::span(blocks)));
    region_.read(geometry_.saved_inodes, std::as_writable_bytes(std::span(inodes)));
    std::string what;
    if (mark != clean_mark(blocks, inodes)) what = "They have a wrong checksum";
    for (std::uint64_t block = geometry_.first_block; what.empty() && block < geometry_.blocks;
         ++block) {
      const bool used = (blocks[block / 64] >> block % 64 & 1) != 0;
      if (used != (owners_[block] != 0)) what = fmt::format("Block {} is wrong", block);
    }
    for (std::uint64_t number = 1; what.empty() && number <= geometry_.inodes; ++number) {
      const bool used = (inodes[number / 64] >> number % 64 & 1) != 0;
      if (used != inodes_[number].exists) what = fmt::format("Inode {} is wrong", number);
    }
    if (what.empty()) return;
    // Without the mark they are made anew when it is mounted.
    if (repairs_) {
      region_.store(kCleanOffset, 0);
      region_.persist(kCleanOffset, kWord);
    }
    say("saved bitmaps", what + "; they can be made anew.", repairs_);
  }

  // Appends entries to the logs of inodes that say what is right. Only if all logs are whole: in
  // what cannot be read there may be further names, and blocks that look free.
  void repair_names() {
    if (!all_whole_ || (wrong_names_.empty() && wrong_links_.empty())) return;
    // The saved bitmaps will not be right; and what journals say is done, as recovery would do it.
    region_.store(kCleanOffset, 0);
    region_.flush(kCleanOffset, kWord);
    for (const auto& [place, word] : redone_) {
      region_.store(place, word);
      region_.flush(place, kWord);
    }
    region_.drain();
    Volume volume(region_, geometry_, {.gc_pages = ~std::uint64_t{0}, .cached_inodes = 1}, 1);
    for (std::uint64_t block = geometry_.first_block; block < geometry_.blocks; ++block) {
      if (owners_[block] != 0) volume.blocks().mark_used(block, 1);
    }
    Context context;
    const auto change = [&](std::uint64_t number, std::size_t damage, const auto& add) {
      const Locked locked(volume, Locked::For::changing, {number});
      Inode& inode = *locked[0];
      if (volume.use(inode) != std::errc{}) return;
      context.begin();
      add(inode);
      found_[damage].repaired = volume.commit(context, Urgency::frees) == std::errc{};
    };
    for (const NameToRemove& name : wrong_names_) {
      change(name.directory, name.damage, [&](Inode& directory) {
        const EntryHeader header{.type = EntryType::remove,
                                 .seconds = directory.changed.seconds,
                                 .nanoseconds = directory.changed.nanoseconds};
        context.add(directory, RemoveEntry{header, 0, name.cookie});
      });
    }
    for (const LinksToSet& each : wrong_links_) {
      change(each.inode, each.damage, [&](Inode& inode) {
        AttributesEntry entry = attributes_entry(inode);
        entry.links = each.links;
        context.add(inode, entry);
      });
    }
  }

  pmem::Region& region_;
  const bool repairs_;
  Geometry geometry_;
  std::vector<fs::Damage> found_;
  std::vector<std::uint32_t> owners_;  // by block: the inode, 0 if it is free
  std::vector<Known> inodes_;
  std::vector<NameOf> names_;
  std::vector<NameToRemove> wrong_names_;
  std::vector<LinksToSet> wrong_links_;
  bool all_whole_ = true;  // logs and journals
  std::map<Bytes, std::uint64_t> redone_;
};

}  // namespace

std::vector<fs::Damage> inspect(pmem::Region& region, bool repair) {
  return Inspection(region, repair).run();
}

}  // namespace perdura::systems::nova
