// Names in directories.
#include <limits>

#include "platform/base/plain_name.h"
#include "systems/nova/operations.h"

namespace perdura::systems::nova {

namespace {

std::errc why_not(const fs::NewInode& inode) {
  switch (inode.mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
      return {};
    case S_IFLNK:
      if (inode.target.empty()) return std::errc::invalid_argument;
      if (inode.target.size() > fs::kLongestSymlink) return std::errc::filename_too_long;
      return {};
    default:
      return std::errc::invalid_argument;
  }
}

}  // namespace

std::errc Operations::why_not_name(std::string_view name) {
  if (!is_entry_name(name)) return std::errc::invalid_argument;
  return name.size() > fs::kLongestName ? std::errc::filename_too_long : std::errc{};
}

std::errc Operations::use_directory(Inode* directory) {
  if (directory == nullptr) return std::errc::no_such_file_or_directory;
  if (const std::errc error = volume_.use(*directory); error != std::errc{}) return error;
  return directory->directory == nullptr ? std::errc::not_a_directory : std::errc{};
}

void Operations::add_name(Inode& directory, std::uint64_t cookie, std::string_view name,
                          std::uint64_t inode, std::uint32_t mode, fs::Timestamp now) {
  context_.add(directory,
               AddEntry{.header = header(EntryType::add, now, mode & S_IFMT),
                        .inode = inode,
                        .cookie = cookie,
                        .length = static_cast<std::uint32_t>(name.size())},
               bytes_of_text(name));
}

void Operations::remove_name(Inode& directory, const Name& name, fs::Timestamp now) {
  context_.add(directory, RemoveEntry{header(EntryType::remove, now), name.inode, name.cookie});
}

void Operations::set_attributes(Inode& inode, const fs::Attributes& to) {
  context_.add(inode, AttributesEntry{.header = header(EntryType::attributes, to.changed, to.mode),
                                      .uid = to.uid,
                                      .gid = to.gid,
                                      .links = to.links,
                                      .accessed_nanoseconds = to.accessed.nanoseconds,
                                      .accessed_seconds = to.accessed.seconds,
                                      .modified_seconds = to.modified.seconds,
                                      .modified_nanoseconds = to.modified.nanoseconds});
}

void Operations::set_links(Inode& inode, std::uint32_t links, fs::Timestamp now) {
  fs::Attributes to = inode.attributes();
  to.links = links;
  to.changed = now;
  set_attributes(inode, to);
}

Result<fs::Attributes> Operations::look_up(std::uint64_t directory, std::string_view name) {
  std::uint64_t number = 0;
  for (;;) {
    const Locked locked(volume_, Locked::For::reading, {directory, number});
    Inode* const in = locked[0];
    if (const std::errc error = use_directory(in); error != std::errc{}) return fail(error);
    if (const std::errc error = why_not_name(name); error != std::errc{}) return fail(error);
    const Name* const found = in->directory->find(volume_.region(), name);
    if (found == nullptr) return fail(std::errc::no_such_file_or_directory);
    if (found->inode != number) {
      // Both locks must be taken in order; by then the name may refer to another inode.
      number = found->inode;
      continue;
    }
    Inode* const child = locked[1];
    const std::errc error = volume_.use(*child);
    if (error == std::errc{}) return child->attributes();
    if (!child->exists) return fail(std::errc::io_error);
    fs::Attributes damaged = child->attributes();
    damaged.mode = static_cast<std::uint32_t>(found->type) << 12 | (damaged.mode & 07777);
    damaged.damaged = true;
    return damaged;
  }
}

Result<std::uint64_t> Operations::parent(std::uint64_t directory) {
  const Locked locked(volume_, Locked::For::reading, {directory});
  Inode* const in = locked[0];
  if (const std::errc error = use_directory(in); error != std::errc{}) return fail(error);
  if (in->links == 0) return fail(std::errc::no_such_file_or_directory);
  return in->parent();
}

// The number may have belonged to an inode that somebody is still looking for, holding its lock and
// waiting for one of ours; then another number is tried. If all free numbers are locked by others,
// `busy_` becomes one of them.
Result<Inode*> Operations::take_free_inode(Locked& locked) {
  // These stay allocated until a number has been found, since the allocator would return them
  // again.
  std::vector<std::uint64_t> busy;
  Inode* found = nullptr;
  while (found == nullptr) {
    const Extent number = volume_.numbers().allocate(context_.number, 1, Urgency::grows);
    if (number.count == 0) break;
    found = locked.try_add(number.first);
    if (found == nullptr) busy.push_back(number.first);
  }
  for (const std::uint64_t number : busy) volume_.numbers().free(number, 1);
  if (found != nullptr) return found;
  if (busy.empty()) return fail(std::errc::no_space_on_device);
  busy_ = busy.front();
  return fail(std::errc::resource_unavailable_try_again);
}

template <class Make>
Result<fs::Attributes> Operations::until_not_busy(const Make& make) {
  for (;;) {
    busy_ = 0;
    const Result<fs::Attributes> made = make();
    if (busy_ == 0) return made;
    // No other lock is held now, so this cannot deadlock.
    const Locked wait(volume_, Locked::For::changing, {busy_});
  }
}

// The record is durable after the first fence of the operation; nobody reads it before the state
// word says that the inode exists.
Result<Inode*> Operations::prepare(Locked& locked, const fs::NewInode& inode, std::uint32_t links,
                                   std::uint64_t parent, fs::Timestamp now) {
  const Result<Inode*> free = take_free_inode(locked);
  if (!free) return fail(free.error());
  Inode& made = **free;
  const std::uint32_t type = inode.mode & S_IFMT;
  const Bytes offset = volume_.geometry().inode_offset(made.number);
  const std::uint64_t before = volume_.region().load(offset + kStateWord);
  // No word of an earlier inode with this number may take the same value again (commit.cc).
  InodeRecord record{
      .state = before,
      .tail = tail_word((version_of(volume_.region().load(offset + kTailWord)) + 1) % kVersions, 0),
      .parent = parent_word_after(volume_.region().load(offset + kParentWord), parent)};
  InodeBase& base = record.base;
  base.mode = inode.mode;
  base.number = made.number;
  base.generation = (before >> 1) + 1;
  base.uid = inode.uid;
  base.gid = inode.gid;
  base.links = links;
  base.created_seconds = now.seconds;
  base.created_nanoseconds = now.nanoseconds;
  base.device = type == S_IFCHR || type == S_IFBLK ? inode.device : 0;
  if (type == S_IFLNK) {
    base.target_length = inode.target.size();
    if (inode.target.size() <= kInlineTarget) {
      std::copy(inode.target.begin(), inode.target.end(), base.target.begin());
    } else {
      const Extent block = volume_.blocks().allocate(context_.number, 1, Urgency::grows);
      if (block.count == 0) {
        volume_.numbers().free(made.number, 1);
        return fail(std::errc::no_space_on_device);
      }
      context_.allocated.push_back(block);
      base.target_block = block.first;
      base.target_crc = crc32(0, bytes_of_text(inode.target));
      volume_.write_data(context_, block.first * kBlock, bytes_of_text(inode.target));
    }
  }
  base.crc = checksum(base);
  // The state word stays as it is; all other words are the new inode's.
  volume_.write_metadata(context_, offset + kTailWord, bytes_of(record).subspan(kTailWord));
  context_.words.push_back({offset + kStateWord, before, state_word(base.generation, true)});
  made.begin(base);
  made.log.tail = record.tail;
  made.log.version = version_of(record.tail);
  made.parent_word = record.parent;
  made.loaded = made.exists = true;
  made.damaged = false;
  made.holds = 0;
  for (const fs::ExtendedAttribute& extended : inode.extended) {
    const std::errc error = add_extended(made, extended.name, extended.value, now);
    if (error == std::errc{}) continue;
    give_up(made);
    return fail(error);
  }
  return &made;
}

void Operations::give_up(Inode& inode) {
  volume_.undo(context_);
  inode.exists = false;
  inode.target_block = 0;
  inode.forget_log();
  inode.directory.reset();
  // The record also says so, with the previous generation.
  inode.loaded = false;
  volume_.numbers().free(inode.number, 1);
}

Result<fs::Attributes> Operations::create(std::uint64_t directory, std::string_view name,
                                          const fs::NewInode& inode, fs::Timestamp now) {
  return until_not_busy([&] { return try_create(directory, name, inode, now); });
}

Result<fs::Attributes> Operations::try_create(std::uint64_t directory, std::string_view name,
                                              const fs::NewInode& inode, fs::Timestamp now) {
  Locked locked(volume_, Locked::For::changing, {directory});
  Inode* const in = locked[0];
  if (const std::errc error = use_directory(in); error != std::errc{}) return fail(error);
  if (const std::errc error = why_not_name(name); error != std::errc{}) return fail(error);
  if (in->links == 0) return fail(std::errc::no_such_file_or_directory);
  if (in->directory->find(volume_.region(), name) != nullptr) return fail(std::errc::file_exists);
  if (const std::errc error = why_not(inode); error != std::errc{}) return fail(error);
  context_.begin();
  const auto made =
      prepare(locked, inode, 1, (inode.mode & S_IFMT) == S_IFDIR ? directory : 0, now);
  if (!made) return fail(made.error());
  add_name(*in, in->directory->next_cookie(), name, (*made)->number, (*made)->mode, now);
  if (const std::errc error = volume_.commit(context_, Urgency::grows); error != std::errc{}) {
    give_up(**made);
    return fail(error);
  }
  return (*made)->attributes();
}

Result<fs::Attributes> Operations::create_unnamed(const fs::NewInode& inode, fs::Timestamp now) {
  return until_not_busy([&] { return try_create_unnamed(inode, now); });
}

Result<fs::Attributes> Operations::try_create_unnamed(const fs::NewInode& inode,
                                                      fs::Timestamp now) {
  if ((inode.mode & S_IFMT) == S_IFDIR) return fail(std::errc::is_a_directory);
  if (const std::errc error = why_not(inode); error != std::errc{}) return fail(error);
  context_.begin();
  Locked locked(volume_, Locked::For::changing, {});
  const auto made = prepare(locked, inode, 0, 0, now);
  if (!made) return fail(made.error());
  if (const std::errc error = volume_.commit(context_, Urgency::grows); error != std::errc{}) {
    give_up(**made);
    return fail(error);
  }
  (*made)->holds = 1;
  return (*made)->attributes();
}

Result<fs::Attributes> Operations::link(std::uint64_t inode, std::uint64_t directory,
                                        std::string_view name, fs::Timestamp now) {
  const Locked locked(volume_, Locked::For::changing, {inode, directory});
  Inode* const linked = locked[0];
  Inode* const in = locked[1];
  if (linked == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*linked); error != std::errc{}) return fail(error);
  if (const std::errc error = use_directory(in); error != std::errc{}) return fail(error);
  if (const std::errc error = why_not_name(name); error != std::errc{}) return fail(error);
  if (in->links == 0) return fail(std::errc::no_such_file_or_directory);
  if (in->directory->find(volume_.region(), name) != nullptr) return fail(std::errc::file_exists);
  if (linked->directory != nullptr) return fail(std::errc::operation_not_permitted);
  if (linked->links == std::numeric_limits<std::uint32_t>::max()) {
    return fail(std::errc::too_many_links);
  }
  context_.begin();
  set_links(*linked, linked->links + 1, now);
  add_name(*in, in->directory->next_cookie(), name, linked->number, linked->mode, now);
  if (const std::errc error = volume_.commit(context_, Urgency::grows); error != std::errc{}) {
    return fail(error);
  }
  return linked->attributes();
}

