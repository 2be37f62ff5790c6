// Repairs a file system that is not mounted. Damage is repaired in this order, each kind in a round
// of its own:
//
//   superblocks        a lost one is copied from the other
//   damaged inodes     get a new log of the entries that can be read (damaged_inodes.h). A directory
//                      keeps its name; a file loses its names, so that nobody takes it for the
//                      original
//   shared blocks      are copied, so that each inode keeps the data that it read
//   names              that lead nowhere or come twice are removed, those of a wrong type corrected
//   nameless inodes    get a name in lost+found: "#" and the number
//   link counts, parents
//
// Saved bitmaps that are wrong are mended by any of these steps, since each invalidates them.
#include "systems/nova/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "systems/nova/damaged_inodes.h"
#include "systems/nova/inspect.h"
#include "systems/nova/operations.h"

namespace perdura::systems::nova {

namespace {

// The pages that the inodes have according to the present round of a repair. The owner itself learns
// of its pages when the file system is opened.
class PagesOfRound final : public Owner {
 public:
  explicit PagesOfRound(const Owner* owner) : owner_(owner) {}

  bool are_pages(std::uint64_t first, std::uint64_t count) const override {
    return owner_->are_pages(first, count);
  }
  std::uint64_t mark_used(std::uint64_t first, std::uint64_t count) override {
    const std::size_t before = used_.size();
    for (std::uint64_t page = first; page < first + count; ++page) used_.insert(page);
    return count - (used_.size() - before);
  }
  void free(std::uint64_t first, std::uint64_t count) override {
    for (std::uint64_t page = first; page < first + count; ++page) used_.erase(page);
  }
  bool is_used(std::uint64_t page) const override { return used_.contains(page); }
  void changed(std::uint64_t) override {}

 private:
  const Owner* const owner_;
  std::unordered_set<std::uint64_t> used_;
};

class Repair {
 public:
  Repair(pmem::Region& region, const Findings& found, std::vector<fs::Damage>& losses)
      : region_(region),
        pages_(found.geometry.owner),
        geometry_(with_owner(found.geometry, pages_)),
        found_(found),
        losses_(losses),
        volume_(region, geometry_,
                {.gc_pages = ~std::uint64_t{0}, .cached_inodes = ~std::uint64_t{0}}, 1),
        operations_(volume_, 0) {}

  bool run() {
    forget_what_was_saved();
    mark_what_is_whole();
    if (DamagedInodes(found_, volume_, context_).make_anew(losses_)) return true;
    if (found_.has_shared_blocks && give_blocks_of_their_own()) return true;
    if (mend_names()) return true;
    if (name_what_has_none()) return true;
    if (break_circle()) return true;
    return mend_links_and_parents() || has_wrong_bitmaps();
  }

 private:
  static Geometry with_owner(Geometry geometry, PagesOfRound& pages) {
    if (geometry.owner != nullptr) geometry.owner = &pages;
    return geometry;
  }

  // Invalidates the saved bitmaps and applies the journals as recovery would.
  void forget_what_was_saved() {
    region_.store(kCleanOffset, 0);
    region_.flush(kCleanOffset, kWord);
    for (const auto& [offset, word] : found_.redone) {
      region_.store(offset, word);
      region_.flush(offset, kWord);
    }
    region_.drain();
    constexpr std::array<std::byte, kJournalBytes> kNothing{};
    for (std::uint32_t i = 0; i < kJournals; ++i) {
      const Bytes offset = kJournalOffset + i * kJournalBytes;
      region_.write(offset, kNothing);
      region_.flush(offset, kJournalBytes);
    }
    region_.drain();
  }

  // Such bitmaps are mended by being forgotten.
  bool has_wrong_bitmaps() const {
    return std::any_of(found_.damage.begin(), found_.damage.end(),
                       [](const fs::Damage& each) { return each.where == "saved bitmaps"; });
  }

  Inode& use(const Locked& locked) {
    volume_.use(*locked[0]);
    return *locked[0];
  }

