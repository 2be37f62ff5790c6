#include "systems/nova/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "systems/nova/inode.h"
#include "systems/nova/repair.h"

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

using Known = Findings::Known;
using NameOf = Findings::NameOf;

class Inspection {
 public:
  Inspection(pmem::Region& region, Owner* owner) : region_(region), owner_(owner) {}

  Findings run() {
    if (!find_superblock()) return std::move(found_);
    owners_.resize(geometry_.blocks);
    found_.inodes.resize(geometry_.inodes + 1);
    read_journals();
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) read_inode(number);
    check_tree();
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) check_links(number);
    check_saved();
    return std::move(found_);
  }

 private:
  void say(std::string where, std::string what) {
    found_.damage.push_back({std::move(where), std::move(what), false});
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
    geometry_.owner = owner_;
    found_.geometry = geometry_;
    if (!first || !copy) {
      found_.lost_superblock = first ? kSuperblockCopy : 0;
      say(first ? "copy of the superblock" : "superblock",
          "It is not intact; the other one is, and has all that it had.");
    }
    return true;
  }

  // Changes that recovery would redo count as done.
  void read_journals() {
    for (std::uint32_t i = 0; i < kJournals; ++i) {
      const auto record = region_.read_object<JournalRecord>(kJournalOffset + i * kJournalBytes);
      // A damaged record belongs to an operation that has not taken effect.
      if (!has_possible_count(record) || record.crc != checksum(record)) continue;
      for (std::uint32_t word = 0; word < record.count; ++word) {
        const JournalWord& change = record.words[word];
        if (!is_possible(geometry_, change)) {
          say(fmt::format("journal {}", i),
              fmt::format("It changes {:#x}, which is no word of an inode.", change.offset));
          found_.all_whole = false;
        } else if (region_.load(change.offset) == change.before) {
          found_.redone[change.offset] = change.after;
        }
      }
    }
  }

  InodeRecord record_of(std::uint64_t number) {
    const Bytes offset = geometry_.inode_offset(number);
    auto record = region_.read_object<InodeRecord>(offset);
    for (auto word = found_.redone.lower_bound(offset);
         word != found_.redone.end() && word->first < offset + kCacheLine; ++word) {
      std::memcpy(reinterpret_cast<std::byte*>(&record) + (word->first - offset), &word->second,
                  kWord);
    }
    return record;
  }

  void own(std::uint64_t number, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t block = first; block < first + count; ++block) {
      std::uint32_t& owner =
          geometry_.is_elsewhere(block) ? owners_of_pages_[block] : owners_[block];
      if (owner == number) {
        say(inode_name(number), fmt::format("Block {} is in it twice.", block));
        found_.has_shared_blocks = true;
      } else if (owner != 0) {
        found_.has_shared_blocks = true;
        say(inode_name(number), fmt::format("Block {} belongs to inode {}, too.", block, owner));
      }
      owner = static_cast<std::uint32_t>(number);
    }
  }

  void read_inode(std::uint64_t number) {
    Known& known = found_.inodes[number];
    const InodeRecord record = record_of(number);
    if ((record.state & 1) == 0) return;
    known.exists = true;
    Inode inode;
    inode.number = number;
    const std::string problem = load(region_, geometry_, inode, record);
    known.is_whole = problem.empty();
    if (!known.is_whole) say(inode_name(number), fmt::format("It is damaged: {}.", problem));
    found_.all_whole = found_.all_whole && known.is_whole;
    known.mode = inode.mode;
    known.links = inode.links;
    known.parent = inode.parent();
    known.created = inode.created;
    if (known.is_whole) own_all(inode, record);
    if (inode.directory != nullptr) read_names(inode);
  }

  // A damaged inode may claim blocks that it had freed, so only the claims of whole ones count.
  void own_all(const Inode& inode, const InodeRecord& record) {
    const std::uint64_t number = inode.number;
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
        if (!value.blocks.empty() && !read_long_value(region_, value)) {
          say(inode_name(number), fmt::format("The attribute {} has a wrong checksum.", name));
        }
      }
    }
  }

  void read_names(const Inode& inode) {
    inode.directory->visit(0, [&](const Name& name) {
      std::string text(name.length, '\0');
      region_.read(name.offset + sizeof(AddEntry),
                   std::as_writable_bytes(std::span(text.data(), text.size())));
      const bool is_again = inode.directory->find(region_, text) != &name;
      if (is_again) say(inode_name(inode.number), fmt::format("The name {} is in it twice.", text));
      found_.names.push_back({inode.number, name.inode, static_cast<std::uint32_t>(name.type) << 12,
                              name.cookie, std::move(text), is_again});
      return true;
    });
  }

  void check_tree() {
    Known& root = found_.inodes[kRoot];
    if (!root.exists || (root.is_whole && (root.mode & S_IFMT) != S_IFDIR)) {
      say(inode_name(kRoot), "The root directory is missing.");
    }
    root.names = 1;
    root.named_in = kRoot;
    for (NameOf& name : found_.names) {
      const std::string where = fmt::format("directory {}, name {}", name.directory, name.name);
      Known& named = found_.inodes[name.inode];
      if (!named.exists) {
        name.is_wrong = true;
        say(where, fmt::format("It names inode {}, which does not exist.", name.inode));
        continue;
      }
      ++named.names;
      if (!named.is_whole) continue;
      if ((named.mode & S_IFMT) != name.type) {
        name.has_wrong_type = true;
        say(where, fmt::format("It has another type than inode {}.", name.inode));
      } else if (name.type == S_IFDIR) {
        // A directory is where its parent word says, if there is such a name.
        if (named.named_in == 0 || name.directory == named.parent) named.named_in = name.directory;
        if (named.names > 1) say(where, fmt::format("Directory {} has two names.", name.inode));
      }
    }
    // The names are sorted by directory.
    std::vector<std::uint64_t> open{kRoot};
    root.is_reached = true;
    while (!open.empty()) {
      const std::uint64_t directory = open.back();
      open.pop_back();
      auto name = std::lower_bound(
          found_.names.begin(), found_.names.end(), directory,
          [](const NameOf& entry, std::uint64_t number) { return entry.directory < number; });
      for (; name != found_.names.end() && name->directory == directory; ++name) {
        if (std::exchange(found_.inodes[name->inode].is_reached, true)) continue;
        if (name->type == S_IFDIR) open.push_back(name->inode);
      }
    }
  }

  void check_links(std::uint64_t number) {
    Known& known = found_.inodes[number];
    if (!known.exists || !known.is_whole) return;
    if (known.names == 0) {
      // If its link count is 0, it was held at the failure and recovery reclaims it; else it has
      // lost its name.
      if (known.links > 0) say(inode_name(number), "It has no name.");
      return;
    }
    if (!known.is_reached) say(inode_name(number), "It cannot be reached from the root.");
    if (known.links != known.names) {
      say(inode_name(number),
          fmt::format("It has {} names, but says {}.", known.names, known.links));
    }
    // A directory that is only named as a file, for example, has no parent to compare with.
    if ((known.mode & S_IFMT) == S_IFDIR && known.named_in != 0 && known.parent != known.named_in) {
      say(inode_name(number),
          fmt::format("It is in directory {}, but says {}.", known.named_in, known.parent));
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
      // It may belong to a damaged inode.
      if (used && owners_[block] == 0 && !found_.all_whole) continue;
      if (used != (owners_[block] != 0)) what = fmt::format("Block {} is wrong", block);
    }
    for (std::uint64_t number = 1; what.empty() && number <= geometry_.inodes; ++number) {
      const bool used = (inodes[number / 64] >> number % 64 & 1) != 0;
      if (used != found_.inodes[number].exists) what = fmt::format("Inode {} is wrong", number);
    }
    if (what.empty()) {
      found_.saved_blocks = std::move(blocks);
    } else {
      say("saved bitmaps", what + "; they can be made anew.");
    }
  }

  pmem::Region& region_;
  Owner* const owner_;
  Geometry geometry_;
  Findings found_;
  std::vector<std::uint32_t> owners_;  // each block's inode; 0: the block is free
  std::unordered_map<std::uint64_t, std::uint32_t> owners_of_pages_;  // the same, by page
};

}  // namespace

Findings look_at(pmem::Region& region, Owner* owner) { return Inspection(region, owner).run(); }

std::vector<fs::Damage> inspect(pmem::Region& region, bool repair, Owner* owner) {
  Findings found = look_at(region, owner);
  std::vector<fs::Damage> damage = found.damage;
  if (!repair || damage.empty()) return damage;
  // Each round repairs damage that the previous one has brought to light; there are fewer kinds.
  constexpr int kRounds = 24;
  std::vector<fs::Damage> losses;
  for (int round = 0; round < kRounds && !found.damage.empty(); ++round) {
    if (!repair_once(region, found, losses)) break;
    found = look_at(region, owner);
  }
  const auto is_left = [](const std::vector<fs::Damage>& in, const fs::Damage& each) {
    return std::any_of(in.begin(), in.end(), [&](const fs::Damage& other) {
      return other.where == each.where && other.what == each.what;
    });
  };
  for (fs::Damage& each : damage) each.repaired = !is_left(found.damage, each);
  for (const fs::Damage& each : found.damage) {
    if (!is_left(damage, each)) damage.push_back(each);
  }
  damage.insert(damage.end(), losses.begin(), losses.end());
  return damage;
}

}  // namespace perdura::systems::nova
