// A file system as a program sees it: paths, open files, permissions. Works on any Session.
//
//   Process process(session, {.uid = 1000, .gid = 1000}, clock);
//   const auto file = co_await process.open("notes", O_CREAT | O_WRONLY, 0644);
//   co_await process.write(*file, text);
//   co_await process.exit();
//
// Functions are named after the system calls; their flags, errors and order of errors are those of
// Linux. Not offered: opening pipes, sockets and devices (they exist as names; open() returns
// operation_not_supported, for sockets ENXIO), mounts, quotas, immutable files.
#pragma once

#include <fcntl.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "services/fs/fs.h"
#include "services/fs/posix/credentials.h"
#include "services/fs/posix/rules.h"
#include "tests/services/fs/posix/locks.h"

namespace perdura::fs::test {

inline constexpr std::size_t kLongestPath = 4095;
inline constexpr int kMostSymlinks = 40;  // followed along a path

// Names a file by a path or by a descriptor.
struct Where {
  Where(std::string_view by_path) : path(by_path) {}       // NOLINT(google-explicit-constructor)
  Where(const char* by_path) : path(by_path) {}            // NOLINT(google-explicit-constructor)
  Where(const std::string& by_path) : path(by_path) {}     // NOLINT(google-explicit-constructor)
  Where(int by_descriptor) : descriptor(by_descriptor) {}  // NOLINT(google-explicit-constructor)
  // Names a symbolic link itself, as lstat() and lchown() do.
  static Where not_through(std::string_view by_path) {
    Where where(by_path);
    where.follow = false;
    return where;
  }

  std::string_view path{};
  bool follow = true;
  std::optional<int> descriptor{};
};

// A time for utimensat(): the given one, UTIME_NOW or UTIME_OMIT.
struct NewTime {
  Timestamp time{};
  bool now = false;
  bool omit = false;
};

class Process {
 public:
  struct Options {
    std::uint32_t umask = 022;
    // A process that does not own a file may link to it only if the file is regular and the process
    // may read and write it (Linux' fs.protected_hardlinks).
    bool protected_hard_links = true;
    // Sockets may have extended attributes whose names begin with "user.", as in Linux 7.3.
    bool user_attributes_on_sockets = false;
  };
  using Clock = std::function<Timestamp()>;

  // Starts with the root as current directory. Processes that share locks get the same table.
  Process(Session& session, Credentials who, Clock clock, Options with, LockTable* locks = nullptr);
  Process(Session& session, Credentials who, Clock clock)
      : Process(session, std::move(who), std::move(clock), Options()) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Makes another process with the same open files, current directory and credentials, and without
  // locks of ranges. It uses the same session.
  Task<std::unique_ptr<Process>> fork();
  // Closes all files and leaves the current directory. Must be the last call.
  Task<> exit();

  Credentials credentials;
  Options options;

  // --- names
  Task<Result<void>> mkdir(std::string_view path, mode_t mode);
  Task<Result<void>> rmdir(std::string_view path);
  Task<Result<void>> unlink(std::string_view path);
  // With a path, Where::not_through() has the semantics of link(). With a descriptor of a file that
  // was opened with O_TMPFILE and without O_EXCL, the file need not have a name.
  Task<Result<void>> link(Where existing, std::string_view path);
  Task<Result<void>> symlink(std::string_view target, std::string_view path);
  Task<Result<std::string>> readlink(std::string_view path);
  Task<Result<void>> rename(std::string_view path, std::string_view new_path,
                            RenameMode mode = RenameMode::replace);
  Task<Result<void>> mknod(std::string_view path, mode_t mode, std::uint64_t device);
  Task<Result<void>> chdir(Where where);

  // --- attributes
  Task<Result<Attributes>> stat(Where where);
  Task<Result<void>> chmod(Where where, mode_t mode);
  Task<Result<void>> chown(Where where, std::optional<std::uint32_t> uid,
                           std::optional<std::uint32_t> gid);
  Task<Result<void>> utimens(Where where, NewTime accessed, NewTime modified);
  Task<Result<void>> access(Where where, std::uint32_t wanted);  // 0: checks that it exists
  Task<Result<Statistics>> statfs(Where where);
  Task<Result<std::vector<std::byte>>> getxattr(Where where, std::string_view name);
  Task<Result<void>> setxattr(Where where, std::string_view name, std::span<const std::byte> value,
                              AttributeMode mode = AttributeMode::create_or_replace);
  Task<Result<void>> removexattr(Where where, std::string_view name);
  Task<Result<std::vector<std::string>>> listxattr(Where where);

  // --- open files
  Task<Result<int>> open(std::string_view path, int flags, mode_t mode = 0);
  Task<Result<void>> close(int descriptor);
  Result<int> dup(int descriptor);  // shares the offset and the locks
  Task<Result<Bytes>> read(int descriptor, std::span<std::byte> into);
  Task<Result<Bytes>> pread(int descriptor, std::span<std::byte> into, std::int64_t offset);
  Task<Result<Bytes>> write(int descriptor, std::span<const std::byte> data);
  Task<Result<Bytes>> pwrite(int descriptor, std::span<const std::byte> data, std::int64_t offset);
  // `whence` is SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA or SEEK_HOLE.
  Task<Result<Bytes>> lseek(int descriptor, std::int64_t offset, int whence);
  Task<Result<void>> truncate(std::string_view path, std::int64_t size);
  Task<Result<void>> ftruncate(int descriptor, std::int64_t size);
  Task<Result<void>> fallocate(int descriptor, AllocationMode mode, std::int64_t offset,
                               std::int64_t length);
  Task<Result<void>> fsync(int descriptor);
  // The next entry, including "." and ".."; none at the end.
  Task<Result<std::optional<DirectoryEntry>>> readdir(int descriptor);
  Result<std::uint64_t> telldir(int descriptor) const;
  Result<void> seekdir(int descriptor, std::uint64_t position);

