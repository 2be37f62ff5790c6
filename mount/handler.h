// Handles the requests of the kernel: each is a coroutine on a thread's Session that answers
// through libfuse (fuse_reply_*). Names and data are in the request's buffer, which stays valid
// until the task has ended.
//
// The kernel checks permissions (default_permissions). If all changes come through this mount, the
// kernel serializes conflicting operations on a directory or file, so that its cached answers stay
// true, and keeps locks. If others may change the file system, it remembers nothing: each use of a
// name, an attribute or data is a request. The session holds each inode that the kernel knows until
// the kernel forgets it.
#pragma once

#include <atomic>

#include "mount/connection.h"
#include "mount/listings.h"
#include "mount/readers.h"
#include "services/fs/fs.h"
#include "services/fs/locks.h"
#include "services/fs/posix/access_list.h"
#include "services/fs/trace/recorder.h"

namespace perdura::mount {

enum class AccessTimes : std::uint8_t {
  none,      // reading does not change them (noatime)
  relative,  // set by reading if older than the last change, or than a day (relatime)
};

// Counts releases under way, whose space is about to become free. The kernel forgets an inode only
// after the call that removed its last name or closed it, so one thread may still be freeing its
// blocks when another already writes where the program expects room.
class Releases {
 public:
  void begin() { ++under_way_; }
  void end() { --under_way_; }
  bool are_under_way() const { return under_way_ > 0; }

 private:
  std::atomic<int> under_way_{0};
};

class MountLocks;

// The handlers of a mount's threads have this in common.
struct MountState {
  bool is_shared;  // others may change the file system (Source::is_shared)
  AccessTimes access_times;
  Readers& readers;
  Releases& releases;
  Listings& listings;
  MountLocks* locks;            // null unless it is shared
  fs::TraceRecorder* recorder;  // null unless accesses are recorded
};

class Handler {
 public:
  Handler(fs::Session& session, Channel& channel, const MountState& mount);

  // --- names
  Task<> look_up(fuse_req_t request, fs::InodeNumber directory, std::string_view name);
  Task<> forget(fuse_req_t request, std::vector<fuse_forget_data> inodes);
  Task<> create(fuse_req_t request, fs::InodeNumber directory, std::string_view name,
                fs::NewInode inode);
  // Creates a regular file and opens it.
  Task<> create_open(fuse_req_t request, fs::InodeNumber directory, std::string_view name,
                     std::uint32_t mode, fuse_file_info file);
  // FUSE_TMPFILE, which libfuse does not know.
  Task<> create_unnamed(fuse_in_header request, fuse_create_in arguments);
  Task<> link(fuse_req_t request, fs::InodeNumber inode, fs::InodeNumber directory,
              std::string_view name);
  Task<> unlink(fuse_req_t request, fs::InodeNumber directory, std::string_view name);
  Task<> remove_directory(fuse_req_t request, fs::InodeNumber directory, std::string_view name);
  Task<> rename(fuse_req_t request, fs::InodeNumber from, std::string_view name, fs::InodeNumber to,
                std::string_view new_name, unsigned flags);
  Task<> read_link(fuse_req_t request, fs::InodeNumber inode);
  Task<> open_directory(fuse_req_t request, fs::InodeNumber directory, fuse_file_info file);
  void close_directory(fuse_req_t request, const fuse_file_info& file);
  Task<> entries(fuse_req_t request, fs::InodeNumber directory, std::size_t most,
                 std::uint64_t offset, bool with_attributes, std::uint64_t listing);

  // --- attributes
  Task<> attributes(fuse_req_t request, fs::InodeNumber inode);
  Task<> set_attributes(fuse_req_t request, fs::InodeNumber inode, struct stat wanted, int which,
                        bool clear_set_id);
  Task<> extended(fuse_req_t request, fs::InodeNumber inode, std::string_view name,
                  std::size_t most);
  Task<> extended_names(fuse_req_t request, fs::InodeNumber inode, std::size_t most);
  Task<> set_extended(fuse_req_t request, fs::InodeNumber inode, std::string_view name,
                      std::span<const std::byte> value, int flags);
  Task<> remove_extended(fuse_req_t request, fs::InodeNumber inode, std::string_view name);
  Task<> statistics(fuse_req_t request);

  // --- data
  Task<> open(fuse_req_t request, fs::InodeNumber inode, fuse_file_info file);
  Task<> read(fuse_req_t request, fs::InodeNumber inode, Bytes offset, std::size_t size, int flags);
  // With O_APPEND among the flags of the open file, at the end of a shared file wherever that is by now:
  // `offset` is where the kernel supposes it.
  Task<> write(fuse_req_t request, fs::InodeNumber inode, Bytes offset,
               std::span<const std::byte> data, int flags, bool clear_set_id);
  // `offset`: nullopt to append. Returns where it was written.
  Task<fs::Result<Bytes>> write_or_append(fs::InodeNumber inode, std::optional<Bytes> offset,
                                          std::span<const std::byte> data,
                                          fs::WriteOptions options);
  // Writes as much of `data` as there is space for, from its start. Returns the number of bytes.
  Task<Bytes> write_what_fits(fs::InodeNumber inode, std::optional<Bytes> offset,
                              std::span<const std::byte> data, fs::WriteOptions options);
  Task<> allocate(fuse_req_t request, fs::InodeNumber inode, int mode, Bytes offset, Bytes length);
  Task<> seek(fuse_req_t request, fs::InodeNumber inode, Bytes offset, int whence);
  Task<> sync(fuse_req_t request, fs::InodeNumber inode);

