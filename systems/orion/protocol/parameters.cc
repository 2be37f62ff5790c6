#include "systems/orion/protocol/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "platform/base/error.h"
#include "systems/orion/protocol/layout.h"
#include "systems/parameter_reader.h"

namespace perdura::systems::orion {

namespace {

// Finds the servers in the configuration.
void note_servers(const fs::FsConfig& config, Parameters& result) {
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
        result.mds = server.node;
        break;
      case fs::FsRole::mirror:
        if (result.mirror) {
          throw UsageError("orion: the metadata server can have one mirror, and has more");
        }
        result.mirror = server.node;
        break;
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
  const auto is_store = [](const fs::FsServerNode& server) {
    return server.role == fs::FsRole::store;
  };
  const auto stores = std::count_if(config.servers.begin(), config.servers.end(), is_store);
  if (stores > kMostStores) {
    throw UsageError(fmt::format("orion: at most {} data stores, not {}", kMostStores, stores));
  }
  for (const fs::FsServerNode& server : config.servers) {
    if (is_store(server)) result.stores.push_back({server.node, server.group});
  }
  result.groups = static_cast<std::uint32_t>(groups.size());
}

void read_mirror(const ParameterReader& given, const fs::FsConfig& config, Parameters& result) {
  result.mirror_slots = given.number<std::uint64_t>("mirror_slots");
  result.mirror_timeout_us = given.number<std::uint64_t>("mirror_timeout_us");
  result.takeover_after = Microseconds(given.number<std::uint64_t>("takeover_after_us"));
  result.goes_on_alone = given.text("without_mirror") == "go-on";
  result.mirror_method = config.mirror_method;
  const std::uint64_t found = result.mirror ? 1 : 0;
  const auto mirrors = given.number<std::uint64_t>("mirrors", found, 0, 1);
  if (mirrors != found) {
    throw UsageError(
        fmt::format("orion: mirrors is {}, but {} of the nodes {} that role; leave it out", mirrors,
                    found, found == 1 ? "has" : "have"));
  }
  if (result.mirror && result.network_threads > 1) {
    throw UsageError(
        "orion: a metadata server with a mirror has one network thread; set "
        "network_threads to 1");
  }
}

}  // namespace

Parameters Parameters::of(const fs::FsConfig& config) {
  const ParameterReader given("orion", kParameters, config.parameters);
  Parameters result;
  note_servers(config, result);
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
  result.updates_by_rpc = given.text("updates") == "rpcs";
  result.free_delay = Microseconds(given.number<std::uint64_t>("free_delay_us"));
  read_mirror(given, config, result);
  result.journal_records = given.number<std::uint64_t>("journal_records");
  result.store_patience = Microseconds(given.number<std::uint64_t>("store_patience_us"));
  result.store_timeout = Microseconds(given.number<std::uint64_t>("store_timeout_us"));
  result.client_patience = Microseconds(given.number<std::uint64_t>("client_patience_us"));
  result.mds_patience = Microseconds(given.number<std::uint64_t>("mds_patience_us"));
  result.reservation = Microseconds(given.number<std::uint64_t>("reservation_us"));
  result.cached_pages = given.number<std::uint64_t>("cached_pages");
  result.cached_log_pages = given.number<std::uint64_t>("cached_log_pages");
  return result;
}

StoreSet Parameters::group_members(std::uint32_t group) const {
  StoreSet members = 0;
  for (std::uint32_t store = 0; store < stores.size(); ++store) {
    if (stores[store].group == group) members |= set_of(store);
  }
  return members;
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
