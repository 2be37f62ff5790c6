#include "systems/novad/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "systems/nova/layout.h"
#include "systems/nova/nova.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::novad {

Parameters Parameters::of(const fs::FsConfig& config) {
  const ParameterReader given("novad", kParameters, config.parameters);
  Parameters result;
  result.sessions = given.number<std::uint32_t>("sessions");
  result.writes_in_place = given.text("writes") == "in-place";
  if (config.servers.size() != 1 || config.servers[0].role != fs::FsRole::metadata) {
    throw UsageError("novad: has one server, which has the metadata and the data");
  }
  result.server = config.servers[0].node;
  if (config.threads > result.sessions) {
    throw UsageError(fmt::format("novad: {} threads are more than its {} sessions; raise sessions",
                                 config.threads, result.sessions));
  }
  result.volume = config;
  // The server's, and those of programs of its node.
  result.volume.threads = 1 + std::min(config.threads, nova::kJournals - 1);
  result.volume.servers.clear();
  for (const Parameter& own : kOwnParameters) {
    result.volume.parameters.erase(std::string(own.name));
  }
  kNova.check(result.volume);
  return result;
}

}  // namespace perdura::systems::novad
