#include "systems/orion/protocol/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "platform/base/error.h"
#include "systems/orion/protocol/layout.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::orion {

namespace {

// Returns the number of replication groups.
std::uint32_t check_servers(const fs::FsConfig& config) {
  std::set<NodeId> nodes;
  std::set<std::uint32_t> groups;
  std::size_t metadata = 0;
  for (const fs::FsServerNode& server : config.servers) {
    if (!nodes.insert(server.node).second) {
      throw UsageError(
          fmt::format("orion: node {} has two roles; give each a node of its own", server.node));
    }
    switch (server.role) {
      case fs::FsRole::metadata:
        ++metadata;
        break;
      case fs::FsRole::mirror:
        throw UsageError("orion: it has no mirror of the metadata server yet; leave it out");
      case fs::FsRole::store:
        groups.insert(server.group);
        break;
    }
  }
  if (metadata != 1) {
    throw UsageError(fmt::format("orion: needs one metadata server, and has {}", metadata));
  }
  if (groups.empty()) throw UsageError("orion: needs at least one data store");
  if (groups.size() > kMostGroups || *groups.rbegin() != groups.size() - 1) {
    throw UsageError(
        fmt::format("orion: replication groups are numbered from 0, at most {}", kMostGroups - 1));
  }
  return static_cast<std::uint32_t>(groups.size());
}

}  // namespace

Parameters Parameters::of(const fs::FsConfig& config) {
  const ParameterReader given("orion", kParameters, config.parameters);
  Parameters result;
  result.groups = check_servers(config);
  given.require_within("size", config.size, 64 * KiB, Bytes{1} << 44);
  result.pages = config.size / kPage;
  result.metadata =
      given.number<Bytes>("metadata", std::max<Bytes>(256 * KiB, config.size * result.groups / 4),
                          128 * KiB, Bytes{1} << 45);
  const std::uint64_t most_inodes = result.metadata / 2 / sizeof(nova::InodeRecord);
  const std::uint64_t by_data =
      std::max<std::uint64_t>(16, config.size * result.groups / (16 * KiB));
  result.inodes =
      given.number<std::uint64_t>("inodes", std::min(by_data, most_inodes), 16, most_inodes);
  result.log_page_bytes = given.number<Bytes>("log_page_bytes") / kCacheLine * kCacheLine;
  result.gc_pages = given.number<std::uint64_t>("gc_pages");
  result.cached_inodes = given.number<std::uint64_t>("cached_inodes");
  result.chunk_pages = given.number<std::uint64_t>("chunk_pages");
  result.sessions = given.number<std::uint32_t>("sessions");
  result.session_buffers = given.number<Bytes>("session_buffers") / kMessageRoom * kMessageRoom;
  result.network_threads = given.number<std::uint32_t>("network_threads");
  result.fs_threads = given.number<std::uint32_t>("fs_threads");
  given.require_within("threads", result.network_threads + result.fs_threads, 1, nova::kJournals);
  result.completion =
      given.text("completion") == "polling" ? CompletionMode::polling : CompletionMode::event;
  result.speculates = given.text("commit") == "speculative";
  result.strong = given.text("data") == "strong";
  result.free_delay = Microseconds(given.number<std::uint64_t>("free_delay_us"));
  result.cached_pages = given.number<std::uint64_t>("cached_pages");
  result.cached_log_pages = given.number<std::uint64_t>("cached_log_pages");
  return result;
}

nova::Parameters Parameters::of_volume() const {
  nova::Parameters volume;
  volume.inodes = inodes;
  volume.log_page_bytes = log_page_bytes;
  volume.gc_pages = gc_pages;
  volume.cached_inodes = cached_inodes;
  volume.free_delay = free_delay;
  return volume;
}

}  // namespace perdura::systems::orion
