#include "tests/services/fs/posix/look_up.h"

namespace perdura::fs::test {

Task<Result<Attributes>> hold_found(Session& session, Attributes found) {
  const Result<void> held = co_await session.hold(found.inode);
  if (!held) co_return tl::unexpected(held.error());
  const Result<Attributes> now = co_await session.attributes(found.inode);
  if (now && now->generation == found.generation) co_return *now;
  co_await session.release(found.inode);
  co_return tl::unexpected(std::errc::no_such_file_or_directory);
}

Task<Result<Attributes>> look_up_and_hold(Session& session, InodeNumber directory,
                                          std::string_view name) {
  while (true) {
    const Result<Attributes> found = co_await session.look_up(directory, name);
    if (!found) co_return found;
    const Result<Attributes> held = co_await hold_found(session, *found);
    // The inode was removed in between; another one may have its name by now.
    if (held || held.error() != std::errc::no_such_file_or_directory) co_return held;
  }
}

}  // namespace perdura::fs::test
