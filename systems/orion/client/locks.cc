// Advisory locks: RPCs to the MDS, which keeps those of all mounts.
#include <cstring>

#include "systems/orion/client/session.h"

namespace perdura::systems::orion {

namespace {

Outgoing lock_request(InodeNumber inode, const LockArguments& arguments) {
  return {.header = {.request = Request::lock, .inode = identity_of(inode)},
          .payload = std::as_bytes(std::span(&arguments, 1))};
}

}  // namespace

Task<Result<void>> Session::lock(InodeNumber inode, const fs::FileLock& lock) {
  const LockArguments arguments{.lock = lock};
  co_return co_await call_without_value(lock_request(inode, arguments));
}

Task<Result<std::optional<fs::FileLock>>> Session::forbidding_lock(InodeNumber inode,
                                                                   const fs::FileLock& lock) {
  const LockArguments arguments{.lock = lock, .only_asks = 1};
  const Result<Reply> reply = co_await call(lock_request(inode, arguments));
  if (!reply) co_return fail(reply.error());
  if (reply->count == 0) co_return std::optional<fs::FileLock>();
  fs::FileLock forbids;
  std::memcpy(&forbids, reply->free, sizeof forbids);
  co_return std::optional(forbids);
}

}  // namespace perdura::systems::orion
