// The operations of a process on names.
#include "tests/services/fs/posix/look_up.h"
#include "tests/services/fs/posix/process.h"

namespace perdura::fs::test {
namespace {

Result<void> without_value(const Result<Attributes>& result) {
  if (!result) return tl::unexpected(result.error());
  return {};
}

}  // namespace

Task<Result<Process::PathEnd>> Process::find_free(std::string_view path, bool directory) {
  const Result<PathEnd> end = co_await find_end(path);
  if (!end) co_return end;
  const InodeNumber in = end->directory.inode;
  std::errc error{};
  if (!end->is_normal) {
    error = std::errc::file_exists;
  } else if (end->directory.links == 0) {
    error = std::errc::no_such_file_or_directory;
  } else {
    const Result<Attributes> found = co_await session_.look_up(in, end->name);
    if (found) {
      error = std::errc::file_exists;
    } else if (found.error() != std::errc::no_such_file_or_directory) {
      error = found.error();
    } else if (end->slash && !directory) {
      error = std::errc::no_such_file_or_directory;
    }
  }
  if (error == std::errc{}) co_return end;
  co_await session_.release(in);
  co_return tl::unexpected(error);
}

Task<Result<Process::PathEnd>> Process::find_new(std::string_view path, bool directory) {
  const Result<PathEnd> end = co_await find_free(path, directory);
  if (!end) co_return end;
  const bool writable = co_await may(end->directory, kMayWrite | kMayExecute);
  if (writable) co_return end;
  co_await session_.release(end->directory.inode);
  co_return tl::unexpected(std::errc::permission_denied);
}

Task<Result<Attributes>> Process::make(const PathEnd& end, mode_t mode, std::uint64_t device,
                                       std::string_view target) {
  const std::optional<AccessList> defaults = co_await list_of(end.directory, kDefaultList);
  const Inherited made = inherit(credentials, end.directory, defaults, mode, options.umask);
  const NewInode inode{.mode = made.mode,
                       .uid = made.uid,
                       .gid = made.gid,
                       .device = device,
                       .target = target,
                       .extended = made.extended};
  co_return co_await session_.create(end.directory.inode, end.name, inode, now());
}

Task<Result<void>> Process::mkdir(std::string_view path, mode_t mode) {
  const Result<PathEnd> end = co_await find_new(path, true);
  if (!end) co_return tl::unexpected(end.error());
  const mode_t with_type = S_IFDIR | (mode & (0777 | S_ISVTX));
  const Result<Attributes> made = co_await make(*end, with_type, 0, {});
  co_await session_.release(end->directory.inode);
  co_return without_value(made);
}

Task<Result<void>> Process::mknod(std::string_view path, mode_t mode, std::uint64_t device) {
  mode_t type = mode & S_IFMT;
  if (type == 0) type = S_IFREG;
  const bool is_device = type == S_IFCHR || type == S_IFBLK;
  if (type == S_IFDIR) co_return tl::unexpected(std::errc::operation_not_permitted);
  if (!is_device && type != S_IFREG && type != S_IFIFO && type != S_IFSOCK) {
    co_return tl::unexpected(std::errc::invalid_argument);
  }
  const Result<PathEnd> end = co_await find_new(path, false);
  if (!end) co_return tl::unexpected(end.error());
  Result<Attributes> made = tl::unexpected(std::errc::operation_not_permitted);
  if (!is_device || credentials.is_privileged()) {
    made = co_await make(*end, type | (mode & 07777), device, {});
  }
  co_await session_.release(end->directory.inode);
  co_return without_value(made);
}

Task<Result<void>> Process::symlink(std::string_view target, std::string_view path) {
  if (target.empty()) co_return tl::unexpected(std::errc::no_such_file_or_directory);
  if (target.size() > kLongestPath) co_return tl::unexpected(std::errc::filename_too_long);
  const Result<PathEnd> end = co_await find_new(path, false);
  if (!end) co_return tl::unexpected(end.error());
  const Result<Attributes> made = co_await make(*end, S_IFLNK | 0777, 0, target);
  co_await session_.release(end->directory.inode);
  co_return without_value(made);
}

Task<Result<std::string>> Process::readlink(std::string_view path) {
  const Result<Attributes> found = co_await find(path, false);
  if (!found) co_return tl::unexpected(found.error());
  const Result<std::string> target = co_await session_.read_link(found->inode);
  if (target) co_await note_access(*found);
  co_await session_.release(found->inode);
  co_return target;
}

Task<std::optional<std::errc>> Process::why_not_link(const Attributes& inode, const PathEnd& end,
                                                     bool may_be_unnamed) {
  if (options.protected_hard_links && !credentials.owns(inode.uid)) {
    const bool accessible = co_await may(inode, kMayRead | kMayWrite);
    if (!is_safe_to_link(inode, accessible)) co_return std::errc::operation_not_permitted;
  }
  const bool writable = co_await may(end.directory, kMayWrite | kMayExecute);
  if (!writable) co_return std::errc::permission_denied;
  if (inode.is_directory()) co_return std::errc::operation_not_permitted;
  if (inode.links == 0 && !may_be_unnamed) co_return std::errc::no_such_file_or_directory;
  co_return std::nullopt;
}

Task<Result<void>> Process::link(Where existing, std::string_view path) {
  const Result<Attributes> found = co_await find(existing, true);
  if (!found) co_return tl::unexpected(found.error());
  const Result<PathEnd> end = co_await find_free(path, false);
  if (!end) {
    co_await session_.release(found->inode);
    co_return tl::unexpected(end.error());
  }
  OpenFile* const file =
      existing.descriptor ? descriptors_.at(*existing.descriptor).get() : nullptr;
  const bool may_be_unnamed = file != nullptr && file->is_linkable;
  const InodeNumber in = end->directory.inode;
  Result<void> done;
  const auto error = co_await why_not_link(*found, *end, may_be_unnamed);
  if (error) {
    done = tl::unexpected(*error);
  } else {
    const Result<Attributes> linked = co_await session_.link(found->inode, in, end->name, now());
    if (linked && file != nullptr) file->is_linkable = false;
    done = without_value(linked);
  }
  co_await session_.release(in);
  co_await session_.release(found->inode);
  co_return done;
}

Task<std::optional<std::errc>> Process::why_not_remove(const Attributes& directory,
                                                       const Attributes& victim,
                                                       bool as_directory) {
  const bool writable = co_await may(directory, kMayWrite | kMayExecute);
  if (!writable) co_return std::errc::permission_denied;
  if (is_protected(credentials, directory, victim)) co_return std::errc::operation_not_permitted;
  if (as_directory && !victim.is_directory()) co_return std::errc::not_a_directory;
  if (!as_directory && victim.is_directory()) co_return std::errc::is_a_directory;
  co_return std::nullopt;
}

Task<Result<void>> Process::unlink(std::string_view path) {
  const Result<PathEnd> end = co_await find_end(path);
  if (!end) co_return tl::unexpected(end.error());
  const InodeNumber directory = end->directory.inode;
  Result<void> done = tl::unexpected(std::errc::is_a_directory);
  if (end->is_normal) {
    const Result<Attributes> found = co_await session_.look_up(directory, end->name);
    if (!found) {
      done = tl::unexpected(found.error());
    } else if (end->slash) {
      done = tl::unexpected(found->is_directory() ? std::errc::is_a_directory
                                                  : std::errc::not_a_directory);
    } else {
      const auto error = co_await why_not_remove(end->directory, *found, false);
      if (error) {
        done = tl::unexpected(*error);
      } else {
        done = co_await session_.unlink(directory, end->name, now());
      }
    }
  }
  co_await session_.release(directory);
  co_return done;
}

Task<Result<void>> Process::rmdir(std::string_view path) {
  const Result<PathEnd> end = co_await find_end(path);
  if (!end) co_return tl::unexpected(end.error());
  const InodeNumber directory = end->directory.inode;
  Result<void> done;
  if (end->name == "..") {
    done = tl::unexpected(std::errc::directory_not_empty);
  } else if (!end->is_normal) {
    // The path ends with ".", or is "/".
    const bool is_root = path.find_first_not_of('/') == path.npos;
    done =
        tl::unexpected(is_root ? std::errc::device_or_resource_busy : std::errc::invalid_argument);
  } else {
    const Result<Attributes> found = co_await session_.look_up(directory, end->name);
    if (!found) {
      done = tl::unexpected(found.error());
    } else {
      const auto error = co_await why_not_remove(end->directory, *found, true);
      if (error) {
        done = tl::unexpected(*error);
      } else {
        done = co_await session_.remove_directory(directory, end->name, now());
      }
    }
  }
  co_await session_.release(directory);
  co_return done;
}

Task<bool> Process::lies_in(InodeNumber inode, InodeNumber directory) {
  InodeNumber at = inode;
  while (at != directory && at != kRootInode) {
    const Result<InodeNumber> parent = co_await session_.parent(at);
    if (!parent) co_return false;
    at = *parent;
  }
  co_return at == directory;
}

Task<std::optional<std::errc>> Process::why_not_rename(const PathEnd& from, const PathEnd& to,
                                                       RenameMode mode) {
  const bool exchanges = mode == RenameMode::exchange;
  if (!from.is_normal) co_return std::errc::device_or_resource_busy;
  if (!to.is_normal) {
    co_return mode == RenameMode::keep ? std::errc::file_exists
                                       : std::errc::device_or_resource_busy;
  }
  const Result<Attributes> source = co_await session_.look_up(from.directory.inode, from.name);
  if (!source) co_return source.error();
  if (to.directory.links == 0) co_return std::errc::no_such_file_or_directory;
  const Result<Attributes> target = co_await session_.look_up(to.directory.inode, to.name);
  if (!target && target.error() != std::errc::no_such_file_or_directory) co_return target.error();
  if (target && mode == RenameMode::keep) co_return std::errc::file_exists;
  if (!target && exchanges) co_return target.error();
  const bool moves_directory = source->is_directory();
  const bool meets_directory = target && target->is_directory();
  if (exchanges && !meets_directory && to.slash) co_return std::errc::not_a_directory;
  if (!moves_directory && (from.slash || (!exchanges && to.slash))) {
    co_return std::errc::not_a_directory;
  }
  if (moves_directory) {
    const bool into_itself = co_await lies_in(to.directory.inode, source->inode);
    if (into_itself) co_return std::errc::invalid_argument;
  }
  if (meets_directory) {
    const bool out_of_target = co_await lies_in(from.directory.inode, target->inode);
    if (out_of_target) {
      co_return exchanges ? std::errc::invalid_argument : std::errc::directory_not_empty;
    }
  }
  if (target && target->inode == source->inode) co_return std::nullopt;
  auto error = co_await why_not_remove(from.directory, *source, moves_directory);
  if (error) co_return error;
  if (target) {
    error = co_await why_not_remove(to.directory, *target,
                                    exchanges ? meets_directory : moves_directory);
    if (error) co_return error;
  } else {
    const bool writable = co_await may(to.directory, kMayWrite | kMayExecute);
    if (!writable) co_return std::errc::permission_denied;
  }
  if (from.directory.inode == to.directory.inode) co_return std::nullopt;
  // Moving a directory to another parent writes to it.
  if (moves_directory) {
    const bool writable = co_await may(*source, kMayWrite);
    if (!writable) co_return std::errc::permission_denied;
  }
  if (exchanges && meets_directory) {
    const bool writable = co_await may(*target, kMayWrite);
    if (!writable) co_return std::errc::permission_denied;
  }
  co_return std::nullopt;
}

Task<Result<void>> Process::rename(std::string_view path, std::string_view new_path,
                                   RenameMode mode) {
  const Result<PathEnd> from = co_await find_end(path);
  if (!from) co_return tl::unexpected(from.error());
  const Result<PathEnd> to = co_await find_end(new_path);
  if (!to) {
    co_await session_.release(from->directory.inode);
    co_return tl::unexpected(to.error());
  }
  Result<void> done;
  const auto error = co_await why_not_rename(*from, *to, mode);
  if (error) {
    done = tl::unexpected(*error);
  } else {
    done = co_await session_.rename(from->directory.inode, from->name, to->directory.inode,
                                    to->name, mode, now());
  }
  co_await session_.release(to->directory.inode);
  co_await session_.release(from->directory.inode);
  co_return done;
}

}  // namespace perdura::fs::test