  // --- advisory locks; operation_not_supported without a table
  // Locks a range for the process or for the open file (open-file-description locks). If another
  // lock excludes it: resource_unavailable_try_again (EAGAIN).
  Result<void> lock_range(int descriptor, const RangeLock& lock, LockOwnership ownership);
  // The first lock that excludes this one, if any.
  Result<std::optional<RangeLock>> test_range(int descriptor, const RangeLock& lock,
                                              LockOwnership ownership) const;
  Result<void> flock(int descriptor, LockType type);

 private:
  // An open file description, which descriptors refer to.
  struct OpenFile {
    InodeNumber inode{};
    std::uint32_t type = 0;
    int flags = 0;
    std::uint32_t descriptors = 0;       // in all processes
    bool is_linkable = false;            // has no name yet, and may get one
    Bytes offset = 0;                    // for a directory, the position of telldir()
    std::deque<DirectoryEntry> ahead{};  // the next entries, read ahead
    std::uint64_t last = 0;              // cookie at which a reading that began at the start ends

    bool is_open_for(std::uint32_t wanted) const;
  };
  using OpenFiles = std::map<int, std::shared_ptr<OpenFile>>;

  // A path that is being resolved: the directory reached so far, which is held, and the rest of the
  // path.
  struct Walk {
    Attributes at{};
    std::string rest;
    int symlinks = 0;
  };
  // The end of a path: a name in a directory, which is held.
  struct PathEnd {
    Attributes directory{};
    std::string name;
    bool is_normal = true;  // not ".", ".." or the root
    bool slash = false;     // after the name
  };

  Timestamp now() const { return clock_(); }
  Result<OpenFile*> find_open(int descriptor) const;
  int add_descriptor(std::shared_ptr<OpenFile> file);
  Task<> close_file(std::shared_ptr<OpenFile> file);

  // --- paths. The caller must release the inodes of results.
  Task<Result<Walk>> begin(std::string_view path);
  // Goes on to the last component.
  Task<Result<PathEnd>> walk(Walk& walk);
  // Continues with the target of a symbolic link in directory `in`, followed by `behind`.
  Task<Result<void>> follow(Walk& walk, const Attributes& in, InodeNumber symlink,
                            std::string_view behind);
  Task<Result<Attributes>> parent_of(const Attributes& directory);
  // The inode that a place names, held.
  Task<Result<Attributes>> find_at(const PathEnd& end);
  Task<Result<Attributes>> find(std::string_view path, bool follow);
  // `without_opening`: a descriptor that was opened with O_PATH suffices.
  Task<Result<Attributes>> find(Where where, bool without_opening = false);
  Task<Result<PathEnd>> find_end(std::string_view path);
  // find_free() finds a place without an inode; find_new() also checks that something may be made
  // there.
  Task<Result<PathEnd>> find_free(std::string_view path, bool directory);
  Task<Result<PathEnd>> find_new(std::string_view path, bool directory);
  Task<std::optional<std::errc>> why_not_link(const Attributes& inode, const PathEnd& end,
                                              bool may_be_unnamed);
  Task<std::optional<std::errc>> why_not_remove(const Attributes& directory,
                                                const Attributes& victim, bool as_directory);
  Task<std::optional<std::errc>> why_not_rename(const PathEnd& from, const PathEnd& to,
                                                RenameMode mode);
  Task<bool> lies_in(InodeNumber inode, InodeNumber directory);

  // --- rules
  Task<std::optional<AccessList>> list_of(const Attributes& inode, std::string_view name);
  Task<bool> may(const Attributes& inode, std::uint32_t wanted);
  Task<Result<Attributes>> make(const PathEnd& end, mode_t mode, std::uint64_t device,
                                std::string_view target);
  Task<> note_access(const Attributes& inode);
  Task<std::optional<std::errc>> why_not_open(const Attributes& inode, int flags);
  Task<Result<Attributes>> open_path(std::string_view path, int flags, mode_t mode);
  Task<Result<Attributes>> open_unnamed(std::string_view path, int flags, mode_t mode);
  Task<Result<WriteOptions>> before_write(InodeNumber inode);
  struct Written {
    Bytes bytes = 0;
    Bytes end = 0;  // offset in the file
  };
  Task<Result<Written>> append_to(OpenFile& file, std::span<const std::byte> data,
                                  const WriteOptions& with);
  Task<Result<Written>> write_at(OpenFile& file, std::span<const std::byte> data, Bytes offset);
  Task<Result<Bytes>> read_at(OpenFile& file, std::span<std::byte> into, Bytes offset);
  Task<Result<void>> set_list(const Attributes& inode, std::string_view name,
                              std::optional<AccessList> list);
  Task<Result<void>> set_attribute(const Attributes& inode, std::string_view name,
                                   std::span<const std::byte> value, AttributeMode mode);
  Task<Result<void>> remove_attribute(const Attributes& inode, std::string_view name);
  Task<Result<std::vector<std::byte>>> get_attribute(const Attributes& inode,
                                                     std::string_view name);

  Session& session_;
  Clock clock_;
  LockTable* locks_;
  OpenFiles descriptors_;
  std::optional<InodeNumber> current_{};  // directory, held; the root if there is none
};

}  // namespace perdura::fs::test
