#include "systems/octopus/parameters.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "systems/octopus/table.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::octopus {

Parameters Parameters::of(const fs::FsConfig& config) {
  const ParameterReader given("octopus", kParameters, config.parameters);
  Parameters result;
  result.size = config.size;
  result.extent_bytes = given.number<Bytes>("extent_bytes");
  result.directory_entries = given.number<std::uint32_t>("directory_entries");
  result.clients = given.number<std::uint32_t>("clients");
  result.slots = given.number<std::uint32_t>("slots");
  if (result.extent_bytes % kCacheLine != 0) {
    throw ParameterError("extent_bytes",
                         fmt::format("octopus: extent_bytes must be a multiple of {}, not {}",
                                     kCacheLine, result.extent_bytes));
  }
  if (config.servers.size() != 1 || config.servers[0].role != fs::FsRole::metadata) {
    throw UsageError("octopus: has one server, which has the metadata and the data");
  }
  result.server = config.servers[0].node;
  if (config.threads > result.clients) {
    throw UsageError(fmt::format("octopus: {} threads are more than its {} clients; raise clients",
                                 config.threads, result.clients));
  }
  if (TableGeometry(result).records < 2) {
    throw UsageError(fmt::format(
        "octopus: {} bytes have no room for a file of {}; raise the size, or lower extent_bytes",
        result.size, result.extent_bytes));
  }
  return result;
}

}  // namespace perdura::systems::octopus
