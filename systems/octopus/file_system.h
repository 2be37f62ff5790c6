// A mount of Octopus on a client's node; shared by the node's threads.
#pragma once

#include <memory>
#include <string>

#include "services/fs/fs.h"
#include "systems/octopus/client.h"
#include "systems/octopus/parameters.h"

namespace perdura::systems::octopus {

class FileSystem final : public fs::FileSystem {
 public:
  explicit FileSystem(const Parameters& parameters) : parameters_(parameters) {}

  const Parameters& parameters() const { return parameters_; }
  std::unique_ptr<Client> connect(Thread& thread) const {
    return std::make_unique<Client>(thread, parameters_);
  }

  // Throws UsageError: there are no inodes. Use connect().
  std::unique_ptr<fs::Session> attach(Thread& thread) override;
  Task<> unmount() override { co_return; }
  // The server has all that could contradict itself.
  Task<std::string> audit() override { co_return std::string(); }

 private:
  Parameters parameters_;
};

}  // namespace perdura::systems::octopus