  // --- locks, of shared file systems; all are refused (ENOLCK) if the system has none
  Task<> forbidding_lock(fuse_req_t request, fs::InodeNumber inode, fs::FileLock wanted);
  // `waits`: the request is answered when the lock is there.
  Task<> set_lock(fuse_req_t request, fs::InodeNumber inode, fs::FileLock wanted, bool waits);
  // An owner has closed a file.
  Task<> end_locks(fuse_req_t request, fs::InodeNumber inode, fs::LockKind kind,
                   std::uint64_t owner);

  // True if open requests are needed: reads set access times, or bypass the kernel's cache.
  bool wants_open() const { return is_uncached() || access_times_ == AccessTimes::relative; }
  bool is_shared() const { return is_shared_; }
  bool is_traced() const { return recorder_ != nullptr; }
  // True if all reads and writes reach us, because the kernel caches no data.
  bool is_uncached() const { return is_shared_ || is_traced(); }
  // Notes something in the trace, if there is one, and if the file was opened or truncated before.
  void note(fs::TraceKind kind, fs::InodeNumber inode, Bytes offset = 0, Bytes length = 0) {
    if (recorder_ != nullptr) [[unlikely]]
      recorder_->add(kind, inode, offset, length);
  }

 private:
  // How long the kernel may remember attributes and names.
  double remembered() const { return is_shared_ ? 0 : kForEver; }
  // Holds an inode that was found a moment ago for the kernel. no_such_file_or_directory if others have
  // removed it meanwhile.
  Task<fs::Result<void>> hold(const fs::Attributes& found);
  // Answers with an inode, which the kernel then knows, and holds it for the kernel.
  Task<> answer_entry(fuse_req_t request, fs::Attributes found);
  // The same for one that is held already.
  Task<> answer_held(fuse_req_t request, fs::Attributes found);
  Task<> answer_result(fuse_req_t request, Task<fs::Result<void>> work);
  Task<fs::Result<fs::Attributes>> find(fs::InodeNumber directory, std::string_view name);
  // The same, and holds what it has found.
  Task<fs::Result<fs::Attributes>> find_held(fs::InodeNumber directory, std::string_view name);
  Task<fs::Result<fs::Attributes>> make(fs::Credentials caller, fs::InodeNumber directory,
                                        std::string_view name, fs::NewInode inode,
                                        std::uint32_t umask);
  Task<fs::Result<std::optional<fs::AccessList>>> access_list(fs::InodeNumber inode,
                                                              std::string_view name);
  Task<> set_access_list(fuse_req_t request, fs::InodeNumber inode,
                         std::span<const std::byte> value, fs::Timestamp now);
  // The options of a data change. If set-user-ID and set-group-ID are to be cleared, clears those
  // that WriteOptions cannot, and makes the kernel forget the mode.
  Task<fs::WriteOptions> write_options(fuse_req_t request, fs::InodeNumber inode,
                                       bool clear_set_id);
  Task<> note_read(fs::InodeNumber inode);
  // For the trace, which there must be: a file as it is now; a file that has space up to `end`.
  Task<> note_file(fs::InodeNumber inode);
  Task<> note_allocated(fs::InodeNumber inode, Bytes end);
  // For the trace, if there is one: an open file, one that was made and opened, a name.
  Task<> note_open(fs::InodeNumber inode);
  void note_created(const fs::Attributes& made);
  void note_name(fs::InodeNumber directory, std::string_view name, fs::InodeNumber inode) {
    if (recorder_ != nullptr) [[unlikely]]
      recorder_->found(directory, name, inode);
  }
  // Runs an operation that needs space, and retries it while space may become free.
  template <class Operation>
  auto with_space(Operation operation) -> decltype(operation()) {
    for (int pauses = 0;; ++pauses) {
      auto result = co_await operation();
      const bool is_full = !result && result.error() == std::errc::no_space_on_device;
      if (!is_full || pauses == kPauses) co_return result;
      co_await releases_end();
    }
  }
  Task<> releases_end();
  // Calls another thread to take further requests if this many bytes to allocate or free take long.
  void expect_work(Bytes bytes) const {
    if (bytes >= kMuch) readers_.call_another();
  }
  // The same, before an operation on all blocks of the inode.
  Task<> expect_work_on(fs::InodeNumber inode);

  // A thread that has been told to forget an inode may not have run since, so it is not counted
  // yet; hence more than one pause.
  static constexpr int kPauses = 4;
  static constexpr Picoseconds kPause = Milliseconds(5);
  static constexpr Bytes kMuch = 16 * MiB;  // bytes to allocate or free
  // All changes go through the kernel, so it may remember names and attributes forever.
  static constexpr double kForEver = 1e9;  // seconds

  fs::Session& session_;
  Channel& channel_;
  bool is_shared_;
  AccessTimes access_times_;
  Readers& readers_;
  Releases& releases_;
  Listings& listings_;
  MountLocks* locks_;
  fs::TraceRecorder* recorder_;
  fs::LockSession* locking_;       // the session, if it has locks
  std::vector<std::byte> buffer_;  // for data and directories that are read
};

fs::Timestamp time_now();
void fail(fuse_req_t request, std::errc error);
// The caller's credentials, including supplementary groups, which are read from /proc.
fs::Credentials credentials_of(fuse_req_t request);
fs::Credentials credentials_of(uid_t uid, gid_t gid, pid_t thread);

}  // namespace perdura::mount
