// Who starts the process of a pool's active data objects when it is first needed (MCAS, section
// 4.2: "launched on-demand"). How it is started and isolated is the platform's affair
// (platform/child_process.h); program/program.h makes a launcher.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::ado {

struct LaunchOrder {
  std::string pool{};                  // its number in the shard's catalog
  std::string memory{};                // the name of the shard's memory
  std::vector<Place> parts{};          // of it, those of the pool: the process sees no others
  std::vector<std::string> plugins{};  // as in plugins/plugins.h
};

// A process that has been started, and whose plugins have been opened.
class Launched {
 public:
  virtual ~Launched() = default;
  // For Host::attach().
  virtual std::shared_ptr<PeerProcess> process() const = 0;
  // It executes nothing more when this returns, which says how it has ended. May be called again.
  virtual std::string end() = 0;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // Throws PlatformError: why it cannot be started.
  virtual Task<std::unique_ptr<Launched>> launch(LaunchOrder order) = 0;
};

}  // namespace perdura::systems::mcas::ado
