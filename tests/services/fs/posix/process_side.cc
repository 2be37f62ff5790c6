#include <fcntl.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "tests/services/fs/bytes_of.h"
#include "tests/services/fs/posix/sides.h"

namespace perdura::fs::test {
namespace {

template <class T>
Outcome outcome_of(Task<Result<T>> task) {
  const Result<T> result = run_at_once(std::move(task));
  if (!result) return {.error = static_cast<int>(result.error())};
  if constexpr (std::is_integral_v<T>) return {.value = static_cast<std::uint64_t>(*result)};
  return {};
}

Where where_of(const Operation& operation) {
  return operation.follow ? Where(operation.path) : Where::not_through(operation.path);
}

std::string sorted_text(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

}  // namespace

ProcessSide::ProcessSide(Session& session, Process::Options options)
    : session_(session),
      process_(
          session, kUsers[0],
          [this] {
            now_.nanoseconds += 1;
            return now_;
          },
          options) {
  slots_.fill(-1);
}

Outcome ProcessSide::open(const Operation& operation) {
  const Result<int> file =
      run_at_once(process_.open(operation.path, operation.flags, operation.mode));
  if (!file) return {.error = static_cast<int>(file.error())};
  if (slots_[operation.slot] >= 0) (void)run_at_once(process_.close(slots_[operation.slot]));
  slots_[operation.slot] = *file;
  return {};
}

Outcome ProcessSide::list(const std::string& path) {
  const Result<int> directory = run_at_once(process_.open(path, O_RDONLY | O_DIRECTORY));
  if (!directory) return {.error = static_cast<int>(directory.error())};
  std::vector<std::string> names;
  while (true) {
    const auto entry = run_at_once(process_.readdir(*directory));
    if (!entry || !*entry) break;
    names.push_back((*entry)->name + " " + std::to_string((*entry)->type));
  }
  (void)run_at_once(process_.close(*directory));
  return {.data = sorted_text(std::move(names))};
}

Outcome ProcessSide::apply(const Operation& operation) {
  process_.credentials = kUsers[operation.user];
  const std::string& path = operation.path;
  const std::string& other = operation.other;
  const int file = slots_[operation.slot];
  using enum Operation::Kind;
  switch (operation.kind) {
    case open:
      return this->open(operation);
    case close:
      slots_[operation.slot] = -1;
      return outcome_of(process_.close(file));
    case dup: {
      const Result<int> copy = process_.dup(file);
      if (!copy) return {.error = static_cast<int>(copy.error())};
      const std::size_t next = (operation.slot + 1) % kSlots;
      if (slots_[next] >= 0) (void)run_at_once(process_.close(slots_[next]));
      slots_[next] = *copy;
      return {};
    }
    case read:
    case pread: {
      std::string into(static_cast<std::size_t>(operation.length), '?');
      const auto bytes = std::as_writable_bytes(std::span(into));
      Outcome outcome =
          outcome_of(operation.kind == read ? process_.read(file, bytes)
                                            : process_.pread(file, bytes, operation.offset));
      if (outcome.error == 0) outcome.data = into.substr(0, outcome.value);
      return outcome;
    }
    case write:
      return outcome_of(process_.write(file, fs::bytes_of(operation.data)));
    case pwrite:
      return outcome_of(process_.pwrite(file, fs::bytes_of(operation.data), operation.offset));
    case lseek:
    case seek_data: {
      const auto status = run_at_once(process_.stat(file));
      if (status && !status->is_regular()) return {};
      return outcome_of(process_.lseek(file, operation.offset, operation.flags));
    }
    case truncate:
      return outcome_of(process_.truncate(path, operation.offset));
    case ftruncate:
      return outcome_of(process_.ftruncate(file, operation.offset));
    case allocate:
      return outcome_of(process_.fallocate(file, static_cast<AllocationMode>(operation.flags),
                                           operation.offset, operation.length));
    case fsync:
      return outcome_of(process_.fsync(file));
    case mkdir:
      return outcome_of(process_.mkdir(path, operation.mode));
    case rmdir:
      return outcome_of(process_.rmdir(path));
    case unlink:
      return outcome_of(process_.unlink(path));
    case link:
      return outcome_of(process_.link(where_of(operation), other));
    case link_open:
      process_.credentials = kUsers[0];
      return outcome_of(process_.link(file, other));
    case symlink:
      return outcome_of(process_.symlink(other, path));
    case readlink: {
      const Result<std::string> target = run_at_once(process_.readlink(path));
      if (!target) return {.error = static_cast<int>(target.error())};
      return {.data = *target};
    }
    case rename:
      return outcome_of(process_.rename(path, other, static_cast<RenameMode>(operation.flags)));
    case mknod:
      return outcome_of(process_.mknod(path, operation.mode, makedev(1, 3)));
    case chdir:
      return outcome_of(process_.chdir(path));
    case stat:
    case fstat: {
      const Result<Attributes> found =
          run_at_once(process_.stat(operation.kind == stat ? where_of(operation) : Where(file)));
      if (!found) return {.error = static_cast<int>(found.error())};
      return {.value = found->is_directory() ? 0 : found->size,
              .data = std::to_string(found->mode)};
    }
    case chmod:
      return outcome_of(process_.chmod(path, operation.mode));
    case fchmod:
      return outcome_of(process_.chmod(file, operation.mode));
    case chown:
      return outcome_of(process_.chown(path, operation.uid, operation.gid));
    case lchown:
      return outcome_of(process_.chown(Where::not_through(path), operation.uid, operation.gid));
    case utimens:
      return outcome_of(
          process_.utimens(where_of(operation), operation.accessed, operation.modified));
    case access:
      return outcome_of(process_.access(path, operation.mode));
    case getxattr: {
      const auto value = run_at_once(process_.getxattr(where_of(operation), other));
      if (!value) return {.error = static_cast<int>(value.error())};
      return {.data = std::string(reinterpret_cast<const char*>(value->data()), value->size())};
    }
    case setxattr:
      return outcome_of(process_.setxattr(where_of(operation), other, fs::bytes_of(operation.data),
                                          static_cast<AttributeMode>(operation.flags)));
    case removexattr:
      return outcome_of(process_.removexattr(where_of(operation), other));
    case listxattr: {
      const auto names = run_at_once(process_.listxattr(where_of(operation)));
      if (!names) return {.error = static_cast<int>(names.error())};
      return {.data = sorted_text(*names)};
    }
    case list:
      return this->list(path);
    case umask:
      process_.options.umask = operation.mode & 0777;
      return {};
    case count:
      break;
  }
  return {};
}

std::vector<std::size_t> ProcessSide::open_slots() const {
  std::vector<std::size_t> open;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (slots_[slot] >= 0) open.push_back(slot);
  }
  return open;
}

void ProcessSide::add_to_picture(Picture& picture, const std::string& path, InodeNumber inode) {
  const Attributes is = run_at_once(session_.attributes(inode)).value();
  picture[path] = {.inode = static_cast<std::uint64_t>(inode),
                   .mode = is.mode,
                   .uid = is.uid,
                   .gid = is.gid,
                   .links = is.links,
                   .device = is.device,
                   .size = is.is_directory() ? 0 : is.size,
                   .modified = is.modified,
                   .changed = is.changed};
  if (!is.is_directory()) return;
  const auto entries = run_at_once(session_.entries(inode, 0, 1 << 20)).value();
  for (const DirectoryEntry& entry : entries) {
    add_to_picture(picture, (path == "/" ? "" : path) + "/" + entry.name, entry.inode);
  }
}

Picture ProcessSide::picture() {
  Picture picture;
  add_to_picture(picture, "/", kRootInode);
  return picture;
}

bool ProcessSide::is_lost() {
  process_.credentials = kUsers[0];
  return run_at_once(process_.stat(".")).value().links == 0;
}

std::string ProcessSide::bytes_of(const std::string& path, Bytes offset, Bytes length) {
  process_.credentials = kUsers[0];
  const int file = run_at_once(process_.open(path, O_RDONLY | O_NOATIME)).value();
  std::string bytes(length, '?');
  const auto got = run_at_once(process_.pread(file, std::as_writable_bytes(std::span(bytes)),
                                              static_cast<std::int64_t>(offset)));
  (void)run_at_once(process_.close(file));
  return bytes.substr(0, got.value());
}

std::vector<Extent> ProcessSide::data_of(const std::string& path) {
  process_.credentials = kUsers[0];
  const int file = run_at_once(process_.open(path, O_RDONLY | O_NOATIME)).value();
  std::vector<Extent> extents;
  for (Bytes hole = 0;;) {
    const auto data = run_at_once(process_.lseek(file, static_cast<std::int64_t>(hole), SEEK_DATA));
    if (!data) break;
    hole = run_at_once(process_.lseek(file, static_cast<std::int64_t>(*data), SEEK_HOLE)).value();
    Extent extent{.offset = *data, .bytes = std::vector<std::byte>(hole - *data)};
    (void)run_at_once(process_.pread(file, extent.bytes, static_cast<std::int64_t>(*data)));
    extents.push_back(std::move(extent));
  }
  (void)run_at_once(process_.close(file));
  return extents;
}

}  // namespace perdura::fs::test
