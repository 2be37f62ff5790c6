// Attributes, extended attributes, and holds.
#include "systems/nova/operations.h"

namespace perdura::systems::nova {

namespace {

std::errc why_not_extended(std::string_view name, std::span<const std::byte> value) {
  if (name.empty()) return std::errc::invalid_argument;
  if (name.size() > fs::kLongestAttributeName) return std::errc::result_out_of_range;
  return value.size() > fs::kLargestAttribute ? std::errc::argument_list_too_long : std::errc{};
}

const Extended* find_extended(const Inode& inode, std::string_view name) {
  if (inode.extended == nullptr) return nullptr;
  const auto found = inode.extended->find(name);
  return found == inode.extended->end() ? nullptr : &found->second;
}

}  // namespace

Result<fs::Attributes> Operations::attributes(std::uint64_t number) {
  const Locked locked(volume_, Locked::For::reading, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return fail(error);
  return inode->attributes();
}

Result<std::string> Operations::read_link(std::uint64_t number) {
  const Locked locked(volume_, Locked::For::reading, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return fail(error);
  if (!inode->is(S_IFLNK)) return fail(std::errc::invalid_argument);
  std::string target(inode->size, '\0');
  const Bytes offset = inode->target_block != 0 ? inode->target_block * kBlock
                                                : volume_.geometry().inode_offset(number) +
                                                      kCacheLine + offsetof(InodeBase, target);
  volume_.region().read(offset, std::as_writable_bytes(std::span(target.data(), target.size())));
  if (inode->target_block != 0) {
    const auto record =
        volume_.region().read_object<InodeRecord>(volume_.geometry().inode_offset(number));
    if (crc32(0, bytes_of_text(target)) != record.base.target_crc) return fail(std::errc::io_error);
  }
  return target;
}

Result<fs::Attributes> Operations::change(std::uint64_t number, const fs::AttributeChange& change) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return fail(error);
  const auto& extended = change.extended;
  if (extended) {
    const std::errc error =
        why_not_extended(extended->name, extended->value.value_or(std::span<const std::byte>()));
    if (error != std::errc{}) return fail(error);
  }
  context_.begin();
  if (extended && extended->value) {
    const std::errc error = add_extended(*inode, extended->name, *extended->value, inode->changed);
    if (error != std::errc{}) return fail(error);
  } else if (extended && find_extended(*inode, extended->name) != nullptr) {
    add_extended_removal(*inode, extended->name, inode->changed);
  }
  fs::Attributes to = inode->attributes();
  to.links = inode->links;
  if (change.permissions) to.mode = (to.mode & S_IFMT) | (*change.permissions & 07777);
  to.uid = change.uid.value_or(to.uid);
  to.gid = change.gid.value_or(to.gid);
  to.accessed = change.accessed.value_or(to.accessed);
  to.modified = change.modified.value_or(to.modified);
  to.changed = change.changed.value_or(to.changed);
  set_attributes(*inode, to);
  if (const std::errc error = volume_.commit(context_, Urgency::changes); error != std::errc{}) {
    volume_.undo(context_);
    return fail(error);
  }
  return inode->attributes();
}

// --- extended attributes

std::errc Operations::add_extended(Inode& inode, std::string_view name,
                                   std::span<const std::byte> value, fs::Timestamp now) {
  if (const std::errc error = why_not_extended(name, value); error != std::errc{}) return error;
  ExtendedEntry entry{.header = header(EntryType::set_extended, now),
                      .name_length = static_cast<std::uint32_t>(name.size()),
                      .value_length = static_cast<std::uint32_t>(value.size())};
  if (value.size() <= kLongestInlineValue) {
    context_.add(inode, entry, bytes_of_text(name), value);
    return {};
  }
  std::array<std::uint64_t, kMostValueExtents> extents{};
  for (Bytes done = 0; done < value.size(); ++entry.extents) {
    const Extent extent = volume_.blocks().allocate(
        context_.number, (value.size() - done + kBlock - 1) / kBlock, Urgency::grows);
    if (extent.count == 0) {
      volume_.undo(context_);
      return std::errc::no_space_on_device;
    }
    context_.allocated.push_back(extent);
    const Bytes part = std::min<Bytes>(extent.count * kBlock, value.size() - done);
    volume_.write_data(context_, extent.first * kBlock, value.subspan(done, part));
    extents[entry.extents] = extent.first << 16 | extent.count;
    done += part;
  }
  entry.header.flags = kInBlocks;
  entry.value_crc = crc32(0, value);
  context_.add(inode, entry, bytes_of_text(name),
               std::as_bytes(std::span(extents).first(entry.extents)));
  return {};
}

void Operations::add_extended_removal(Inode& inode, std::string_view name, fs::Timestamp now) {
  context_.add(inode,
               ExtendedEntry{.header = header(EntryType::remove_extended, now),
                             .name_length = static_cast<std::uint32_t>(name.size())},
               bytes_of_text(name));
}

Result<std::vector<std::byte>> Operations::extended(std::uint64_t number, std::string_view name) {
  const Locked locked(volume_, Locked::For::reading, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return fail(error);
  const Extended* const found = find_extended(*inode, name);
  if (found == nullptr) return fail(std::errc::no_message_available);
  if (!found->blocks.empty()) {
    auto value = read_long_value(volume_.region(), *found);
    if (!value) return fail(std::errc::io_error);
    return *std::move(value);
  }
  std::vector<std::byte> value(found->value_length);
  volume_.region().read(found->offset + sizeof(ExtendedEntry) + found->name_length, value);
  return value;
}

Result<std::vector<std::string>> Operations::extended_names(std::uint64_t number) {
  const Locked locked(volume_, Locked::For::reading, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return fail(error);
  std::vector<std::string> names;
  if (inode->extended != nullptr) {
    for (const auto& [name, value] : *inode->extended) names.push_back(name);
  }
  return names;
}

Result<void> Operations::set_extended(std::uint64_t number, std::string_view name,
                                      std::span<const std::byte> value, fs::AttributeMode mode,
                                      fs::Timestamp now) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return fail(error);
  if (const std::errc error = why_not_extended(name, value); error != std::errc{}) {
    return fail(error);
  }
  const bool exists = find_extended(*inode, name) != nullptr;
  if (exists && !fs::may_replace(mode)) return fail(std::errc::file_exists);
  if (!exists && !fs::may_create(mode)) return fail(std::errc::no_message_available);
  context_.begin();
  std::errc error = add_extended(*inode, name, value, now);
  if (error == std::errc{}) error = volume_.commit(context_, Urgency::grows);
  if (error == std::errc{}) return {};
  volume_.undo(context_);
  return fail(error);
}

Result<void> Operations::remove_extended(std::uint64_t number, std::string_view name,
                                         fs::Timestamp now) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  if (const std::errc error = volume_.use(*inode); error != std::errc{}) return fail(error);
  if (find_extended(*inode, name) == nullptr) return fail(std::errc::no_message_available);
  context_.begin();
  add_extended_removal(*inode, name, now);
  if (const std::errc error = volume_.commit(context_, Urgency::frees); error != std::errc{}) {
    return fail(error);
  }
  return {};
}

// --- holds

Result<void> Operations::hold(std::uint64_t number) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return fail(std::errc::no_such_file_or_directory);
  // A damaged inode can be held, too: its name can be removed.
  const std::errc error = volume_.use(*inode);
  if (error != std::errc{} && error != std::errc::io_error) return fail(error);
  ++inode->holds;
  return {};
}

void Operations::release(std::uint64_t number, std::uint64_t holds) {
  const Locked locked(volume_, Locked::For::changing, {number});
  Inode* const inode = locked[0];
  if (inode == nullptr) return;
  const std::errc error = volume_.use(*inode);
  if (!inode->exists && !inode->damaged) return;
  const bool was_held = inode->holds > 0;
  inode->holds -= std::min(inode->holds, holds);
  if (error != std::errc{}) {
    if (was_held && !inode->exists && inode->holds == 0) volume_.end_damaged(*inode);
    return;
  }
  if (inode->links > 0 || inode->holds > 0) return;
  context_.begin();
  volume_.will_discard(context_, *inode);
  if (volume_.commit(context_, Urgency::frees) == std::errc{}) volume_.discard(context_, *inode);
}

}  // namespace perdura::systems::nova
