// Attributes and data of the model's inodes.
#include <algorithm>

#include "services/fs/model/fail.h"
#include "services/fs/model/model.h"

namespace perdura::fs {
namespace {

std::errc why_not_extended(std::string_view name, std::span<const std::byte> value) {
  if (name.empty()) return std::errc::invalid_argument;
  if (name.size() > kLongestAttributeName) return std::errc::result_out_of_range;
  return value.size() > kLargestAttribute ? std::errc::argument_list_too_long : std::errc{};
}

// Updates the attributes after a change of contents.
void note_write(Attributes& attributes, const WriteOptions& options) {
  attributes.modified = attributes.changed = options.now;
  if (!options.clear_set_id) return;
  attributes.mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if ((attributes.mode & S_IXGRP) != 0) attributes.mode &= ~static_cast<std::uint32_t>(S_ISGID);
}

}  // namespace

Result<Attributes> Model::attributes(InodeNumber inode) const {
  const FoundInode found = find(inode);
  if (!found) return fail(found.error());
  return shown(**found);
}

Result<Attributes> Model::change(InodeNumber inode, const AttributeChange& change) {
  if (const FoundInode found = find(inode); !found) return fail(found.error());
  if (change.extended) {
    const auto value = change.extended->value.value_or(std::span<const std::byte>());
    const std::errc error = why_not_extended(change.extended->name, value);
    if (error != std::errc{}) return fail(error);
  }
  Inode& changed = edit(inode);
  Attributes& attributes = changed.attributes;
  if (change.permissions) {
    attributes.mode = (attributes.mode & S_IFMT) | (*change.permissions & 07777);
  }
  attributes.uid = change.uid.value_or(attributes.uid);
  attributes.gid = change.gid.value_or(attributes.gid);
  attributes.accessed = change.accessed.value_or(attributes.accessed);
  attributes.modified = change.modified.value_or(attributes.modified);
  attributes.changed = change.changed.value_or(attributes.changed);
  if (change.extended) {
    const std::string name(change.extended->name);
    if (const auto& value = change.extended->value) {
      changed.extended[name].assign(value->begin(), value->end());
    } else {
      changed.extended.erase(name);
    }
  }
  return shown(changed);
}

Result<std::vector<std::byte>> Model::extended(InodeNumber inode, std::string_view name) const {
  const FoundInode found = find(inode);
  if (!found) return fail(found.error());
  const auto attribute = (*found)->extended.find(name);
  if (attribute == (*found)->extended.end()) return fail(std::errc::no_message_available);
  return attribute->second;
}

Result<std::vector<std::string>> Model::extended_names(InodeNumber inode) const {
  const FoundInode found = find(inode);
  if (!found) return fail(found.error());
  std::vector<std::string> names;
  for (const auto& [name, value] : (*found)->extended) names.push_back(name);
  return names;
}

Result<void> Model::set_extended(InodeNumber inode, std::string_view name,
                                 std::span<const std::byte> value, AttributeMode mode,
                                 Timestamp now) {
  const FoundInode found = find(inode);
  if (!found) return fail(found.error());
  if (const std::errc error = why_not_extended(name, value); error != std::errc{}) {
    return fail(error);
  }
  const bool exists = (*found)->extended.contains(name);
  if (exists && !may_replace(mode)) return fail(std::errc::file_exists);
  if (!exists && !may_create(mode)) return fail(std::errc::no_message_available);
  Inode& changed = edit(inode);
  changed.extended[std::string(name)].assign(value.begin(), value.end());
  changed.attributes.changed = now;
  return {};
}

Result<void> Model::remove_extended(InodeNumber inode, std::string_view name, Timestamp now) {
  const FoundInode found = find(inode);
  if (!found) return fail(found.error());
  if (!(*found)->extended.contains(name)) return fail(std::errc::no_message_available);
  Inode& changed = edit(inode);
  changed.extended.erase(changed.extended.find(name));
  changed.attributes.changed = now;
  return {};
}

// --- data

Model::FoundInode Model::find_regular(InodeNumber inode) const {
  const FoundInode found = find(inode);
  if (found && !(*found)->attributes.is_regular()) return fail(std::errc::invalid_argument);
  return found;
}

bool Model::has_space(std::uint64_t blocks) const {
  return blocks <= config_.capacity / kBlock - used_blocks_;
}

Result<Bytes> Model::read(InodeNumber inode, Bytes offset, std::span<std::byte> into) const {
  const FoundInode found = find_regular(inode);
  if (!found) return fail(found.error());
  const Bytes size = (*found)->attributes.size;
  const Bytes length = std::min<Bytes>(into.size(), size - std::min(offset, size));
  (*found)->data.read(offset, into.first(length));
  return length;
}

Result<void> Model::store(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                          const WriteOptions& options) {
  if (data.empty()) return {};  // changes nothing, not even times
  if (data.size() > kLargestFile || offset > kLargestFile - data.size()) {
    return fail(std::errc::file_too_large);
  }
  const std::uint64_t missing = inodes_.at(inode)->data.missing(offset, data.size());
  if (!has_space(missing)) return fail(std::errc::no_space_on_device);
  Inode& written = edit(inode);
  written.data.write(offset, data);
  used_blocks_ += missing;
  written.attributes.size = std::max<Bytes>(written.attributes.size, offset + data.size());
  note_write(written.attributes, options);
  return {};
}

Result<void> Model::write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                          const WriteOptions& options) {
  if (const FoundInode found = find_regular(inode); !found) return fail(found.error());
  return store(inode, offset, data, options);
}

