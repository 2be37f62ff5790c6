// A client's mount, which its threads share, and the session of one of them. Every operation is a
// request to the server.
#pragma once

#include <memory>
#include <string>

#include "services/fs/fs.h"
#include "systems/novad/link.h"
#include "systems/novad/parameters.h"

namespace perdura::systems::novad {

class FileSystem final : public fs::FileSystem, public std::enable_shared_from_this<FileSystem> {
 public:
  FileSystem(std::string name, const Parameters& parameters)
      : name_(std::move(name)), parameters_(parameters) {}

  // Gets a number for the mount. Throws PlatformError if the server cannot be reached.
  Task<> begin(Thread& thread);

  NodeId server() const { return parameters_.server; }
  std::uint64_t mount() const { return mount_; }

  std::unique_ptr<fs::Session> attach(Thread& thread) override;
  // Returns when the server has noticed that the sessions are gone.
  Task<> unmount() override;
  // The server has all that could contradict itself.
  Task<std::string> audit() override { co_return std::string(); }

 private:
  std::string name_;
  Parameters parameters_;
  std::uint64_t mount_ = 0;
  Thread* thread_ = nullptr;  // that mounted, and unmounts
};

}  // namespace perdura::systems::novad
