#include "systems/nova/damaged_inodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace perdura::systems::nova {

bool remove_name(Volume& volume, Context& context, std::uint64_t directory, std::uint64_t cookie) {
  const Locked locked(volume, Locked::For::changing, {directory});
  Inode& in = *locked[0];
  volume.use(in);
  context.begin();
  context.add(in, RemoveEntry{{.type = EntryType::remove,
                               .seconds = in.changed.seconds,
                               .nanoseconds = in.changed.nanoseconds,
                               .mode = in.mode},
                              0,
                              cookie});
  return volume.commit(context, Urgency::frees) == std::errc{};
}

DamagedInodes::DamagedInodes(const Findings& found, Volume& volume, Context& context)
    : region_(volume.region()),
      geometry_(volume.geometry()),
      found_(found),
      volume_(volume),
      context_(context),
      names_in_whole_(found.inodes.size()) {
  for (const Findings::NameOf& name : found_.names) {
    if (found_.inodes[name.directory].is_whole) ++names_in_whole_[name.inode];
  }
}

bool DamagedInodes::make_anew(std::vector<fs::Damage>& losses) {
  const std::map<std::uint64_t, std::uint32_t> all = find();
  const auto is_anothers = [this](std::uint64_t block) { return volume_.is_used(block); };
  for (const auto& [number, type] : all) {
    const Locked locked(volume_, Locked::For::changing, {number});
    Inode& inode = *locked[0];
    InodeRecord& record = records_[number] = record_of(number);
    const Salvaged& salvaged = salvaged_[number] =
        salvage(region_, geometry_, inode, record, type, is_anothers);
    if (salvaged.is_readable && inode.is(S_IFDIR)) directories_.insert(number);
  }
  share_out_blocks(losses);
  mark_as_existing();
  for (const auto& [number, type] : all) {
    if (!directories_.contains(number)) remove_names_of(number);
  }
  for (const auto& [number, type] : all) {
    salvaged_[number].is_readable ? keep(number) : end(number);
  }
  return !all.empty();
}

// The damaged inodes, and those that are missing although names refer to them, each with the type
// that its names give it.
std::map<std::uint64_t, std::uint32_t> DamagedInodes::find() const {
  std::map<std::uint64_t, std::uint32_t> types;
  for (std::uint64_t number = 1; number <= geometry_.inodes; ++number) {
    const Findings::Known& known = found_.inodes[number];
    if (known.exists && !known.is_whole) types[number] = 0;
  }
  const Findings::Known& root = found_.inodes[kRoot];
  if (!root.exists || !root.is_whole) types[kRoot] = S_IFDIR;
  for (const Findings::NameOf& name : found_.names) {
    const auto type = types.find(name.inode);
    if (type != types.end() && type->second == 0) type->second = name.type;
    // A directory that is damaged may have lost the entry that removed the name, so its names tell
    // nothing of deleted inodes.
    if (name.is_wrong && found_.inodes[name.directory].is_whole &&
        has_lost_its_state(geometry_, name.inode, record_of(name.inode))) {
      types[name.inode] = name.type;
    }
  }
  return types;
}

InodeRecord DamagedInodes::record_of(std::uint64_t number) const {
  return region_.read_object<InodeRecord>(geometry_.inode_offset(number));
}

// Decides which doubtful blocks are whose. The bitmap that a clean unmount has saved knows all used
// blocks. If only one inode has lost entries, all used blocks that no other one has are its own.
void DamagedInodes::share_out_blocks(std::vector<fs::Damage>& losses) {
  const auto losers = std::count_if(salvaged_.begin(), salvaged_.end(),
                                    [](const auto& each) { return each.second.has_lost_entries; });
  const bool knows_used = !found_.saved_blocks.empty();
  const auto is_used = [&](std::uint64_t block) {
    return (found_.saved_blocks[block / 64] >> block % 64 & 1) != 0;
  };
  const auto is_own = [&](std::uint64_t block) {
    return knows_used && losers == 1 && !geometry_.is_elsewhere(block) && is_used(block);
  };
  const auto is_free = [&](std::uint64_t block) { return knows_used && !is_used(block); };
  const auto is_anothers = [this](std::uint64_t block) { return volume_.is_used(block); };
  // The claims of those that have lost nothing are certain, so they come first.
  for (const bool has_lost : {false, true}) {
    for (const auto& [number, salvaged] : salvaged_) {
      if (salvaged.has_lost_entries != has_lost) continue;
      if (!salvaged.is_readable) {
        losses.push_back(
            {fmt::format("inode {}", number), "It cannot be salvaged: it is lost.", true});
        continue;
      }
      const Locked locked(volume_, Locked::For::changing, {number});
      Inode& inode = *locked[0];
      const std::uint64_t left_out = leave_out_doubtful(inode, salvaged, is_own, is_free);
      leave_out_shared(inode, is_anothers);
      own(inode);
      if (has_lost) say_loss(inode, left_out, losses);
    }
  }
}

void DamagedInodes::say_loss(const Inode& inode, std::uint64_t blocks,
                             std::vector<fs::Damage>& losses) const {
  std::string what = "Its log has lost entries: its attributes may be older ones";
  if (inode.is(S_IFDIR)) {
    what =
        "Its log has lost entries: names may be missing, and its owner, its permissions and its "
        "access lists may be older ones";
  } else if (inode.is(S_IFREG)) {
    what = "Its log has lost entries: its contents may be incomplete, its attributes older ones";
  }
  if (blocks > 0) {
    what +=
        fmt::format("; {} of its blocks, which other files may have used since, {} zeros instead",
                    blocks, blocks == 1 ? "reads as" : "read as");
  }
  losses.push_back({fmt::format("inode {}", inode.number), what + ".", true});
}

