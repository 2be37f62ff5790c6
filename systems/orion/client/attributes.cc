// Attributes: read from copies, changed by log commits; extended ones, whose values may be long, are
// changed by RPCs.
#include "platform/runtime/work.h"
#include "systems/orion/client/session.h"

namespace perdura::systems::orion {

namespace {

const nova::Extended* find_extended(const nova::Inode& inode, std::string_view name) {
  if (inode.extended == nullptr) return nullptr;
  const auto found = inode.extended->find(name);
  return found == inode.extended->end() ? nullptr : &found->second;
}

void set_time(Arguments& arguments, Timestamp now) {
  arguments.seconds = now.seconds;
  arguments.nanoseconds = now.nanoseconds;
}

nova::AttributesEntry entry_after(const nova::Inode& inode, const fs::AttributeChange& change) {
  nova::AttributesEntry entry = nova::attributes_entry(inode);
  entry.header.flags = nova::kKeepsLinks;
  if (change.permissions) {
    entry.header.mode = (inode.mode & S_IFMT) | (*change.permissions & 07777);
  }
  entry.uid = change.uid.value_or(inode.uid);
  entry.gid = change.gid.value_or(inode.gid);
  const Timestamp accessed = change.accessed.value_or(inode.accessed);
  const Timestamp modified = change.modified.value_or(inode.modified);
  const Timestamp changed = change.changed.value_or(inode.changed);
  entry.accessed_seconds = accessed.seconds;
  entry.accessed_nanoseconds = accessed.nanoseconds;
  entry.modified_seconds = modified.seconds;
  entry.modified_nanoseconds = modified.nanoseconds;
  entry.header.seconds = changed.seconds;
  entry.header.nanoseconds = changed.nanoseconds;
  return entry;
}

// A change with an extended attribute, which is an RPC.
Outgoing request_for(InodeNumber inode, const fs::AttributeChange& change) {
  Outgoing request{.header = {.request = Request::change, .inode = identity_of(inode)}};
  Arguments& arguments = request.arguments;
  const auto give = [&](ChangePart part) { arguments.present |= static_cast<std::uint8_t>(part); };
  if (change.permissions) give(ChangePart::permissions), arguments.mode = *change.permissions;
  if (change.uid) give(ChangePart::uid), arguments.uid = *change.uid;
  if (change.gid) give(ChangePart::gid), arguments.gid = *change.gid;
  if (change.accessed) {
    give(ChangePart::accessed);
    arguments.accessed_seconds = change.accessed->seconds;
    arguments.accessed_nanoseconds = change.accessed->nanoseconds;
  }
  if (change.modified) {
    give(ChangePart::modified);
    arguments.modified_seconds = change.modified->seconds;
    arguments.modified_nanoseconds = change.modified->nanoseconds;
  }
  if (change.changed) give(ChangePart::changed), set_time(arguments, *change.changed);
  give(ChangePart::extended);
  request.name = shortened_name(change.extended->name);
  if (change.extended->value) {
    give(ChangePart::extended_value);
    request.payload = *change.extended->value;
  }
  return request;
}

}  // namespace

Task<Result<fs::Attributes>> Session::attributes(InodeNumber number) {
  const Inodes::Use inode = co_await inodes_.use(number);
  const std::errc error = co_await inodes_.refresh(*inode);
  if (error != std::errc{}) co_return fail(error);
  fs::Attributes attributes = inode->inode.attributes();
  attributes.inode = number;
  co_return attributes;
}

Task<Result<std::string>> Session::read_link(InodeNumber number) {
  const Inodes::Use inode = co_await inodes_.use(number);
  const std::errc error = co_await inodes_.refresh(*inode);
  if (error != std::errc{}) co_return fail(error);
  if (!inode->inode.is(S_IFLNK)) co_return fail(std::errc::invalid_argument);
  std::string target(inode->inode.size, '\0');
  if (inode->inode.target_block == 0) {
    if (target.size() > inode->base.target.size()) co_return fail(std::errc::io_error);
    std::copy_n(inode->base.target.begin(), target.size(), target.begin());
    co_return target;
  }
  const auto bytes = std::as_writable_bytes(std::span(target.data(), target.size()));
  if (!co_await link_.read_copy(inode->inode.target_block * kPage, bytes)) {
    co_return fail(std::errc::not_connected);
  }
  if (crc32(0, bytes) != inode->base.target_crc) co_return fail(std::errc::io_error);
  co_return target;
}

Task<Result<fs::Attributes>> Session::change(InodeNumber number,
                                             const fs::AttributeChange& change) {
  if (change.extended) {
    Outgoing request = request_for(number, change);
    if (request.payload.size() > fs::kLargestAttribute) {
      co_return fail(std::errc::argument_list_too_long);
    }
    co_return co_await call_for_attributes(request);
  }
  const Inodes::Use inode = co_await inodes_.use(number);
  for (;;) {
    const std::errc error = co_await inodes_.refresh(*inode);
    if (error != std::errc{}) co_return fail(error);
    const nova::AttributesEntry entry = entry_after(inode->inode, change);
    // The entry follows those of the copy directly, and others may follow it before the answer.
    fs::Attributes attributes = inode->inode.attributes();
    attributes.inode = number;
    attributes.mode = entry.header.mode;
    attributes.uid = entry.uid;
    attributes.gid = entry.gid;
    attributes.accessed = change.accessed.value_or(attributes.accessed);
    attributes.modified = change.modified.value_or(attributes.modified);
    attributes.changed = change.changed.value_or(attributes.changed);
    Change entries = change_of(*inode);
    entries.add(entry);
    const std::errc done = co_await commit(*inode, entries, By::commit);
    if (done == std::errc{}) co_return attributes;
    if (done != std::errc::resource_unavailable_try_again) co_return fail(done);
    ++repetitions_;
  }
}

// --- extended attributes

Task<Result<std::vector<std::byte>>> Session::extended(InodeNumber number, std::string_view name) {
  const Inodes::Use inode = co_await inodes_.use(number);
  for (;;) {
    const std::errc error = co_await inodes_.refresh(*inode);
    if (error != std::errc{}) co_return fail(error);
    const nova::Extended* const found = find_extended(inode->inode, name);
    if (found == nullptr) co_return fail(std::errc::no_message_available);
    std::vector<std::byte> value(found->value_length);
    if (found->blocks.empty()) {
      inodes_.logs().read(found->offset + sizeof(nova::ExtendedEntry) + found->name_length, value);
      co_return value;
    }
    const auto entry = inodes_.logs().read_object<nova::ExtendedEntry>(found->offset);
    Bytes done = 0;
    for (const nova::Extent& extent : found->blocks) {
      const Bytes part = std::min<Bytes>(extent.count * kPage, value.size() - done);
      if (!co_await link_.read_copy(extent.first * kPage, std::span(value).subspan(done, part))) {
        co_return fail(std::errc::not_connected);
      }
      done += part;
    }
    const bool is_current = co_await inodes_.is_current(*inode);
    if (!is_current) continue;
    if (crc32(0, value) != entry.value_crc) co_return fail(std::errc::io_error);
    co_return value;
  }
}

Task<Result<std::vector<std::string>>> Session::extended_names(InodeNumber number) {
  const Inodes::Use inode = co_await inodes_.use(number);
  const std::errc error = co_await inodes_.refresh(*inode);
  if (error != std::errc{}) co_return fail(error);
  std::vector<std::string> names;
  if (inode->inode.extended != nullptr) {
    for (const auto& [name, value] : *inode->inode.extended) names.push_back(name);
  }
  co_return names;
}

Task<Result<void>> Session::set_extended(InodeNumber number, std::string_view name,
                                         std::span<const std::byte> value, fs::AttributeMode mode,
                                         Timestamp now) {
  Outgoing request{.header = {.request = Request::set_extended, .inode = identity_of(number)},
                   .name = shortened_name(name)};
  // A value that is too long need only be refused.
  request.payload = value.first(std::min<std::size_t>(value.size(), fs::kLargestAttribute + 1));
  request.arguments.how = static_cast<std::uint8_t>(mode);
  set_time(request.arguments, now);
  return call_without_value(request);
}

Task<Result<void>> Session::remove_extended(InodeNumber number, std::string_view name,
                                            Timestamp now) {
  Outgoing request{.header = {.request = Request::remove_extended, .inode = identity_of(number)},
                   .name = shortened_name(name)};
  set_time(request.arguments, now);
  return call_without_value(request);
}

Task<Result<fs::Statistics>> Session::statistics() {
  const Result<Reply> reply = co_await call({.header = {.request = Request::statistics}});
  if (!reply) co_return fail(reply.error());
  co_return reply->statistics;
}

}  // namespace perdura::systems::orion
