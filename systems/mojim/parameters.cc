#include "systems/mojim/parameters.h"

#include "systems/parameter_reader.h"

namespace perdura::systems::mojim {

Parameters Parameters::of(const services::MemoryConfig& config, const Mode& mode) {
  const ParameterReader given(mode.name, kParameters, config.parameters);
  given.require_within("size", config.size, kCacheLine, Bytes{1} << 46);
  given.require_within("threads", config.threads, 1, 1024);
  for (const NodeId node : config.nodes) given.require_within("nodes", node, 0, kMostNodes - 1);
  Parameters result;
  result.connections = given.number<std::uint32_t>("connections");
  result.log_slots = given.number<std::uint32_t>("log_slots");
  result.slot_bytes = given.number<std::uint32_t>("slot_bytes");
  result.checkpoint_thresh = given.number<std::uint64_t>("checkpoint_thresh");
  result.secondary_tier_thresh = given.number<std::uint64_t>("secondary_tier_thresh") * KiB;
  result.resends = given.number<std::uint32_t>("resends");
  result.timeout = Microseconds(given.number<std::uint32_t>("timeout_us"));
  return result;
}

}  // namespace perdura::systems::mojim