  // Marks the blocks of intact inodes. Log pages come first: each page and entry names its owner,
  // so they can belong to no other inode. Then data: if two inodes claim a block, the first one
  // keeps it.
  void mark_what_is_whole() {
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
      if (!found_.inodes[number].exists) continue;
      volume_.numbers().mark_used(number, 1);
      if (!found_.inodes[number].is_whole) continue;
      const Locked locked(volume_, Locked::For::changing, {number});
      for (const LogPage& page : use(locked).log.pages) {
        volume_.blocks().mark_used(page.offset / kBlock, 1);
      }
    }
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
      if (!found_.inodes[number].is_whole) continue;
      const Locked locked(volume_, Locked::For::changing, {number});
      const Inode& inode = use(locked);
      inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t index, Mapped mapped) {
        if (volume_.mark_used(mapped.block(), 1) > 0) shared_[number].push_back(index);
        return true;
      });
      if (inode.target_block != 0 && volume_.blocks().mark_used(inode.target_block, 1) > 0) {
        shared_targets_.push_back(number);
      }
      if (inode.extended == nullptr) continue;
      for (const auto& [name, value] : *inode.extended) {
        std::uint64_t twice = 0;
        for (const Extent& extent : value.blocks) {
          twice += volume_.blocks().mark_used(extent.first, extent.count);
        }
        if (twice > 0) shared_values_.emplace_back(number, name);
      }
    }
  }

  // --- shared blocks

  bool give_blocks_of_their_own() {
    bool changed = false;
    for (const auto& [number, indexes] : shared_) {
      const Locked locked(volume_, Locked::For::changing, {number});
      Inode& inode = use(locked);
      for (const std::uint64_t index : indexes) {
        changed |= geometry_.is_elsewhere(inode.blocks.get(index).block())
                       ? leave_out_page(inode, index)
                       : copy_block(inode, index);
      }
    }
    for (const auto& [number, name] : shared_values_) changed |= copy_value(number, name);
    for (const std::uint64_t number : shared_targets_) changed |= copy_target(number);
    return changed;
  }

  bool copy_block(Inode& inode, std::uint64_t index) {
    const Mapped shared = inode.blocks.get(index);
    const Extent copy = volume_.blocks().allocate(0, 1, Urgency::frees);
    if (copy.count == 0) return false;
    region_.read(shared.block() * kBlock, context_.block);
    context_.begin();
    context_.allocated.push_back(copy);
    volume_.write_data(context_, copy.first * kBlock, context_.block);
    context_.add(inode, WriteEntry{header(inode, EntryType::write,
                                          shared.is_unwritten() ? kUnwritten : std::uint8_t{0}),
                                   index, copy.first, 1, inode.size});
    // The times do not change.
    context_.add(inode, attributes_entry(inode));
    if (volume_.commit(context_, Urgency::frees) != std::errc{}) {
      volume_.undo(context_);
      return false;
    }
    volume_.blocks().mark_used(shared.block(), 1);
    return true;
  }

  // A page cannot be copied from here, so it stays with the other inode only.
  bool leave_out_page(Inode& inode, std::uint64_t index) {
    const Mapped shared = inode.blocks.get(index);
    context_.begin();
    context_.add(inode, WriteEntry{header(inode, EntryType::write, 0), index, 0, 1, inode.size});
    // The times do not change.
    context_.add(inode, attributes_entry(inode));
    if (volume_.commit(context_, Urgency::frees) != std::errc{}) return false;
    volume_.mark_used(shared.block(), 1);
    losses_.push_back(
        {fmt::format("inode {}", inode.number),
         fmt::format("Page {:#x} is in the file system twice, and reads as zeros here.",
                     shared.block()),
         true});
    return true;
  }

  bool copy_value(std::uint64_t number, const std::string& name) {
    std::vector<Extent> shared;
    fs::Timestamp changed;
    {
      const Locked locked(volume_, Locked::For::changing, {number});
      const Inode& inode = use(locked);
      shared = inode.extended->at(name).blocks;
      changed = inode.changed;
    }
    const auto value = operations_.extended(number, name);
    // A value with a wrong checksum has been overwritten, so it stays with the other inode only.
    const auto done =
        value ? operations_.set_extended(number, name, *value, fs::AttributeMode::replace, changed)
              : operations_.remove_extended(number, name, changed);
    if (!done) return false;
    for (const Extent& extent : shared) volume_.blocks().mark_used(extent.first, extent.count);
    return true;
  }

  bool copy_target(std::uint64_t number) {
    const Extent copy = volume_.blocks().allocate(0, 1, Urgency::frees);
    if (copy.count == 0) return false;
    const Bytes offset = geometry_.inode_offset(number) + kCacheLine;
    auto base = region_.read_object<InodeBase>(offset);
    region_.read(base.target_block * kBlock, context_.block);
    volume_.write_data(context_, copy.first * kBlock, context_.block);
    base.target_block = copy.first;
    base.crc = checksum(base);
    region_.drain();
    region_.write_object(offset, base);
    region_.persist(offset, sizeof base);
    return true;
  }

  // --- names

  static EntryHeader header(const Inode& inode, EntryType type, std::uint8_t flags) {
    return {.type = type,
            .flags = flags,
            .seconds = inode.changed.seconds,
            .nanoseconds = inode.changed.nanoseconds,
            .mode = inode.mode};
  }

  bool remove(std::uint64_t directory, std::uint64_t cookie) {
    return remove_name(volume_, context_, directory, cookie);
  }

  bool add(std::uint64_t directory, std::uint64_t cookie, std::string_view name,
           std::uint64_t number) {
    const Findings::Known& named = found_.inodes[number];
    const Locked locked(volume_, Locked::For::changing, {directory, number});
    Inode& in = use(locked);
    context_.begin();
    EntryHeader entry = header(in, EntryType::add, 0);
    entry.mode = named.mode & S_IFMT;
    context_.add(in,
                 AddEntry{.header = entry,
                          .inode = number,
                          .cookie = cookie == 0 ? in.directory->next_cookie() : cookie,
                          .length = static_cast<std::uint32_t>(name.size())},
                 bytes_of_text(name));
    if ((named.mode & S_IFMT) == S_IFDIR) {
      const Bytes offset = geometry_.inode_offset(number) + kParentWord;
      const std::uint64_t before = region_.load(offset);
      context_.words.push_back({offset, before, parent_word_after(before, directory)});
    }
    return volume_.commit(context_, Urgency::frees) == std::errc{};
  }

  bool mend_names() {
    bool changed = false;
    // A directory's right name is the last one that it got in the directory that it names as its
    // parent.
    std::map<std::uint64_t, std::uint64_t> last;
    for (const Findings::NameOf& name : found_.names) {
      if (name.directory != found_.inodes[name.inode].named_in || name.is_again) continue;
      std::uint64_t& cookie = last[name.inode];
      cookie = std::max(cookie, name.cookie);
    }
    for (const Findings::NameOf& name : found_.names) {
      const Findings::Known& named = found_.inodes[name.inode];
      const bool is_second = named.is_whole && (named.mode & S_IFMT) == S_IFDIR &&
                             named.names > 1 &&
                             (name.directory != named.named_in || name.cookie != last[name.inode]);
      if (name.is_wrong || name.is_again || is_second) {
        changed |= remove(name.directory, name.cookie);
      } else if (name.has_wrong_type) {
        changed |= add(name.directory, name.cookie, name.name, name.inode);
      }
    }
    return changed;
  }

  std::uint64_t lost_and_found() {
    if (const auto there = operations_.look_up(kRoot, kLostAndFound); there) {
      return there->is_directory() && !there->damaged ? static_cast<std::uint64_t>(there->inode)
                                                      : 0;
    }
    // Only root may look inside, so that nobody sees what was hidden from him at its old place.
    const fs::NewInode directory{.mode = S_IFDIR | 0700};
    auto made = operations_.create(kRoot, kLostAndFound, directory, now());
    if (!made && end_orphans()) made = operations_.create(kRoot, kLostAndFound, directory, now());
    return made ? static_cast<std::uint64_t>(made->inode) : 0;
  }
  // Frees the inodes that were held without a name at a failure, as recovery will. Returns false if
  // there are none.
  bool end_orphans() {
    bool ended = false;
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
      const Findings::Known& known = found_.inodes[number];
      if (!known.is_whole || known.names > 0 || known.links > 0) continue;
      const Bytes state = geometry_.inode_offset(number) + kStateWord;
      region_.store(state, region_.load(state) & ~std::uint64_t{1});
      region_.persist(state, kWord);
      volume_.numbers().free(number, 1);
      ended = true;
    }
    return ended;
  }

  // The last change of the root directory: repairs have no clock.
  fs::Timestamp now() {
    const Locked locked(volume_, Locked::For::changing, {kRoot});
    return use(locked).changed;
  }

  bool name_what_has_none() {
    std::uint64_t directory = 0;
    bool changed = false;
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
      const Findings::Known& known = found_.inodes[number];
      if (!known.is_whole || known.names > 0 || known.links == 0) continue;
      if (directory == 0) directory = lost_and_found();
      if (directory == 0) return changed;
      std::string name = fmt::format("#{}", number);
      while (operations_.look_up(directory, name)) name += '#';
      changed |= add(directory, 0, name, number);
    }
    return changed;
  }

  // Directories that contain each other cannot be reached from the root: one of them loses its
  // name.
  bool break_circle() {
    for (const Findings::NameOf& name : found_.names) {
      const Findings::Known& known = found_.inodes[name.inode];
      const bool is_lost = known.is_whole && !known.is_reached && name.type == S_IFDIR;
      if (is_lost && !found_.inodes[name.directory].is_reached) {
        return remove(name.directory, name.cookie);
      }
    }
    return false;
  }

  bool mend_links_and_parents() {
    bool changed = false;
    for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
      const Findings::Known& known = found_.inodes[number];
      if (!known.is_whole || known.names == 0) continue;
      if (known.links != known.names) {
        const Locked locked(volume_, Locked::For::changing, {number});
        Inode& inode = use(locked);
        AttributesEntry entry = attributes_entry(inode);
        entry.links = known.names;
        context_.begin();
        context_.add(inode, entry);
        changed |= volume_.commit(context_, Urgency::frees) == std::errc{};
      }
      if ((known.mode & S_IFMT) == S_IFDIR && known.named_in != 0 &&
          known.parent != known.named_in) {
        const Bytes offset = geometry_.inode_offset(number) + kParentWord;
        region_.store(offset, parent_word_after(region_.load(offset), known.named_in));
        region_.persist(offset, kWord);
        changed = true;
      }
    }
    return changed;
  }

  pmem::Region& region_;
  PagesOfRound pages_;
  const Geometry geometry_;
  const Findings& found_;
  std::vector<fs::Damage>& losses_;
  Volume volume_;
  Operations operations_;
  Context context_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> shared_;  // indexes of shared blocks, by
                                                                // inode
  std::vector<std::pair<std::uint64_t, std::string>> shared_values_;
  std::vector<std::uint64_t> shared_targets_;
};

}  // namespace

bool repair_once(pmem::Region& region, const Findings& found, std::vector<fs::Damage>& losses) {
  if (found.geometry.blocks == 0) return false;
  if (found.lost_superblock) {
    const Superblock superblock = superblock_of(found.geometry);
    region.write_object(*found.lost_superblock, superblock);
    region.persist(*found.lost_superblock, sizeof superblock);
    return true;
  }
  return Repair(region, found, losses).run();
}

}  // namespace perdura::systems::nova
