#include "systems/novad/requests.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "services/fs/posix/rules.h"

namespace perdura::systems::novad {

using fs::InodeNumber;
using fs::Timestamp;

namespace {

// An answer of the file system becomes one to the client.
std::int32_t code_of(std::errc error) { return static_cast<std::int32_t>(error); }

std::int32_t answer(const fs::Result<void>& result) { return result ? 0 : code_of(result.error()); }
template <class T>
std::int32_t answer(const fs::Result<T>& result, Encoder& results) {
  if (!result) return code_of(result.error());
  results.add(*result);
  return 0;
}
// A result that may be too long for the room.
std::int32_t fitted(const Encoder& results, Bytes room) {
  return results.bytes().size() > room ? kRoomTooSmall : 0;
}

fs::WriteOptions take_options(Decoder& given) {
  fs::WriteOptions options;
  options.now = given.take<Timestamp>();
  options.clear_set_id = given.take_flag();
  return options;
}

template <class T>
std::optional<T> take_optional(Decoder& given) {
  if (!given.take_flag()) return std::nullopt;
  return given.take<T>();
}

fs::AttributeChange take_change(Decoder& given) {
  fs::AttributeChange change;
  change.permissions = take_optional<std::uint32_t>(given);
  change.uid = take_optional<std::uint32_t>(given);
  change.gid = take_optional<std::uint32_t>(given);
  change.accessed = take_optional<Timestamp>(given);
  change.modified = take_optional<Timestamp>(given);
  change.changed = take_optional<Timestamp>(given);
  if (!given.take_flag()) return change;
  change.extended = fs::AttributeChange::Extended{.name = given.take_text()};
  if (given.take_flag()) {
    const std::string_view value = given.take_text();
    change.extended->value = std::as_bytes(std::span(value.data(), value.size()));
  }
  return change;
}

}  // namespace

Task<Requests::Outcome> Requests::execute(std::uint64_t mount, const MessageHeader& header,
                                          std::span<const std::byte> body, Bytes room,
                                          Encoder& results) {
  const Decoder given(body);
  switch (header.request) {
    case Request::look_up:
    case Request::parent:
    case Request::entries:
    case Request::last_cookie:
    case Request::read_link:
      return read_names(header, given, room, results);
    case Request::create:
    case Request::create_unnamed:
      return create(mount, header, given, results);
    case Request::link:
    case Request::unlink:
    case Request::remove_directory:
    case Request::rename:
      return change_names(header, given, results);
    case Request::attributes:
    case Request::extended:
    case Request::extended_names:
    case Request::statistics:
      return read_attributes(header, given, room, results);
    case Request::change:
    case Request::set_extended:
    case Request::remove_extended:
      return change_attributes(header, given, results);
    case Request::read:
    case Request::seek:
    case Request::sync:
      return read_data(header, given, room, results);
    case Request::write:
    case Request::append:
    case Request::truncate:
    case Request::allocate:
      return change_data(header, given, results);
    case Request::hold:
    case Request::release:
      return use_holds(mount, header, given, results);
    case Request::settle:
      return nothing();
    case Request::leave:
      break;
  }
  return none();
}

Task<Requests::Outcome> Requests::none() { co_return std::nullopt; }
Task<Requests::Outcome> Requests::nothing() { co_return 0; }

// --- names

Task<Requests::Outcome> Requests::read_names(MessageHeader header, Decoder given, Bytes room,
                                             Encoder& results) {
  const InodeNumber inode{header.inode};
  switch (header.request) {
    case Request::look_up: {
      const std::string_view name = given.take_text();
      if (!given.is_complete()) co_return std::nullopt;
      co_return answer(co_await files_.look_up(inode, name), results);
    }
    case Request::parent:
      co_return answer(co_await files_.parent(inode), results);
    case Request::last_cookie:
      co_return answer(co_await files_.last_cookie(inode), results);
    case Request::read_link: {
      const auto target = co_await files_.read_link(inode);
      if (!target) co_return code_of(target.error());
      results.add_text(*target);
      co_return fitted(results, room);
    }
    default:
      break;
  }
  const auto cookie = given.take<std::uint64_t>();
  const auto most = given.take<std::uint64_t>();
  if (!given.is_complete()) co_return std::nullopt;
  // So many entries with the longest names fit in any case.
  constexpr Bytes kLongest = sizeof(std::uint64_t) + fs::kLongestName + sizeof(InodeNumber) + 12;
  const auto found =
      co_await files_.entries(inode, cookie, std::min<std::uint64_t>(most, room / kLongest));
  if (!found) co_return code_of(found.error());
  for (const fs::DirectoryEntry& entry : *found) {
    results.add_text(entry.name);
    results.add(entry.inode);
    results.add(entry.type);
    results.add(entry.cookie);
  }
  co_return 0;
}

Task<Requests::Outcome> Requests::change_names(MessageHeader header, Decoder given,
                                               Encoder& results) {
  const InodeNumber inode{header.inode};
  const auto now = given.take<Timestamp>();
  const std::string_view name = given.take_text();
  if (header.request == Request::unlink || header.request == Request::remove_directory) {
    if (!given.is_complete()) co_return std::nullopt;
    if (header.request == Request::unlink)
      co_return answer(co_await files_.unlink(inode, name, now));
    co_return answer(co_await files_.remove_directory(inode, name, now));
  }
  const auto other = given.take<InodeNumber>();
  if (header.request == Request::link) {
    if (!given.is_complete()) co_return std::nullopt;
    co_return answer(co_await files_.link(inode, other, name, now), results);
  }
  const std::string_view new_name = given.take_text();
  const auto mode = given.take_up_to(fs::RenameMode::exchange);
  if (!given.is_complete()) co_return std::nullopt;
  co_return answer(co_await files_.rename(inode, name, other, new_name, mode, now));
}

Task<Requests::Outcome> Requests::create(std::uint64_t mount, MessageHeader header, Decoder given,
                                         Encoder& results) {
  const auto now = given.take<Timestamp>();
  const std::string_view name = given.take_text();
  fs::NewInode inode;
  inode.mode = given.take<std::uint32_t>();
  inode.uid = given.take<std::uint32_t>();
  inode.gid = given.take<std::uint32_t>();
  inode.device = given.take<std::uint64_t>();
  inode.target = given.take_text();
  std::vector<fs::ExtendedAttribute> extended;
  const auto count = given.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < count && given.is_sound(); ++i) {
    fs::ExtendedAttribute& one = extended.emplace_back();
    one.name = given.take_text();
    const std::string_view value = given.take_text();
    const auto bytes = std::as_bytes(std::span(value.data(), value.size()));
    one.value.assign(bytes.begin(), bytes.end());
  }
  inode.extended = extended;
  if (!given.is_complete()) co_return std::nullopt;
  if (header.request == Request::create) {
    co_return answer(co_await files_.create(InodeNumber{header.inode}, name, inode, now), results);
  }
  const auto made = co_await files_.create_unnamed(inode, now);
  constexpr std::uint32_t kOfItsMaker = fs::kMayRead | fs::kMayWrite;
  if (made) co_await note_hold(mount, static_cast<std::uint64_t>(made->inode), kOfItsMaker);
  co_return answer(made, results);
}

