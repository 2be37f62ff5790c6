#include "systems/nova/parameters.h"

#include <algorithm>

#include "systems/parameter_reader.h"

namespace perdura::systems::nova {

Parameters Parameters::of(const fs::FsConfig& config) {
  const ParameterReader given("nova", kParameters, config.parameters);
  given.require_within("size", config.size, 128 * KiB, Bytes{1} << 45);
  given.require_within("threads", config.threads, 1, kJournals);
  Parameters result;
  result.inodes =
      given.number<std::uint64_t>("inodes", std::max<std::uint64_t>(16, config.size / (8 * KiB)),
                                  16, config.size / 2 / sizeof(InodeRecord));
  result.log_page_bytes = given.number<Bytes>("log_page_bytes");
  given.require_within("log_page_bytes", result.log_page_bytes, kSmallestLogPage, kBlock);
  result.log_page_bytes = result.log_page_bytes / kCacheLine * kCacheLine;
  result.gc_pages = given.number<std::uint64_t>("gc_pages");
  result.cached_inodes = given.number<std::uint64_t>("cached_inodes");
  return result;
}

}  // namespace perdura::systems::nova
