#include "systems/novad/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "platform/base/error.h"
#include "systems/novad/session.h"

namespace perdura::systems::novad {

Task<> FileSystem::begin(Thread& thread) {
  thread_ = &thread;
  Link link(thread, parameters_.server, 0, purpose_);
  if (!co_await link.connected()) {
    throw PlatformError(
        fmt::format("cannot connect to the server of '{}' on node {}", name_, parameters_.server));
  }
  mount_ = link.welcome().mount;
}

void FileSystem::add_hold(fs::InodeNumber inode, const FileState& file) {
  const std::lock_guard guard(lock_);
  HeldFile& held = held_[inode];
  ++held.holds;
  held.file = file;
}

void FileSystem::remove_holds(fs::InodeNumber inode, std::uint64_t count) {
  const std::lock_guard guard(lock_);
  const auto found = held_.find(inode);
  if (found == held_.end()) return;
  found->second.holds -= std::min(found->second.holds, count);
  if (found->second.holds == 0) held_.erase(found);
}

void FileSystem::note_file(fs::InodeNumber inode, const FileState& file) {
  const std::lock_guard guard(lock_);
  const auto found = held_.find(inode);
  if (found != held_.end()) found->second.file = file;
}

void FileSystem::forget_file(fs::InodeNumber inode, std::uint32_t filekey) {
  const std::lock_guard guard(lock_);
  const auto found = held_.find(inode);
  if (found != held_.end() && found->second.file.filekey == filekey) found->second.file = {};
}

FileState FileSystem::file(fs::InodeNumber inode) {
  const std::lock_guard guard(lock_);
  const auto found = held_.find(inode);
  return found == held_.end() ? FileState{} : found->second.file;
}

std::unique_ptr<fs::Session> FileSystem::attach(Thread& thread) {
  return std::make_unique<Session>(shared_from_this(), thread);
}

Task<> FileSystem::unmount() {
  Link link(*thread_, parameters_.server, 0);
  co_await link.call(Request::leave, mount_, {});
}

}  // namespace perdura::systems::novad
