#include <fcntl.h>

#include <cerrno>

#include "mount/answer.h"
#include "mount/locks.h"

namespace perdura::mount {

Task<> Handler::forbidding_lock(fuse_req_t request, fs::InodeNumber inode, fs::FileLock wanted) {
  if (locking_ == nullptr) {
    fuse_reply_err(request, ENOLCK);
    co_return;
  }
  const auto found = co_await locking_->forbidding_lock(inode, wanted);
  if (!found) {
    fail(request, found.error());
    co_return;
  }
  struct flock answer {};
  answer.l_type = F_UNLCK;
  if (*found) {
    const fs::FileLock& forbids = **found;
    answer.l_type = forbids.mode == fs::LockMode::shared ? F_RDLCK : F_WRLCK;
    answer.l_whence = SEEK_SET;
    answer.l_start = static_cast<off_t>(forbids.first);
    const bool is_open = forbids.last == fs::kLargestFile;
    answer.l_len = is_open ? 0 : static_cast<off_t>(forbids.last - forbids.first + 1);
    answer.l_pid = static_cast<pid_t>(forbids.process);
  }
  fuse_reply_lock(request, &answer);
}

Task<> Handler::set_lock(fuse_req_t request, fs::InodeNumber inode, fs::FileLock wanted,
                         bool waits) {
  if (locking_ == nullptr) {
    fuse_reply_err(request, ENOLCK);
    co_return;
  }
  // Noted before it is there: a program may close the file while it is being locked.
  if (wanted.mode != fs::LockMode::none) locks_->note(inode, wanted);
  const fs::Result<void> locked = co_await locking_->lock(inode, wanted);
  if (!locked && waits && locked.error() == std::errc::resource_unavailable_try_again) {
    Executor::current().spawn(locks_->await(request, channel_.descriptor(), inode, wanted));
    co_return;
  }
  fuse_reply_err(request, locked ? 0 : static_cast<int>(locked.error()));
}

Task<> Handler::end_locks(fuse_req_t request, fs::InodeNumber inode, fs::LockKind kind,
                          std::uint64_t owner) {
  if (locks_->forget(inode, kind, owner)) {
    const fs::Result<void> ended = co_await locking_->lock(inode, {.kind = kind, .owner = owner});
    if (!ended) {
      fail(request, ended.error());
      co_return;
    }
  }
  fuse_reply_err(request, 0);
}

}  // namespace perdura::mount
