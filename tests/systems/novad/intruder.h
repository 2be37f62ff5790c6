// A client without a mount, as a program would make it that has found a filekey.
#pragma once

#include <utility>
#include <vector>

#include "systems/novad/file_access.h"
#include "tests/systems/novad/support.h"

namespace perdura::systems::novad::test {

inline constexpr std::uint32_t kMayReadAndWrite = fs::kMayRead | fs::kMayWrite;

// A connection for requests, and one for READs, without a mount.
class Intruder {
 public:
  explicit Intruder(Thread& thread) : link_(thread, kServer, 0), access_(thread, kServer) {}

  Task<bool> connect() { return link_.connected(); }
  std::uint64_t life() const { return link_.welcome().server; }
  // The state that the server tells of an inode that is held.
  Task<FileState> hold(fs::InodeNumber inode) { return open(inode, {}, kMayReadAndWrite); }
  // The same in the name of a user. The server refuses it if its state has no filekey.
  Task<FileState> open(fs::InodeNumber inode, fs::Credentials who, std::uint32_t wanted) {
    Encoder arguments;
    Opening{.who = std::move(who), .wanted = wanted}.add_to(arguments);
    return state_after(Request::hold, inode, std::move(arguments));
  }
  // The same for one that may not be.
  Task<FileState> look_at(fs::InodeNumber inode) {
    return state_after(Request::attributes, inode, {});
  }
  Task<> release(fs::InodeNumber inode) {
    Encoder one;
    one.add(std::uint64_t{1});
    co_await link_.call(Request::release, static_cast<std::uint64_t>(inode), one.bytes());
  }
  Task<bool> can_read(std::uint32_t filekey, Bytes offset, std::size_t size) {
    return can_read(life(), filekey, offset, size);
  }
  Task<bool> can_read(std::uint64_t life, std::uint32_t filekey, Bytes offset, std::size_t size) {
    into_.resize(size);
    return access_.read(life, filekey, offset, into_);
  }

  Task<bool> can_write(std::uint32_t filekey) {
    into_.assign(3, std::byte{'x'});
    return access_.write(life(), fs::InodeNumber{}, filekey, 0, into_);
  }

 private:
  Task<FileState> state_after(Request request, fs::InodeNumber inode, Encoder arguments) {
    const auto answer =
        co_await link_.call(request, static_cast<std::uint64_t>(inode), arguments.bytes());
    co_return answer ? answer->file : FileState{};
  }

  Link link_;
  FileAccess access_;
  std::vector<std::byte> into_;
};

}  // namespace perdura::systems::novad::test
