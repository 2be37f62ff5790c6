// The operations of a process on attributes.
#include "tests/services/fs/posix/process.h"

namespace perdura::fs::test {
namespace {

bool is_list(std::string_view name) { return name == kAccessList || name == kDefaultList; }

bool is_time(const NewTime& time) {
  constexpr std::uint32_t kSecond = 1'000'000'000;
  return time.now || time.omit || time.time.nanoseconds < kSecond;
}

std::errc why_not_name(std::string_view name) {
  return name.empty() || name.size() > kLongestAttributeName ? std::errc::result_out_of_range
                                                             : std::errc{};
}

}  // namespace

Task<Result<Attributes>> Process::stat(Where where) {
  const Result<Attributes> found = co_await find(where, true);
  if (found) co_await session_.release(found->inode);
  co_return found;
}

Task<Result<Statistics>> Process::statfs(Where where) {
  const Result<Attributes> found = co_await find(where, true);
  if (!found) co_return tl::unexpected(found.error());
  co_await session_.release(found->inode);
  co_return co_await session_.statistics();
}

Task<Result<void>> Process::chmod(Where where, mode_t mode) {
  const Result<Attributes> found = co_await find(where);
  if (!found) co_return tl::unexpected(found.error());
  Result<void> done;
  if (found->is_symlink()) {
    done = tl::unexpected(std::errc::operation_not_supported);
  } else {
    const std::optional<AccessList> list = co_await list_of(*found, kAccessList);
    const Result<PreparedChange> prepared = change_mode(credentials, *found, list, mode, now());
    if (prepared) {
      const Result<Attributes> changed = co_await session_.change(found->inode, prepared->change);
      if (!changed) done = tl::unexpected(changed.error());
    } else {
      done = tl::unexpected(prepared.error());
    }
  }
  co_await session_.release(found->inode);
  co_return done;
}

Task<Result<void>> Process::chown(Where where, std::optional<std::uint32_t> uid,
                                  std::optional<std::uint32_t> gid) {
  const Result<Attributes> found = co_await find(where);
  if (!found) co_return tl::unexpected(found.error());
  Result<void> done;
  const Result<PreparedChange> prepared = change_owner(credentials, *found, uid, gid, now());
  if (prepared) {
    const Result<Attributes> changed = co_await session_.change(found->inode, prepared->change);
    if (!changed) done = tl::unexpected(changed.error());
  } else {
    done = tl::unexpected(prepared.error());
  }
  co_await session_.release(found->inode);
  co_return done;
}

Task<Result<void>> Process::utimens(Where where, NewTime accessed, NewTime modified) {
  // In this case not even the path is checked.
  if (accessed.omit && modified.omit) co_return Result<void>();
  const Result<Attributes> found = co_await find(where);
  if (!found) co_return tl::unexpected(found.error());
  Result<void> done;
  if (!is_time(accessed) || !is_time(modified)) {
    done = tl::unexpected(std::errc::invalid_argument);
  } else if (!credentials.owns(found->uid)) {
    // A process that may write may set both times to the present, but nothing else.
    if (!accessed.now || !modified.now) {
      done = tl::unexpected(std::errc::operation_not_permitted);
    } else {
      const bool writable = co_await may(*found, kMayWrite);
      if (!writable) done = tl::unexpected(std::errc::permission_denied);
    }
  }
  if (done) {
    const Timestamp time = now();
    AttributeChange change{.changed = time};
    if (!accessed.omit) change.accessed = accessed.now ? time : accessed.time;
    if (!modified.omit) change.modified = modified.now ? time : modified.time;
    const Result<Attributes> changed = co_await session_.change(found->inode, change);
    if (!changed) done = tl::unexpected(changed.error());
  }
  co_await session_.release(found->inode);
  co_return done;
}

Task<Result<void>> Process::access(Where where, std::uint32_t wanted) {
  if (wanted > 7) co_return tl::unexpected(std::errc::invalid_argument);
  const Result<Attributes> found = co_await find(where);
  if (!found) co_return tl::unexpected(found.error());
  const bool permitted = co_await may(*found, wanted);
  co_await session_.release(found->inode);
  if (!permitted) co_return tl::unexpected(std::errc::permission_denied);
  co_return Result<void>();
}

// --- extended attributes

Task<Result<std::vector<std::byte>>> Process::get_attribute(const Attributes& inode,
                                                            std::string_view name) {
  if (is_list(name)) {
    if (inode.is_symlink()) co_return tl::unexpected(std::errc::operation_not_supported);
  } else {
    const bool readable = co_await may(inode, kMayRead);
    const std::errc error = check_extended(credentials, inode, name, AttributeAccess::read,
                                           readable, options.user_attributes_on_sockets);
    if (error != std::errc{}) co_return tl::unexpected(error);
  }
  co_return co_await session_.extended(inode.inode, name);
}

Task<Result<std::vector<std::byte>>> Process::getxattr(Where where, std::string_view name) {
  if (const std::errc error = why_not_name(name); error != std::errc{}) {
    co_return tl::unexpected(error);
  }
  const Result<Attributes> found = co_await find(where);
  if (!found) co_return tl::unexpected(found.error());
  Result<std::vector<std::byte>> value = co_await get_attribute(*found, name);
  co_await session_.release(found->inode);
  co_return value;
}

Task<Result<void>> Process::set_list(const Attributes& inode, std::string_view name,
                                     std::optional<AccessList> list) {
  Result<PreparedChange> prepared = PreparedChange();
  std::vector<std::byte> value;
  if (name == kAccessList) {
    prepared = change_access_list(credentials, inode, std::move(list), now());
  } else if (inode.is_symlink()) {
    prepared = tl::unexpected(std::errc::operation_not_supported);
  } else if (!inode.is_directory()) {
    if (!list) co_return Result<void>();
    prepared = tl::unexpected(std::errc::permission_denied);
  } else if (!credentials.owns(inode.uid)) {
    prepared = tl::unexpected(std::errc::operation_not_permitted);
  } else if (list && !list->is_valid()) {
    prepared = tl::unexpected(std::errc::invalid_argument);
  } else {
    prepared->change.changed = now();
    prepared->change.extended = {.name = kDefaultList, .value = {}};
    if (list) {
      value = list->format();
      prepared->change.extended->value = value;
    }
  }
  if (!prepared) co_return tl::unexpected(prepared.error());
  const Result<Attributes> changed = co_await session_.change(inode.inode, prepared->change);
  if (!changed) co_return tl::unexpected(changed.error());
  co_return Result<void>();
}

Task<Result<void>> Process::set_attribute(const Attributes& inode, std::string_view name,
                                          std::span<const std::byte> value, AttributeMode mode) {
  if (is_list(name)) {
    const Result<std::optional<AccessList>> list = AccessList::parse(value);
    if (!list) co_return tl::unexpected(list.error());
    co_return co_await set_list(inode, name, *list);
  }
  const bool writable = co_await may(inode, kMayWrite);
  const std::errc error = check_extended(credentials, inode, name, AttributeAccess::write, writable,
                                         options.user_attributes_on_sockets);
  if (error != std::errc{}) co_return tl::unexpected(error);
  co_return co_await session_.set_extended(inode.inode, name, value, mode, now());
}

Task<Result<void>> Process::setxattr(Where where, std::string_view name,
                                     std::span<const std::byte> value, AttributeMode mode) {
  if (const std::errc error = why_not_name(name); error != std::errc{}) {
    co_return tl::unexpected(error);
  }
  if (value.size() > kLargestAttribute) {
    co_return tl::unexpected(std::errc::argument_list_too_long);
  }
  const Result<Attributes> found = co_await find(where);
  if (!found) co_return tl::unexpected(found.error());
  const Result<void> done = co_await set_attribute(*found, name, value, mode);
  co_await session_.release(found->inode);
  co_return done;
}

Task<Result<void>> Process::remove_attribute(const Attributes& inode, std::string_view name) {
  if (is_list(name)) co_return co_await set_list(inode, name, std::nullopt);
  const bool writable = co_await may(inode, kMayWrite);
  const std::errc error = check_extended(credentials, inode, name, AttributeAccess::write, writable,
                                         options.user_attributes_on_sockets);
  if (error != std::errc{}) co_return tl::unexpected(error);
  co_return co_await session_.remove_extended(inode.inode, name, now());
}

Task<Result<void>> Process::removexattr(Where where, std::string_view name) {
  if (const std::errc error = why_not_name(name); error != std::errc{}) {
    co_return tl::unexpected(error);
  }
  const Result<Attributes> found = co_await find(where);
  if (!found) co_return tl::unexpected(found.error());
  const Result<void> done = co_await remove_attribute(*found, name);
  co_await session_.release(found->inode);
  co_return done;
}

Task<Result<std::vector<std::string>>> Process::listxattr(Where where) {
  const Result<Attributes> found = co_await find(where);
  if (!found) co_return tl::unexpected(found.error());
  Result<std::vector<std::string>> names = co_await session_.extended_names(found->inode);
  co_await session_.release(found->inode);
  if (names && !credentials.is_privileged()) {
    std::erase_if(*names, [](const std::string& name) { return name.starts_with("trusted."); });
  }
  co_return names;
}

}  // namespace perdura::fs::test
