// The parameters of an experiment's `[systems.novad]`: those of nova, for the server's volume, and
// these.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "platform/base/parameter.h"
#include "services/fs/fs.h"
#include "systems/nova/parameters.h"

namespace perdura::systems::novad {

inline constexpr std::uint32_t kMostSessions = 1 << 12;

inline constexpr std::array<std::string_view, 2> kWriteModes{"atomic", "in-place"};

inline constexpr std::array kOwnParameters = std::to_array<Parameter>({
    {.name = "sessions",
     .type = Count{1, kMostSessions},
     .usual = 64,
     .what = "of clients, for whose requests the server has receive buffers"},
    {.name = "writes",
     .type = OneOf{kWriteModes},
     .usual = "atomic",
     .what =
         "how a file that is held is written: by requests, atomically and durably, or by WRITEs "
         "in place, which are durable after a sync"},
});

// Both tables together.
inline constexpr auto kParameters = [] {
  std::array<Parameter, nova::kParameters.size() + kOwnParameters.size()> all{};
  std::size_t count = 0;
  for (const Parameter& each : nova::kParameters) all[count++] = each;
  for (const Parameter& each : kOwnParameters) all[count++] = each;
  return all;
}();

struct Parameters {
  std::uint32_t sessions = 0;
  bool writes_in_place = false;
  NodeId server = 0;
  // The configuration of the volume in the server's persistent memory, which is a file system of
  // nova.
  fs::FsConfig volume{};

  // Throws UsageError if the configuration has unknown parameters or impossible values or servers.
  static Parameters of(const fs::FsConfig& config);
};

}  // namespace perdura::systems::novad
