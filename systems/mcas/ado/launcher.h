// Starts the process of a pool's active data objects when it is first needed (MCAS, section 4.2:
// "launched on-demand"). How the process is started and isolated is up to the platform
// (platform/child_process.h); program/program.h makes a launcher.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::ado {

struct LaunchOrder {
  std::string pool{};                  // the pool's number in the shard's catalog
  std::string memory{};                // the name of the shard's memory
  std::vector<ByteRange> parts{};      // the pool's parts of it; the process sees no others
  std::vector<std::string> plugins{};  // names and arguments, as in plugins/plugins.h
};

// A process that has been started, and whose plugins have been opened.
class Launched {
 public:
  virtual ~Launched() = default;
  // For Host::attach().
  virtual std::shared_ptr<PeerProcess> process() const = 0;
  // Ends the process, and returns how it has ended. It executes nothing anymore when this returns.
  // May be called again.
  virtual std::string end() = 0;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // Throws PlatformError, with the reason, if the process cannot be started.
  virtual Task<std::unique_ptr<Launched>> launch(LaunchOrder order) = 0;
};

}  // namespace perdura::systems::mcas::ado
