// What each request of the kernel does: coroutines over a thread's Session, which answer the
// request by libfuse (fuse_reply_*). Names and data lie in the request's buffer, which stays until
// the task has ended.
//
// The kernel has checked permissions (default_permissions), keeps locks, and orders what is done to
// one directory or file, so that what it has been told stays true as long as it remembers it. For
// each inode that it has been told of, the session holds the inode until the kernel forgets it.
#pragma once

#include <atomic>

#include "library/fs/connection.h"
#include "library/fs/listings.h"
#include "library/fs/readers.h"
#include "services/fs/fs.h"
#include "services/fs/posix/access_list.h"

namespace perdura::fs::fuse {

enum class AccessTimes : std::uint8_t {
  none,      // reading changes nothing (noatime)
  relative,  // reading sets them if they are older than the last change, or than a day (relatime)
};

// What is about to become free. The kernel forgets an inode behind the call that removed its last
// name or closed it, so that one thread still frees its blocks while another already writes where
// the program expects room.
class Releases {
 public:
  void begin() { ++under_way_; }
  void end() { --under_way_; }
  bool are_under_way() const { return under_way_ > 0; }

 private:
  std::atomic<int> under_way_{0};
};

class Handler {
 public:
  Handler(Session& session, Channel& channel, AccessTimes access_times, Readers& readers,
          Releases& releases, Listings& listings);

  // --- names
  Task<> look_up(fuse_req_t request, InodeNumber directory, std::string_view name);
  Task<> forget(fuse_req_t request, std::vector<fuse_forget_data> inodes);
  Task<> create(fuse_req_t request, InodeNumber directory, std::string_view name, NewInode inode);
  // Creates a regular file and opens it.
  Task<> create_open(fuse_req_t request, InodeNumber directory, std::string_view name,
                     std::uint32_t mode, fuse_file_info file);
  // FUSE_TMPFILE, which libfuse does not know.
  Task<> create_unnamed(fuse_in_header request, fuse_create_in arguments);
  Task<> link(fuse_req_t request, InodeNumber inode, InodeNumber directory, std::string_view name);
  Task<> unlink(fuse_req_t request, InodeNumber directory, std::string_view name);
  Task<> remove_directory(fuse_req_t request, InodeNumber directory, std::string_view name);
  Task<> rename(fuse_req_t request, InodeNumber from, std::string_view name, InodeNumber to,
                std::string_view new_name, unsigned flags);
  Task<> read_link(fuse_req_t request, InodeNumber inode);
  Task<> open_directory(fuse_req_t request, InodeNumber directory, fuse_file_info file);
  void close_directory(fuse_req_t request, const fuse_file_info& file);
  Task<> entries(fuse_req_t request, InodeNumber directory, std::size_t most, std::uint64_t offset,
                 bool with_attributes, std::uint64_t listing);

  // --- attributes
  Task<> attributes(fuse_req_t request, InodeNumber inode);
  Task<> set_attributes(fuse_req_t request, InodeNumber inode, struct stat wanted, int which,
                        bool clear_set_id);
  Task<> extended(fuse_req_t request, InodeNumber inode, std::string_view name, std::size_t most);
  Task<> extended_names(fuse_req_t request, InodeNumber inode, std::size_t most);
  Task<> set_extended(fuse_req_t request, InodeNumber inode, std::string_view name,
                      std::span<const std::byte> value, int flags);
  Task<> remove_extended(fuse_req_t request, InodeNumber inode, std::string_view name);
  Task<> statistics(fuse_req_t request);

  // --- data
  Task<> open(fuse_req_t request, InodeNumber inode, fuse_file_info file);
  Task<> read(fuse_req_t request, InodeNumber inode, Bytes offset, std::size_t size, int flags);
  Task<> write(fuse_req_t request, InodeNumber inode, Bytes offset, std::span<const std::byte> data,
               bool clear_set_id);
  Task<Bytes> write_what_fits(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                              WriteOptions options);
  Task<> allocate(fuse_req_t request, InodeNumber inode, int mode, Bytes offset, Bytes length);
  Task<> seek(fuse_req_t request, InodeNumber inode, Bytes offset, int whence);
  Task<> sync(fuse_req_t request, InodeNumber inode);

  // Sets access times at reading, and so wants to know of files that are opened.
  bool wants_open() const { return access_times_ == AccessTimes::relative; }

 private:
  // Answers with an inode that the kernel then knows, and that is held for it.
  Task<> answer_entry(fuse_req_t request, Attributes found);
  Task<> answer_result(fuse_req_t request, Task<Result<void>> work);
  Task<Result<Attributes>> find(InodeNumber directory, std::string_view name);
  Task<Result<Attributes>> make(Credentials caller, InodeNumber directory, std::string_view name,
                                NewInode inode, std::uint32_t umask);
  Task<Result<std::optional<AccessList>>> access_list(InodeNumber inode, std::string_view name);
  Task<> set_access_list(fuse_req_t request, InodeNumber inode, std::span<const std::byte> value,
                         Timestamp now);
  // Those of a change of data, behind which set-user-ID and set-group-ID bits are gone, if they are
  // to be cleared.
  Task<WriteOptions> write_options(fuse_req_t request, InodeNumber inode, bool clear_set_id);
  Task<> note_read(InodeNumber inode);
  // Does what needs space, anew as long as some may become free.
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
  // Calls another thread for the requests that come meanwhile, if this many bytes take long.
  void expect_work(Bytes bytes) const {
    if (bytes >= kMuch) readers_.call_another();
  }
  // Before what is done to blocks of the inode.
  Task<> expect_work_on(InodeNumber inode);

  // A thread that has been told to forget an inode may not have run since, so that it does not
  // count yet.
  static constexpr int kPauses = 4;
  static constexpr Picoseconds kPause = Milliseconds(5);
  static constexpr Bytes kMuch = 16 * MiB;  // to be allocated or freed

  Session& session_;
  Channel& channel_;
  AccessTimes access_times_;
  Readers& readers_;
  Releases& releases_;
  Listings& listings_;
  std::vector<std::byte> buffer_;  // of data and directories that are read
};

Timestamp time_now();
void fail(fuse_req_t request, std::errc error);
// Of who asks, with supplementary groups, which are read from /proc.
Credentials credentials_of(fuse_req_t request);
Credentials credentials_of(uid_t uid, gid_t gid, pid_t thread);

}  // namespace perdura::fs::fuse
