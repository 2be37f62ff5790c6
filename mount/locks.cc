#include "mount/locks.h"

#include <algorithm>
#include <cerrno>

#include "platform/base/error.h"

namespace perdura::mount {

namespace {

constexpr Picoseconds kFirstPause = Milliseconds(1);
constexpr Picoseconds kLongestPause = Milliseconds(16);

}  // namespace

MountLocks::MountLocks(Node& node, fabric::Port port, std::shared_ptr<fs::FileSystem> files)
    : files_(std::move(files)), thread_(node.start_background_thread(port)) {}

MountLocks::~MountLocks() = default;

Task<> connect(fs::Session& session) {
  const fs::Result<fs::Statistics> answered = co_await session.statistics();
  if (answered) co_return;
  throw PlatformError(
      "the metadata server is gone, or has no session left for each thread of this mount; give it "
      "more (sessions), or the mount fewer threads (--threads)");
}

Task<> MountLocks::open() {
  std::unique_ptr<fs::Session> session = files_->attach(thread_->thread());
  co_await connect(*session);
  session_ = session.get();
  Executor::current().spawn(keep(std::move(session)));
}

Task<> MountLocks::keep(std::unique_ptr<fs::Session> session) {
  co_await wait(closing_);
  session.reset();
  session_ = nullptr;
}

Task<> MountLocks::begin() { return thread_->run(open()); }

Task<> MountLocks::await(fuse_req_t request, int descriptor, fs::InodeNumber inode,
                         fs::FileLock lock) {
  return thread_->run(ask(request, descriptor, inode, lock));
}

Task<> MountLocks::ask(fuse_req_t request, int descriptor, fs::InodeNumber inode,
                       fs::FileLock lock) {
  ++waiting_;
  auto& locks = dynamic_cast<fs::LockSession&>(*session_);
  int answer = EINTR;
  for (Picoseconds pause = kFirstPause; !ended_ && fuse_req_interrupted(request) == 0;
       pause = std::min(2 * pause, kLongestPause)) {
    const fs::Result<void> locked = co_await locks.lock(inode, lock);
    answer = locked ? 0 : static_cast<int>(locked.error());
    if (answer != EAGAIN) break;
    answer = EINTR;
    co_await sleep_for(pause);
  }
  if (answer == 0) note(inode, lock);
  const AnswersThrough through(descriptor);
  if (fuse_reply_err(request, answer) != 0 && answer == 0) {
    // The program is gone.
    lock.mode = fs::LockMode::none;
    const fs::Result<void> given_up = co_await locks.lock(inode, lock);
    static_cast<void>(given_up);  // the mount's locks end with it
  }
  --waiting_;
}

Task<> MountLocks::close() {
  while (waiting_ > 0) co_await sleep_for(kFirstPause);
  closing_.wake_all();
  while (session_ != nullptr) co_await yield();
}

Task<> MountLocks::end() {
  ended_ = true;
  return thread_->run(close());
}

void MountLocks::note(fs::InodeNumber inode, const fs::FileLock& lock) {
  const std::scoped_lock guard(mutex_);
  owners_.insert({inode, lock.kind, lock.owner});
}

bool MountLocks::forget(fs::InodeNumber inode, fs::LockKind kind, std::uint64_t owner) {
  const std::scoped_lock guard(mutex_);
  return owners_.erase({inode, kind, owner}) > 0;
}

void MountLocks::forget(fs::InodeNumber inode) {
  const std::scoped_lock guard(mutex_);
  const auto first = owners_.lower_bound({inode, {}, 0});
  const auto last = std::find_if(first, owners_.end(),
                                 [&](const LockOwner& each) { return each.inode != inode; });
  owners_.erase(first, last);
}

}  // namespace perdura::mount
