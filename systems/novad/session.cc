#include "systems/novad/session.h"

#include <algorithm>
#include <optional>

#include "platform/runtime/work.h"

namespace perdura::systems::novad {

using tl::unexpected;

namespace {

// A name that is too long, but fits into a message, is refused in the right way by the server.
std::string_view shortened(std::string_view name) {
  static_assert(fs::kLongestName == fs::kLongestAttributeName);
  return name.substr(0, fs::kLongestName + 1);
}

template <class T>
void add_optional(Encoder& to, const std::optional<T>& value) {
  to.add(static_cast<std::uint8_t>(value.has_value()));
  if (value) to.add(*value);
}

void add_text(Encoder& to, std::span<const std::byte> bytes) {
  to.add_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Encoder with_name(Timestamp now, std::string_view name) {
  Encoder arguments;
  arguments.add(now);
  arguments.add_text(shortened(name));
  return arguments;
}

Encoder new_inode(Timestamp now, std::string_view name, const fs::NewInode& inode) {
  Encoder arguments = with_name(now, name);
  arguments.add(inode.mode);
  arguments.add(inode.uid);
  arguments.add(inode.gid);
  arguments.add(inode.device);
  arguments.add_text(inode.target.substr(0, fs::kLongestSymlink + 1));
  arguments.add(std::uint64_t{inode.extended.size()});
  for (const fs::ExtendedAttribute& one : inode.extended) {
    arguments.add_text(one.name);
    add_text(arguments, one.value);
  }
  return arguments;
}

Encoder with_options(const fs::WriteOptions& options) {
  Encoder arguments;
  arguments.add(options.now);
  arguments.add(static_cast<std::uint8_t>(options.clear_set_id));
  return arguments;
}

}  // namespace

Task<Result<std::vector<std::byte>>> Session::call(Request request, InodeNumber inode,
                                                   Encoder arguments,
                                                   std::span<const std::byte> data, Bytes most) {
  std::optional<Answer> answer = co_await link_.call(request, static_cast<std::uint64_t>(inode),
                                                     arguments.bytes(), data, most);
  if (!answer) co_return unexpected(std::errc::not_connected);
  if (request == Request::hold && answer->error == 0) {
    files_->add_hold(inode, answer->file);
  } else {
    files_->note_file(inode, answer->file);
  }
  if (answer->error != 0) co_return unexpected(static_cast<std::errc>(answer->error));
  co_return std::move(answer->results);
}

template <class T>
Task<Result<T>> Session::call_for(Request request, InodeNumber inode, Encoder arguments,
                                  std::span<const std::byte> data) {
  const auto results = co_await call(request, inode, std::move(arguments), data);
  if (!results) co_return unexpected(results.error());
  co_return Decoder(*results).take<T>();
}

Task<Result<void>> Session::call_without_value(Request request, InodeNumber inode,
                                               Encoder arguments, std::span<const std::byte> data) {
  const auto results = co_await call(request, inode, std::move(arguments), data);
  if (!results) co_return unexpected(results.error());
  co_return Result<void>();
}

// --- names

Task<Result<fs::Attributes>> Session::look_up(InodeNumber directory, std::string_view name) {
  Encoder arguments;
  arguments.add_text(shortened(name));
  return call_for<fs::Attributes>(Request::look_up, directory, std::move(arguments));
}

Task<Result<InodeNumber>> Session::parent(InodeNumber directory) {
  return call_for<InodeNumber>(Request::parent, directory, {});
}

Task<Result<fs::Attributes>> Session::create(InodeNumber directory, std::string_view name,
                                             const fs::NewInode& inode, Timestamp now) {
  return call_for<fs::Attributes>(Request::create, directory, new_inode(now, name, inode));
}

Task<Result<fs::Attributes>> Session::create_unnamed(const fs::NewInode& inode, Timestamp now) {
  const auto made = co_await call_for<fs::Attributes>(Request::create_unnamed, InodeNumber{},
                                                      new_inode(now, {}, inode));
  if (made) files_->add_hold(made->inode, {});
  co_return made;
}

Task<Result<fs::Attributes>> Session::link(InodeNumber inode, InodeNumber directory,
                                           std::string_view name, Timestamp now) {
  Encoder arguments = with_name(now, name);
  arguments.add(directory);
  return call_for<fs::Attributes>(Request::link, inode, std::move(arguments));
}

Task<Result<void>> Session::unlink(InodeNumber directory, std::string_view name, Timestamp now) {
  return call_without_value(Request::unlink, directory, with_name(now, name));
}

Task<Result<void>> Session::remove_directory(InodeNumber directory, std::string_view name,
                                             Timestamp now) {
  return call_without_value(Request::remove_directory, directory, with_name(now, name));
}

Task<Result<void>> Session::rename(InodeNumber from, std::string_view name, InodeNumber to,
                                   std::string_view new_name, fs::RenameMode mode, Timestamp now) {
  Encoder arguments = with_name(now, name);
  arguments.add(to);
  arguments.add_text(shortened(new_name));
  arguments.add(mode);
  return call_without_value(Request::rename, from, std::move(arguments));
}

// The server gives as many entries as the room of the call has place for.
Task<Result<std::vector<fs::DirectoryEntry>>> Session::entries(InodeNumber directory,
                                                               std::uint64_t cookie,
                                                               std::size_t most) {
  constexpr Bytes kRoom = 64 * KiB;
  Encoder arguments;
  arguments.add(cookie);
  arguments.add(std::uint64_t{most});
  const auto results =
      co_await call(Request::entries, directory, std::move(arguments), {}, most < 3 ? 0 : kRoom);
  if (!results) co_return unexpected(results.error());
  std::vector<fs::DirectoryEntry> entries;
  Decoder given(*results);
  while (!given.is_complete() && given.is_sound()) {
    fs::DirectoryEntry& entry = entries.emplace_back();
    entry.name = given.take_text();
    entry.inode = given.take<InodeNumber>();
    entry.type = given.take<std::uint32_t>();
    entry.cookie = given.take<std::uint64_t>();
  }
  co_return entries;
}

Task<Result<std::uint64_t>> Session::last_cookie(InodeNumber directory) {
  return call_for<std::uint64_t>(Request::last_cookie, directory, {});
}

Task<Result<std::string>> Session::read_link(InodeNumber inode) {
  const auto results = co_await call(Request::read_link, inode, {});
  if (!results) co_return unexpected(results.error());
  co_return std::string(Decoder(*results).take_text());
}

// --- attributes

Task<Result<fs::Attributes>> Session::attributes(InodeNumber inode) {
  return call_for<fs::Attributes>(Request::attributes, inode, {});
}

Task<Result<fs::Attributes>> Session::change(InodeNumber inode, const fs::AttributeChange& change) {
  Encoder arguments;
  add_optional(arguments, change.permissions);
  add_optional(arguments, change.uid);
  add_optional(arguments, change.gid);
  add_optional(arguments, change.accessed);
  add_optional(arguments, change.modified);
  add_optional(arguments, change.changed);
  arguments.add(static_cast<std::uint8_t>(change.extended.has_value()));
  if (change.extended) {
    arguments.add_text(shortened(change.extended->name));
    arguments.add(static_cast<std::uint8_t>(change.extended->value.has_value()));
    if (change.extended->value) add_text(arguments, *change.extended->value);
  }
  return call_for<fs::Attributes>(Request::change, inode, std::move(arguments));
}

Task<Result<std::vector<std::byte>>> Session::extended(InodeNumber inode, std::string_view name) {
  Encoder arguments;
  arguments.add_text(shortened(name));
  return call(Request::extended, inode, std::move(arguments));
}

Task<Result<std::vector<std::string>>> Session::extended_names(InodeNumber inode) {
  const auto results = co_await call(Request::extended_names, inode, {});
  if (!results) co_return unexpected(results.error());
  std::vector<std::string> names;
  Decoder given(*results);
  while (!given.is_complete() && given.is_sound()) names.emplace_back(given.take_text());
  co_return names;
}

Task<Result<void>> Session::set_extended(InodeNumber inode, std::string_view name,
                                         std::span<const std::byte> value, fs::AttributeMode mode,
                                         Timestamp now) {
  Encoder arguments = with_name(now, name);
  arguments.add(mode);
  // One byte more than a value may have is enough to be refused.
  const auto sent = value.first(std::min<std::size_t>(value.size(), fs::kLargestAttribute + 1));
  return call_without_value(Request::set_extended, inode, std::move(arguments), sent);
}

Task<Result<void>> Session::remove_extended(InodeNumber inode, std::string_view name,
                                            Timestamp now) {
  return call_without_value(Request::remove_extended, inode, with_name(now, name));
}

Task<Result<fs::Statistics>> Session::statistics() {
  return call_for<fs::Statistics>(Request::statistics, InodeNumber{}, {});
}

// --- data

// The registration ends where the file does, so a READ that is not refused is within the file. If
// the file has grown, only the server knows; so what is not within the file as it was goes to the
// server.
FileState Session::file_with(InodeNumber inode, Bytes offset, Bytes length) {
  const FileState file = files_->file(inode);
  const bool is_within = file.is_whole != 0 && length > 0 && length <= FileAccess::kLongest &&
                         offset <= file.size && length <= file.size - offset;
  return is_within ? file : FileState{};
}

Task<bool> Session::read_directly(InodeNumber inode, Bytes offset, std::span<std::byte> into) {
  const FileState file = file_with(inode, offset, into.size());
  if (file.filekey == 0) co_return false;
  const bool is_connected = co_await link_.connected();
  if (!is_connected) co_return false;
  const bool is_read = co_await access_.read(link_.welcome().server, file.filekey, offset, into);
  if (!is_read) files_->forget_file(inode, file.filekey);
  co_return is_read;
}

// A WRITE cannot clear the bits of the mode.
Task<bool> Session::write_directly(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                                   const fs::WriteOptions& options) {
  const FileState file = file_with(inode, offset, data.size());
  if (file.filekey == 0 || file.is_writable == 0 || options.clear_set_id) co_return false;
  const bool is_connected = co_await link_.connected();
  if (!is_connected) co_return false;
  const bool is_written =
      co_await access_.write(link_.welcome().server, inode, file.filekey, offset, data);
  if (!is_written) files_->forget_file(inode, file.filekey);
  if (!is_written || files_->sessions() == 1) co_return is_written;
  // Another session may sync the file, and cannot tell whether this one's data has arrived.
  co_await access_.settle();
  co_return !access_.lost(inode);
}

Task<Result<Bytes>> Session::read(InodeNumber inode, Bytes offset, std::span<std::byte> into) {
  const bool is_read = co_await read_directly(inode, offset, into);
  if (is_read) co_return into.size();
  Bytes done = 0;
  for (;;) {
    const Bytes length = std::min<Bytes>(into.size() - done, kLongestRead);
    Encoder arguments;
    arguments.add(offset + done);
    arguments.add(length);
    const auto results = co_await call(Request::read, inode, std::move(arguments), {}, length);
    if (!results) co_return unexpected(results.error());
    const Bytes read = std::min<Bytes>(results->size(), length);
    copy_bytes(into.subspan(done, read), std::span(*results).first(read));
    done += read;
    if (read < length || done == into.size()) co_return done;
  }
}

Task<Result<void>> Session::write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                                  const fs::WriteOptions& options) {
  const bool is_written = co_await write_directly(inode, offset, data, options);
  if (is_written) co_return Result<void>();
  const bool is_connected = co_await link_.connected();
  if (is_connected && data.size() > link_.welcome().largest_write) {
    co_return unexpected(co_await why_too_much(inode, offset, data.size()));
  }
  Encoder arguments = with_options(options);
  arguments.add(offset);
  co_return co_await call_without_value(Request::write, inode, std::move(arguments), data);
}

Task<Result<Bytes>> Session::append(InodeNumber inode, std::span<const std::byte> data,
                                    const fs::WriteOptions& options) {
  const bool is_connected = co_await link_.connected();
  if (is_connected && data.size() > link_.welcome().largest_write) {
    co_return unexpected(co_await why_too_much(inode, 0, data.size()));
  }
  co_return co_await call_for<Bytes>(Request::append, inode, with_options(options), data);
}

Task<std::errc> Session::why_too_much(InodeNumber inode, Bytes offset, Bytes length) {
  const auto found = co_await attributes(inode);
  if (!found) co_return found.error();
  if (!found->is_regular()) co_return std::errc::invalid_argument;
  const bool is_beyond = length > fs::kLargestFile || offset > fs::kLargestFile - length;
  co_return is_beyond ? std::errc::file_too_large : std::errc::no_space_on_device;
}

Task<Result<void>> Session::truncate(InodeNumber inode, Bytes size,
                                     const fs::WriteOptions& options) {
  Encoder arguments = with_options(options);
  arguments.add(size);
  return call_without_value(Request::truncate, inode, std::move(arguments));
}

Task<Result<void>> Session::allocate(InodeNumber inode, fs::AllocationMode mode, Bytes offset,
                                     Bytes length, const fs::WriteOptions& options) {
  Encoder arguments = with_options(options);
  arguments.add(offset);
  arguments.add(length);
  arguments.add(mode);
  return call_without_value(Request::allocate, inode, std::move(arguments));
}

Task<Result<Bytes>> Session::seek(InodeNumber inode, Bytes offset, Seek what) {
  Encoder arguments;
  arguments.add(offset);
  arguments.add(what);
  return call_for<Bytes>(Request::seek, inode, std::move(arguments));
}

// The server flushes a file when the data of all WRITEs is in its memory or caches. If that is not
// known, the file may be durable or not, so the sync fails.
Task<Result<void>> Session::sync(InodeNumber inode) {
  const bool is_synced = co_await sync_directly(inode);
  if (is_synced) co_return Result<void>();
  co_await access_.settle();
  const bool is_lost = access_.lost(inode);
  const auto synced = co_await call_without_value(Request::sync, inode, {});
  if (synced && is_lost) co_return unexpected(std::errc::io_error);
  co_return synced;
}

// A COMMIT is enough: writes by requests are durable when they return, and those by an earlier
// filekey of the file since it has ended (bindings.h). It is of the WRITEs of all mounts.
Task<bool> Session::sync_directly(InodeNumber inode) {
  const FileState file = files_->file(inode);
  if (file.filekey == 0 || file.is_writable == 0 || !access_.can_commit()) co_return false;
  const bool is_connected = co_await link_.connected();
  if (!is_connected) co_return false;
  const bool is_committed = co_await access_.commit(link_.welcome().server, inode, file.filekey);
  if (!is_committed) files_->forget_file(inode, file.filekey);
  co_return is_committed;
}

Task<Result<void>> Session::sync_all() {
  co_await access_.settle();
  const bool is_lost = access_.lost_any();
  const auto synced = co_await call_without_value(Request::sync, InodeNumber{}, {});
  if (synced && is_lost) co_return unexpected(std::errc::io_error);
  co_return synced;
}

// --- holds

Task<Result<void>> Session::hold(InodeNumber inode) {
  return open(inode, {}, fs::kMayRead | fs::kMayWrite);
}

Task<Result<void>> Session::open(InodeNumber inode, fs::Credentials who, std::uint32_t wanted) {
  Encoder arguments;
  Opening{.who = std::move(who), .wanted = wanted}.add_to(arguments);
  return call_without_value(Request::hold, inode, std::move(arguments));
}

Task<> Session::release(InodeNumber inode, std::uint64_t holds) {
  // A filekey must not be used after it has been given up.
  files_->remove_holds(inode, holds);
  Encoder arguments;
  arguments.add(holds);
  co_await call_without_value(Request::release, inode, std::move(arguments));
}

}  // namespace perdura::systems::novad
