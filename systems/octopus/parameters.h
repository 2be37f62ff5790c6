// The parameters of an experiment's `[systems.octopus]`.
#pragma once

#include <array>
#include <cstdint>

#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "services/fs/fs.h"
#include "systems/octopus/messages.h"

namespace perdura::systems::octopus {

inline constexpr std::array kParameters = std::to_array<Parameter>({
    {.name = "extent_bytes",
     .type = Count{kCacheLine, Bytes{1} << 30},
     .usual = 64 * KiB,
     .unit = "bytes",
     .what = "that each file has, whatever its size; a multiple of 64"},
    {.name = "directory_entries",
     .type = Count{1, 1 << 16},
     .usual = 60,
     .what = "that each directory has room for, the root included"},
    {.name = "clients",
     .type = Count{1, kMostClients},
     .usual = 64,
     .what = "for which the server has message slots"},
    {.name = "slots",
     .type = Count{1, kMostSlots},
     .usual = 8,
     .what = "of each client in the message pool, each for a request under way"},
});

struct Parameters {
  Bytes size = 0;
  Bytes extent_bytes = 0;
  std::uint32_t directory_entries = 0;
  std::uint32_t clients = 0;
  std::uint32_t slots = 0;
  NodeId server = 0;

  // Throws UsageError if the configuration has unknown parameters or impossible values or servers.
  static Parameters of(const fs::FsConfig& config);
};

}  // namespace perdura::systems::octopus