Result<Bytes> Model::append(InodeNumber inode, std::span<const std::byte> data,
                            const WriteOptions& options) {
  const FoundInode found = find_regular(inode);
  if (!found) return fail(found.error());
  const Bytes end = (*found)->attributes.size;
  if (const Result<void> stored = store(inode, end, data, options); !stored) {
    return fail(stored.error());
  }
  return end;
}

Result<void> Model::truncate(InodeNumber inode, Bytes size, const WriteOptions& options) {
  const FoundInode found = find_regular(inode);
  if (!found) return fail(found.error());
  if (size > kLargestFile) return fail(std::errc::file_too_large);
  Inode& cut = edit(inode);
  const std::uint64_t before = cut.data.blocks();
  if (size < cut.attributes.size) cut.data.cut(size);
  used_blocks_ -= before - cut.data.blocks();
  cut.attributes.size = size;
  note_write(cut.attributes, options);
  return {};
}

Result<void> Model::allocate(InodeNumber inode, AllocationMode mode, Bytes offset, Bytes length,
                             const WriteOptions& options) {
  const FoundInode found = find_regular(inode);
  if (!found) return fail(found.error());
  if (length == 0) return fail(std::errc::invalid_argument);
  if (length > kLargestFile || offset > kLargestFile - length) {
    return fail(std::errc::file_too_large);
  }
  const bool frees = mode == AllocationMode::punch;
  const bool zeros =
      frees || mode == AllocationMode::zero || mode == AllocationMode::zero_keep_size;
  const bool grows = mode == AllocationMode::extend || mode == AllocationMode::zero;
  const std::uint64_t missing = frees ? 0 : (*found)->data.missing(offset, length);
  if (!has_space(missing)) return fail(std::errc::no_space_on_device);
  Inode& changed = edit(inode);
  const std::uint64_t before = changed.data.blocks();
  if (frees) {
    changed.data.punch(offset, length);
  } else {
    if (zeros) changed.data.zero(offset, length);
    changed.data.allocate(offset, length);
  }
  used_blocks_ = used_blocks_ - before + changed.data.blocks();
  if (grows) changed.attributes.size = std::max(changed.attributes.size, offset + length);
  note_write(changed.attributes, options);
  return {};
}

Result<Bytes> Model::seek(InodeNumber inode, Bytes offset, Session::Seek what) const {
  const FoundInode found = find_regular(inode);
  if (!found) return fail(found.error());
  const Bytes size = (*found)->attributes.size;
  if (offset >= size) return fail(std::errc::no_such_device_or_address);
  const std::optional<Bytes> next = (*found)->data.next(offset, what);
  if (what == Session::Seek::hole) return std::min(*next, size);
  if (!next || *next >= size) return fail(std::errc::no_such_device_or_address);
  return *next;
}

Result<void> Model::sync(InodeNumber inode) const {
  if (const FoundInode found = find(inode); !found) return fail(found.error());
  return {};
}

}  // namespace perdura::fs