void DamagedInodes::own(const Inode& inode) {
  volume_.numbers().mark_used(inode.number, 1);
  for (const LogPage& page : inode.log.pages) {
    if (page.offset != 0) volume_.blocks().mark_used(page.offset / kBlock, 1);
  }
  inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, Mapped mapped) {
    volume_.mark_used(mapped.block(), 1);
    return true;
  });
  if (inode.extended != nullptr) {
    for (const auto& [name, value] : *inode.extended) {
      for (const Extent& extent : value.blocks) {
        volume_.blocks().mark_used(extent.first, extent.count);
      }
    }
  }
  if (inode.target_block != 0) volume_.blocks().mark_used(inode.target_block, 1);
}

// An inode that has lost the bit that says that it exists is known by its names alone. Should the
// repair end after they are removed, and before it is kept, nobody would find it again.
void DamagedInodes::mark_as_existing() {
  for (const auto& [number, record] : records_) {
    if (salvaged_.at(number).is_readable && !found_.inodes[number].exists) {
      store(number, kStateWord, record.state);
    }
  }
  region_.drain();
}

// Removes all names of the inode but those that an earlier repair has given it.
void DamagedInodes::remove_names_of(std::uint64_t number) {
  for (const Findings::NameOf& name : found_.names) {
    if (name.inode != number || !found_.inodes[name.directory].is_whole) continue;
    if (is_lost_and_found(name.directory)) continue;
    remove_name(volume_, context_, name.directory, name.cookie);
  }
}

bool DamagedInodes::is_lost_and_found(std::uint64_t directory) const {
  return std::any_of(found_.names.begin(), found_.names.end(), [&](const Findings::NameOf& name) {
    return name.directory == kRoot && name.inode == directory && name.name == kLostAndFound;
  });
}

// True if the directory no longer had the name, which reappears because the entry that removed it is
// lost.
bool DamagedInodes::is_past(const Inode& directory, const Name& name) const {
  const Findings::Known& named = found_.inodes[name.inode];
  if (name.inode == kRoot) return true;
  if (salvaged_.contains(name.inode)) return !directories_.contains(name.inode);
  if (!named.exists) return true;
  // The inode has all its names elsewhere.
  if (names_in_whole_[name.inode] >= named.links) return true;
  if (S_ISDIR(named.mode) && named.parent != directory.number) return true;
  if (!salvaged_.at(directory.number).is_doubtful(name.page)) return false;
  // The name is that of an earlier inode, which had the same number.
  const auto entry = region_.read_object<EntryHeader>(name.offset);
  return fs::Timestamp{entry.seconds, entry.nanoseconds} < named.created ||
         name.type != named.mode >> 12;
}

void DamagedInodes::leave_out_past_names(Inode& directory) {
  std::vector<const Name*> names;
  std::set<std::uint64_t> past;  // cookies
  directory.directory->visit(0, [&](const Name& name) {
    if (is_past(directory, name)) {
      past.insert(name.cookie);
    } else {
      names.push_back(&name);
    }
    return true;
  });
  // Two files cannot have had the same name at once, nor a directory two names. Only the last entry
  // holds.
  std::sort(names.begin(), names.end(), [](const Name* a, const Name* b) {
    return std::tie(a->page, a->offset) > std::tie(b->page, b->offset);
  });
  std::set<std::string> texts;
  std::set<std::uint64_t> directories;
  for (const Name* const name : names) {
    std::string text(name->length, '\0');
    region_.read(name->offset + sizeof(AddEntry),
                 std::as_writable_bytes(std::span(text.data(), text.size())));
    const bool is_first = texts.insert(std::move(text)).second;
    const bool is_only = !name->is_directory() || directories.insert(name->inode).second;
    if (!is_first || !is_only) past.insert(name->cookie);
  }
  for (const std::uint64_t cookie : past) {
    Name* const name = directory.directory->find_cookie(cookie);
    directory.log.drop(name->page);
    directory.directory->remove(*name);
  }
}

void DamagedInodes::keep(std::uint64_t number) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode& inode = *locked[0];
  InodeRecord& record = records_.at(number);
  if (inode.directory != nullptr) {
    leave_out_past_names(inode);
    inode.links = 1;
  }
  if (number == kRoot) record.parent = inode.parent_word = kRoot;
  if (!volume_.rewrite_log(context_, inode)) {
    // There is no space for a new log, so the entries are lost.
    inode.begin(record.base);
    store(number, kTailWord, tail_word((version_of(record.tail) + 1) % kVersions, 0));
  }
  const Bytes offset = geometry_.inode_offset(number);
  region_.write_object(offset + kCacheLine, record.base);
  region_.flush(offset + kCacheLine, sizeof record.base);
  store(number, kParentWord, record.parent);
  region_.drain();
  store(number, kStateWord, record.state);
  region_.drain();
}

void DamagedInodes::end(std::uint64_t number) {
  store(number, kStateWord, record_of(number).state & ~std::uint64_t{1});
  region_.drain();
}

void DamagedInodes::store(std::uint64_t number, Bytes word, std::uint64_t value) {
  const Bytes offset = geometry_.inode_offset(number) + word;
  region_.store(offset, value);
  region_.flush(offset, kWord);
}

}  // namespace perdura::systems::nova
