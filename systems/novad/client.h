// A client's mount, which its threads share.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "services/fs/fs.h"
#include "systems/novad/link.h"
#include "systems/novad/parameters.h"

namespace perdura::systems::novad {

class FileSystem : public fs::FileSystem, public std::enable_shared_from_this<FileSystem> {
 public:
  FileSystem(std::string name, const Parameters& parameters, Purpose purpose = Purpose::requests)
      : name_(std::move(name)), parameters_(parameters), purpose_(purpose) {}

  // Gets a number for the mount. Throws PlatformError if the server cannot be reached.
  Task<> begin(Thread& thread);

  NodeId server() const { return parameters_.server; }
  std::uint64_t mount() const { return mount_; }

  // The files that the mount holds, as far as it knows them. note_file() takes what the server has
  // just said; forget_file() is for a filekey that was refused.
  void add_hold(fs::InodeNumber inode, const FileState& file);
  void remove_holds(fs::InodeNumber inode, std::uint64_t count);
  void note_file(fs::InodeNumber inode, const FileState& file);
  void forget_file(fs::InodeNumber inode, std::uint32_t filekey);
  FileState file(fs::InodeNumber inode);

  // The number of sessions that there are.
  void session_begins() { ++sessions_; }
  void session_ends() { --sessions_; }
  int sessions() const { return sessions_; }

  std::unique_ptr<fs::Session> attach(Thread& thread) override;
  // Returns when the server has noticed that the sessions are gone.
  Task<> unmount() override;
  // The server has all that could contradict itself.
  Task<std::string> audit() override { co_return std::string(); }

 private:
  struct HeldFile {
    std::uint64_t holds = 0;
    FileState file{};
  };

  std::string name_;
  Parameters parameters_;
  Purpose purpose_;
  std::uint64_t mount_ = 0;
  Thread* thread_ = nullptr;  // that mounted, and unmounts
  std::atomic<int> sessions_{0};
  SpinLock lock_;
  std::map<fs::InodeNumber, HeldFile> held_;
};

}  // namespace perdura::systems::novad