bool Operations::lose_name(Inode& inode, fs::Timestamp now) {
  const bool ends = inode.links == 1 && inode.holds == 0;
  if (ends) {
    volume_.will_discard(context_, inode);
  } else {
    set_links(inode, inode.links - 1, now);
  }
  return ends;
}

Result<void> Operations::remove(std::uint64_t directory, std::string_view name, bool is_directory,
                                fs::Timestamp now) {
  std::uint64_t number = 0;
  for (;;) {
    const Locked locked(volume_, Locked::For::changing, {directory, number});
    Inode* const in = locked[0];
    if (const std::errc error = use_directory(in); error != std::errc{}) return fail(error);
    if (const std::errc error = why_not_name(name); error != std::errc{}) return fail(error);
    const Name* const found = in->directory->find(volume_.region(), name);
    if (found == nullptr) return fail(std::errc::no_such_file_or_directory);
    if (found->inode != number) {
      number = found->inode;
      continue;
    }
    Inode* const child = locked[1];
    if (volume_.use(*child) != std::errc{}) {
      if (is_directory && !found->is_directory()) return fail(std::errc::not_a_directory);
      if (!is_directory && found->is_directory()) return fail(std::errc::is_a_directory);
      // It may contain names.
      if (is_directory) return fail(std::errc::io_error);
      context_.begin();
      remove_name(*in, *found, now);
      const bool ends = volume_.will_end_damaged(context_, *child);
      const std::errc error = volume_.commit(context_, Urgency::frees);
      if (error != std::errc{}) return fail(error);
      if (ends) volume_.end_damaged(*child);
      return {};
    }
    if (is_directory && child->directory == nullptr) return fail(std::errc::not_a_directory);
    if (!is_directory && child->directory != nullptr) return fail(std::errc::is_a_directory);
    if (is_directory && !child->directory->empty()) return fail(std::errc::directory_not_empty);
    context_.begin();
    remove_name(*in, *found, now);
    const bool ends = lose_name(*child, now);
    if (const std::errc error = volume_.commit(context_, Urgency::frees); error != std::errc{}) {
      return fail(error);
    }
    if (ends) volume_.discard(context_, *child);
    return {};
  }
}

Result<std::vector<fs::DirectoryEntry>> Operations::entries(std::uint64_t directory,
                                                            std::uint64_t cookie,
                                                            std::size_t most) {
  const Locked locked(volume_, Locked::For::reading, {directory});
  Inode* const in = locked[0];
  if (const std::errc error = use_directory(in); error != std::errc{}) return fail(error);
  std::vector<fs::DirectoryEntry> found;
  if (most == 0) return found;
  in->directory->visit(cookie, [&](const Name& name) {
    std::string text(name.length, '\0');
    volume_.region().read(name.offset + sizeof(AddEntry),
                          std::as_writable_bytes(std::span(text.data(), text.size())));
    found.push_back({std::move(text), fs::InodeNumber{name.inode},
                     static_cast<std::uint32_t>(name.type) << 12, name.cookie});
    return found.size() < most;
  });
  return found;
}

Result<std::uint64_t> Operations::last_cookie(std::uint64_t directory) {
  const Locked locked(volume_, Locked::For::reading, {directory});
  Inode* const in = locked[0];
  if (const std::errc error = use_directory(in); error != std::errc{}) return fail(error);
  return in->directory->next_cookie() - 1;
}

}  // namespace perdura::systems::nova