// --- attributes

Task<Requests::Outcome> Requests::read_attributes(MessageHeader header, Decoder given, Bytes room,
                                                  Encoder& results) {
  const InodeNumber inode{header.inode};
  if (header.request == Request::attributes) {
    co_return answer(co_await files_.attributes(inode), results);
  }
  if (header.request == Request::statistics) {
    co_return answer(co_await files_.statistics(), results);
  }
  if (header.request == Request::extended) {
    const std::string_view name = given.take_text();
    if (!given.is_complete()) co_return std::nullopt;
    const auto value = co_await files_.extended(inode, name);
    if (!value) co_return code_of(value.error());
    results.add_bytes(*value);
    co_return fitted(results, room);
  }
  const auto names = co_await files_.extended_names(inode);
  if (!names) co_return code_of(names.error());
  for (const std::string& name : *names) results.add_text(name);
  co_return fitted(results, room);
}

Task<Requests::Outcome> Requests::change_attributes(MessageHeader header, Decoder given,
                                                    Encoder& results) {
  const InodeNumber inode{header.inode};
  if (header.request == Request::change) {
    const fs::AttributeChange change = take_change(given);
    if (!given.is_complete()) co_return std::nullopt;
    co_return answer(co_await files_.change(inode, change), results);
  }
  const auto now = given.take<Timestamp>();
  const std::string_view name = given.take_text();
  if (header.request == Request::remove_extended) {
    if (!given.is_complete()) co_return std::nullopt;
    co_return answer(co_await files_.remove_extended(inode, name, now));
  }
  const auto mode = given.take_up_to(fs::AttributeMode::neither);
  const auto value = given.take_rest();
  if (!given.is_complete()) co_return std::nullopt;
  co_return answer(co_await files_.set_extended(inode, name, value, mode, now));
}

// --- data

Task<Requests::Outcome> Requests::read_data(MessageHeader header, Decoder given, Bytes room,
                                            Encoder& results) {
  const InodeNumber inode{header.inode};
  if (header.request == Request::sync) {
    if (header.inode == 0) {
      for (const std::uint64_t each : bindings_.writable_files()) {
        const auto synced = co_await files_.sync(InodeNumber{each});
        if (!synced) co_return answer(synced);
      }
      co_return answer(co_await files_.sync_all());
    }
    co_return answer(co_await files_.sync(inode));
  }
  const auto offset = given.take<Bytes>();
  if (header.request == Request::seek) {
    const auto what = given.take_up_to(fs::Session::Seek::hole);
    if (!given.is_complete()) co_return std::nullopt;
    co_return answer(co_await files_.seek(inode, offset, what), results);
  }
  const auto length = given.take<Bytes>();
  if (!given.is_complete() || length > room) co_return std::nullopt;
  // No memory is taken for what the file does not have. A local program may extend it meanwhile.
  // Then the byte more is read, and what the file had before is no answer.
  for (;;) {
    const auto attributes = co_await files_.attributes(inode);
    const Bytes size = attributes && attributes->is_regular() ? attributes->size : 0;
    const Bytes there = size - std::min(offset, size);
    const Bytes most = std::min(length, there + 1);
    const auto read = co_await files_.read(inode, offset, results.extend(most));
    results.shorten(most - read.value_or(0));
    if (!read) co_return code_of(read.error());
    if (*read <= there) co_return 0;
    results.shorten(*read);
  }
}

