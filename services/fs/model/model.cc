#include "services/fs/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "platform/base/plain_name.h"
#include "services/fs/model/fail.h"
#include "services/fs/model/hash.h"

namespace perdura::fs {
namespace {

std::errc why_not_name(std::string_view name) {
  if (!is_entry_name(name)) return std::errc::invalid_argument;
  return name.size() > kLongestName ? std::errc::filename_too_long : std::errc{};
}

}  // namespace

Model::Model(const ModelConfig& config) : config_(config) {
  Inode& root = add_inode({.mode = S_IFDIR | (config.root_mode & 07777),
                           .uid = config.root_uid,
                           .gid = config.root_gid},
                          config.now);
  root.parent = kRootInode;
  root.attributes.links = 2;
}

// --- finding

Model::FoundInode Model::find(InodeNumber inode) const {
  const auto found = inodes_.find(inode);
  if (found == inodes_.end()) return fail(std::errc::no_such_file_or_directory);
  return found->second.get();
}

Model::FoundInode Model::find_directory(InodeNumber inode) const {
  const FoundInode found = find(inode);
  if (found && !(*found)->attributes.is_directory()) return fail(std::errc::not_a_directory);
  return found;
}

Model::FoundInode Model::find_parent(InodeNumber directory, std::string_view name) const {
  const FoundInode found = find_directory(directory);
  if (!found) return found;
  if (const std::errc error = why_not_name(name); error != std::errc{}) return fail(error);
  return found;
}

const Model::Inode* Model::at(const Inode& directory, std::string_view name) const {
  const auto entry = directory.entries.find(name);
  return entry == directory.entries.end() ? nullptr : inodes_.at(entry->second.inode).get();
}

bool Model::lies_in(InodeNumber inode, InodeNumber directory) const {
  while (inode != directory && inode != kRootInode) inode = *inodes_.at(inode)->parent;
  return inode == directory;
}

Model::Inode& Model::edit(InodeNumber inode) {
  std::shared_ptr<Inode>& found = inodes_.at(inode);
  if (found.use_count() > 1) found = std::make_shared<Inode>(*found);
  return *found;
}

// --- parts of several operations

std::errc Model::why_not(const NewInode& inode) const {
  switch (inode.mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
      break;
    case S_IFLNK:
      if (inode.target.empty()) return std::errc::invalid_argument;
      if (inode.target.size() > kLongestSymlink) return std::errc::filename_too_long;
      break;
    default:
      return std::errc::invalid_argument;
  }
  return inodes_.size() < config_.inodes ? std::errc{} : std::errc::no_space_on_device;
}

Model::Inode& Model::add_inode(const NewInode& inode, Timestamp now) {
  InodeNumber number = kRootInode;
  if (next_) {
    number = *std::exchange(next_, std::nullopt);
  } else {
    number = lowest_free_;
    for (auto used = inodes_.find(number); used != inodes_.end() && used->first == number; ++used) {
      number = InodeNumber{static_cast<std::uint64_t>(number) + 1};
    }
    lowest_free_ = number;
  }
  auto added = std::make_shared<Inode>();
  added->attributes = {.inode = number,
                       .generation = ++generation_,
                       .mode = inode.mode,
                       .uid = inode.uid,
                       .gid = inode.gid,
                       .accessed = now,
                       .modified = now,
                       .changed = now,
                       .created = now};
  const Attributes& attributes = added->attributes;
  if (attributes.is(S_IFCHR) || attributes.is(S_IFBLK)) added->attributes.device = inode.device;
  if (attributes.is_symlink()) {
    added->target = inode.target;
    added->attributes.size = inode.target.size();
  }
  for (const ExtendedAttribute& extended : inode.extended) {
    added->extended[extended.name] = extended.value;
  }
  return *(inodes_[number] = std::move(added));
}

void Model::add_entry(InodeNumber directory, std::string_view name, InodeNumber inode,
                      Timestamp now) {
  Inode& in = edit(directory);
  in.by_cookie[in.next_cookie] = name;
  in.entries[std::string(name)] = {inode, in.next_cookie++};
  in.attributes.modified = in.attributes.changed = now;
  if (inodes_.at(inode)->attributes.is_directory()) {
    ++in.attributes.links;
    edit(inode).parent = directory;
  }
}

void Model::remove_entry(InodeNumber directory, std::string_view name, Timestamp now) {
  Inode& in = edit(directory);
  const auto entry = in.entries.find(name);
  if (inodes_.at(entry->second.inode)->attributes.is_directory()) --in.attributes.links;
  in.by_cookie.erase(entry->second.cookie);
  in.entries.erase(entry);
  in.attributes.modified = in.attributes.changed = now;
}

void Model::drop_name(InodeNumber inode, Timestamp now) {
  Inode& dropped = edit(inode);
  dropped.attributes.changed = now;
  if (dropped.attributes.is_directory()) {
    dropped.attributes.links = 0;
    dropped.parent.reset();
  } else {
    --dropped.attributes.links;
  }
  free_if_unused(inode);
}

void Model::free_if_unused(InodeNumber inode) {
  const Inode& unused = *inodes_.at(inode);
  if (unused.attributes.links > 0 || unused.holds > 0) return;
  used_blocks_ -= unused.data.blocks();
  inodes_.erase(inode);
  lowest_free_ = std::min(lowest_free_, inode);
}

Attributes Model::shown(const Inode& inode) const {
  Attributes attributes = inode.attributes;
  attributes.blocks = inode.data.blocks() * (kBlock / 512);
  return attributes;
}

// --- names

Result<Attributes> Model::look_up(InodeNumber directory, std::string_view name) const {
  const FoundInode in = find_parent(directory, name);
  if (!in) return fail(in.error());
  const Inode* const found = at(**in, name);
  if (found == nullptr) return fail(std::errc::no_such_file_or_directory);
  return shown(*found);
}

Result<InodeNumber> Model::parent(InodeNumber directory) const {
  const FoundInode found = find_directory(directory);
  if (!found) return fail(found.error());
  if (!(*found)->parent) return fail(std::errc::no_such_file_or_directory);
  return *(*found)->parent;
}

Result<Attributes> Model::create(InodeNumber directory, std::string_view name,
                                 const NewInode& inode, Timestamp now) {
  const FoundInode in = find_parent(directory, name);
  if (!in) return fail(in.error());
  if ((*in)->attributes.links == 0) return fail(std::errc::no_such_file_or_directory);
  if (at(**in, name) != nullptr) return fail(std::errc::file_exists);
  if (const std::errc error = why_not(inode); error != std::errc{}) return fail(error);
  const bool is_directory = (inode.mode & S_IFMT) == S_IFDIR;
  if (is_directory && (*in)->attributes.links >= config_.most_links) {
    return fail(std::errc::too_many_links);
  }
  Inode& added = add_inode(inode, now);
  added.attributes.links = is_directory ? 2 : 1;
  add_entry(directory, name, added.attributes.inode, now);
  return shown(added);
}

Result<Attributes> Model::create_unnamed(const NewInode& inode, Timestamp now) {
  if ((inode.mode & S_IFMT) == S_IFDIR) return fail(std::errc::is_a_directory);
  if (const std::errc error = why_not(inode); error != std::errc{}) return fail(error);
  Inode& added = add_inode(inode, now);
  added.holds = 1;
  return shown(added);
}

Result<Attributes> Model::link(InodeNumber inode, InodeNumber directory, std::string_view name,
                               Timestamp now) {
  const FoundInode linked = find(inode);
  if (!linked) return fail(linked.error());
  const FoundInode in = find_parent(directory, name);
  if (!in) return fail(in.error());
  if ((*in)->attributes.links == 0) return fail(std::errc::no_such_file_or_directory);
  if (at(**in, name) != nullptr) return fail(std::errc::file_exists);
  if ((*linked)->attributes.is_directory()) return fail(std::errc::operation_not_permitted);
  if ((*linked)->attributes.links >= config_.most_links) return fail(std::errc::too_many_links);
  Inode& changed = edit(inode);
  ++changed.attributes.links;
  changed.attributes.changed = now;
  add_entry(directory, name, inode, now);
  return shown(changed);
}

Result<void> Model::unlink(InodeNumber directory, std::string_view name, Timestamp now) {
  const FoundInode in = find_parent(directory, name);
  if (!in) return fail(in.error());
  const Inode* const found = at(**in, name);
  if (found == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (found->attributes.is_directory()) return fail(std::errc::is_a_directory);
  const InodeNumber inode = found->attributes.inode;
  remove_entry(directory, name, now);
  drop_name(inode, now);
  return {};
}

Result<void> Model::remove_directory(InodeNumber directory, std::string_view name, Timestamp now) {
  const FoundInode in = find_parent(directory, name);
  if (!in) return fail(in.error());
  const Inode* const found = at(**in, name);
  if (found == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (!found->attributes.is_directory()) return fail(std::errc::not_a_directory);
  if (!found->entries.empty()) return fail(std::errc::directory_not_empty);
  const InodeNumber inode = found->attributes.inode;
  remove_entry(directory, name, now);
  drop_name(inode, now);
  return {};
}

Result<void> Model::rename(InodeNumber from, std::string_view name, InodeNumber to,
                           std::string_view new_name, RenameMode mode, Timestamp now) {
  const FoundInode old_directory = find_parent(from, name);
  if (!old_directory) return fail(old_directory.error());
  const FoundInode new_directory = find_parent(to, new_name);
  if (!new_directory) return fail(new_directory.error());
  const Inode* const source = at(**old_directory, name);
  if (source == nullptr) return fail(std::errc::no_such_file_or_directory);
  if ((*new_directory)->attributes.links == 0) return fail(std::errc::no_such_file_or_directory);
  const Inode* const target = at(**new_directory, new_name);
  if (mode == RenameMode::keep && target != nullptr) return fail(std::errc::file_exists);
  if (mode == RenameMode::exchange && target == nullptr) {
    return fail(std::errc::no_such_file_or_directory);
  }
  const bool moves_directory = source->attributes.is_directory();
  if (moves_directory && lies_in(to, source->attributes.inode)) {
    return fail(std::errc::invalid_argument);
  }
  const bool meets_directory = target != nullptr && target->attributes.is_directory();
  if (meets_directory && lies_in(from, target->attributes.inode)) {
    return fail(mode == RenameMode::exchange ? std::errc::invalid_argument
                                             : std::errc::directory_not_empty);
  }
  if (source == target) return {};
  if (mode == RenameMode::replace && target != nullptr) {
    if (moves_directory && !meets_directory) return fail(std::errc::not_a_directory);
    if (!moves_directory && meets_directory) return fail(std::errc::is_a_directory);
    if (!target->entries.empty()) return fail(std::errc::directory_not_empty);
  }
  // True if the directory would gain a subdirectory beyond the limit of links.
  const auto gains = [&](InodeNumber directory) {
    const bool gets = directory == to && moves_directory;
    const bool gets_other = directory == from && meets_directory && mode == RenameMode::exchange;
    const bool loses =
        (directory == from && moves_directory) || (directory == to && meets_directory);
    return (gets || gets_other) && !loses &&
           inodes_.at(directory)->attributes.links >= config_.most_links;
  };
  if (gains(from) || gains(to)) return fail(std::errc::too_many_links);

  const InodeNumber moved = source->attributes.inode;
  const std::optional<InodeNumber> met =
      target == nullptr ? std::nullopt : std::optional(target->attributes.inode);
  remove_entry(from, name, now);
  if (met) remove_entry(to, new_name, now);
  add_entry(to, new_name, moved, now);
  edit(moved).attributes.changed = now;
  if (met && mode == RenameMode::exchange) {
    add_entry(from, name, *met, now);
    edit(*met).attributes.changed = now;
  } else if (met) {
    drop_name(*met, now);
  }
  return {};
}

Result<std::vector<DirectoryEntry>> Model::entries(InodeNumber directory, std::uint64_t cookie,
                                                   std::size_t most) const {
  const FoundInode in = find_directory(directory);
  if (!in) return fail(in.error());
  std::vector<DirectoryEntry> found;
  for (auto at = (*in)->by_cookie.upper_bound(cookie);
       at != (*in)->by_cookie.end() && found.size() < most; ++at) {
    const Inode& inode = *this->at(**in, at->second);
    found.push_back(
        {at->second, inode.attributes.inode, inode.attributes.mode & S_IFMT, at->first});
  }
  return found;
}

Result<std::uint64_t> Model::last_cookie(InodeNumber directory) const {
  const FoundInode in = find_directory(directory);
  if (!in) return fail(in.error());
  return (*in)->next_cookie - 1;
}

Result<std::string> Model::read_link(InodeNumber inode) const {
  const FoundInode found = find(inode);
  if (!found) return fail(found.error());
  if (!(*found)->attributes.is_symlink()) return fail(std::errc::invalid_argument);
  return (*found)->target;
}

// --- inodes in use, and the whole

Result<void> Model::hold(InodeNumber inode) {
  if (const FoundInode found = find(inode); !found) return fail(found.error());
  ++edit(inode).holds;
  return {};
}

void Model::release(InodeNumber inode, std::uint64_t holds) {
  if (!exists(inode)) return;
  Inode& released = edit(inode);
  released.holds -= std::min(released.holds, holds);
  free_if_unused(inode);
}

void Model::end_holds() {
  std::vector<InodeNumber> held;
  for (const auto& [number, inode] : inodes_) {
    if (inode->holds > 0) held.push_back(number);
  }
  for (const InodeNumber number : held) release(number, inodes_.at(number)->holds);
}

Result<Statistics> Model::statistics() const {
  return Statistics{.capacity = config_.capacity,
                    .free = config_.capacity / kBlock * kBlock - used_blocks_ * kBlock,
                    .inodes = config_.inodes,
                    .free_inodes = config_.inodes - inodes_.size()};
}

std::string Model::audit() const {
  std::map<InodeNumber, std::uint32_t> names;
  std::uint64_t blocks = 0;
  for (const auto& [number, inode] : inodes_) {
    blocks += inode->data.blocks();
    if (inode->by_cookie.size() != inode->entries.size()) return "entries and cookies differ";
    for (const auto& [name, entry] : inode->entries) {
      if (!exists(entry.inode)) return fmt::format("{} names nothing", name);
      const Inode& named = *inodes_.at(entry.inode);
      ++names[entry.inode];
      if (!named.attributes.is_directory()) continue;
      if (named.parent != number) return fmt::format("{} has another parent", name);
      names[number]++;
    }
  }
  for (const auto& [number, inode] : inodes_) {
    const bool is_linked_directory =
        inode->attributes.is_directory() && inode->attributes.links != 0;
    const std::uint32_t links = names[number] + (number == kRootInode ? 2 : is_linked_directory);
    if (links != inode->attributes.links) {
      return fmt::format("inode {} has {} links instead of {}", static_cast<std::uint64_t>(number),
                         inode->attributes.links, links);
    }
    if (links == 0 && inode->holds == 0) return "an inode that nobody uses";
  }
  return blocks == used_blocks_ ? "" : "the space in use is counted wrongly";
}

bool Model::Inode::operator==(const Inode& other) const {
  const auto without_generation = [](Attributes without) {
    without.generation = 0;
    return without;
  };
  return without_generation(attributes) == without_generation(other.attributes) &&
         extended == other.extended && holds == other.holds && target == other.target &&
         parent == other.parent && data == other.data &&
         std::equal(entries.begin(), entries.end(), other.entries.begin(), other.entries.end(),
                    [](const auto& one, const auto& two) {
                      return one.first == two.first && one.second.inode == two.second.inode;
                    });
}

std::size_t Model::Inode::hash() const {
  std::size_t hash = data.hash();
  add_to_hash(hash, attributes.mode, attributes.uid, attributes.gid, attributes.links,
              attributes.device, attributes.size, holds, target);
  for (const Timestamp& time : {attributes.accessed, attributes.modified, attributes.changed}) {
    add_to_hash(hash, time.seconds, time.nanoseconds);
  }
  for (const auto& [name, value] : extended) {
    add_to_hash(hash, name,
                std::string_view(reinterpret_cast<const char*>(value.data()), value.size()));
  }
  for (const auto& [name, entry] : entries) {
    add_to_hash(hash, name, static_cast<std::uint64_t>(entry.inode));
  }
  return hash;
}

bool Model::operator==(const Model& other) const {
  return std::equal(inodes_.begin(), inodes_.end(), other.inodes_.begin(), other.inodes_.end(),
                    [](const auto& one, const auto& two) {
                      return one.first == two.first &&
                             (one.second == two.second || *one.second == *two.second);
                    });
}

std::size_t Model::hash() const {
  std::size_t hash = 0;
  for (const auto& [number, inode] : inodes_) {
    add_to_hash(hash, static_cast<std::uint64_t>(number), inode->hash());
  }
  return hash;
}

}  // namespace perdura::fs