Task<Requests::Outcome> Requests::change_data(MessageHeader header, Decoder given,
                                              Encoder& results) {
  const InodeNumber inode{header.inode};
  const fs::WriteOptions options = take_options(given);
  if (header.request == Request::append) {
    const auto data = given.take_rest();
    if (!given.is_complete()) co_return std::nullopt;
    co_return answer(co_await files_.append(inode, data, options), results);
  }
  const auto offset = given.take<Bytes>();
  if (header.request == Request::write) {
    const auto data = given.take_rest();
    if (!given.is_complete()) co_return std::nullopt;
    co_return answer(co_await files_.write(inode, offset, data, options));
  }
  if (header.request == Request::truncate) {
    if (!given.is_complete()) co_return std::nullopt;
    co_return answer(co_await files_.truncate(inode, offset, options));
  }
  const auto length = given.take<Bytes>();
  const auto mode = given.take_up_to(fs::AllocationMode::zero_keep_size);
  if (!given.is_complete()) co_return std::nullopt;
  co_return answer(co_await files_.allocate(inode, mode, offset, length, options));
}

// --- holds

Task<Requests::Outcome> Requests::use_holds(std::uint64_t mount, MessageHeader header,
                                            Decoder given, Encoder&) {
  const InodeNumber inode{header.inode};
  if (header.request == Request::hold) {
    const Opening opening = Opening::take_from(given);
    if (!given.is_complete()) co_return std::nullopt;
    const auto held = co_await files_.hold(inode);
    if (!held) co_return answer(held);
    const auto checked = co_await check(inode, opening);
    if (checked) {
      co_await note_hold(mount, header.inode, opening.wanted);
    } else {
      co_await files_.release(inode, 1);
    }
    co_return answer(checked);
  }
  const auto count = given.take<std::uint64_t>();
  if (!given.is_complete()) co_return std::nullopt;
  const bool is_bound = mounts_.rights(mount, header.inode) != 0 && !mounts_.is_local(mount);
  const std::uint64_t holds = mounts_.remove_holds(mount, header.inode, count);
  if (holds == 0) co_return 0;
  const bool is_given_up = is_bound && !mounts_.has_hold(mount, header.inode);
  if (is_given_up) co_await bindings_.unbind(header.inode);
  co_await files_.release(inode, holds);
  co_return 0;
}

// The rights are those of the file when it is opened, as on one node: what chmod and chown do later
// changes nothing for whoever has it open. User 0 may open a file that cannot be read, too.
Task<fs::Result<void>> Requests::check(InodeNumber inode, Opening opening) {
  if (opening.who.is_privileged() || opening.wanted == 0) co_return fs::Result<void>();
  const auto attributes = co_await files_.attributes(inode);
  if (!attributes) co_return tl::unexpected(attributes.error());
  std::optional<fs::AccessList> list;
  const auto value = co_await files_.extended(inode, fs::kAccessList);
  if (value) {
    const auto parsed = fs::AccessList::parse(*value);
    if (!parsed) co_return tl::unexpected(parsed.error());
    list = *parsed;
  } else if (value.error() != std::errc::no_message_available) {
    co_return tl::unexpected(value.error());
  }
  if (fs::may_access(opening.who, *attributes, list, opening.wanted)) co_return fs::Result<void>();
  co_return tl::unexpected(std::errc::permission_denied);
}

// A file that is open gets a filekey (section 5.3.1). It is bound once for each mount, and again if
// the mount gets the right to write.
Task<> Requests::note_hold(std::uint64_t mount, std::uint64_t inode, std::uint32_t rights) {
  const std::uint32_t before = mounts_.add_hold(mount, inode, rights);
  const std::uint32_t now = before | rights;
  if (now == before || mounts_.is_local(mount)) co_return;
  if (before == 0) co_await bindings_.bind(inode);
  const bool writes = writes_in_place_ && Bindings::may_read_and_write(now);
  co_await bindings_.let_use(inode, writes ? &files_ : nullptr);
}

Task<> Requests::end_session(std::uint64_t mount) {
  const bool is_local = mounts_.is_local(mount);
  const Mounts::Holds ended = mounts_.session_ends(mount);
  for (const auto& [inode, hold] : ended) {
    if (hold.rights != 0 && !is_local) co_await bindings_.unbind(inode);
    co_await files_.release(InodeNumber{inode}, hold.count);
  }
}

}  // namespace perdura::systems::novad
