#include "systems/orion/orion.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "systems/orion/client/file_system.h"
#include "systems/orion/mds/inspect.h"
#include "systems/orion/mds/mds.h"
#include "systems/orion/mds/pair.h"
#include "systems/orion/protocol/counted.h"
#include "systems/orion/store/store.h"

namespace perdura::systems {

namespace {

using orion::Parameters;

// Log pages and chunks of few entries and pages, so that both are used up, and a delay that some
// reads exceed.
constexpr std::array kSmall{
    services::Setting{"metadata", 512 * KiB},
    services::Setting{"inodes", 32},
    services::Setting{"log_page_bytes", nova::kSmallestLogPage},
    services::Setting{"gc_pages", 2},
    services::Setting{"cached_inodes", 4},
    services::Setting{"chunk_pages", 4},
    services::Setting{"sessions", 8},
    services::Setting{"mirror_slots", 48},
    services::Setting{"mirror_timeout_us", 2000},
    services::Setting{"takeover_after_us", 200},
    services::Setting{"session_buffers", 32 * KiB},
    services::Setting{"cached_pages", 8},
    services::Setting{"cached_log_pages", 24},
    services::Setting{"free_delay_us", 200},
    services::Setting{"journal_records", 64},
    services::Setting{"store_patience_us", 300},
    // Histories know of no holds that outlive a failure of the MDS.
    services::Setting{"mds_patience_us", 0},
};

// The modes of the paper. They promise nothing of an operation that is complete in their sense, so
// their level is that of a store that keeps nothing.
constexpr std::array kChangesGuarantee{
    services::Setting{.name = "commit", .value = "speculative", .keeps_nothing = true},
    services::Setting{.name = "data", .value = "weak", .keeps_nothing = true},
};

constexpr fs::FsServerNode kSmallServers[] = {{0, fs::FsRole::metadata, 0},
                                              {1, fs::FsRole::store, 0}};

constexpr fs::FsServerNode kSmallWithMirror[] = {
    {0, fs::FsRole::metadata, 0}, {1, fs::FsRole::mirror, 0}, {2, fs::FsRole::store, 0}};

const fs::FsServerNode& part_of(const fs::FsConfig& config, NodeId node) {
  for (const fs::FsServerNode& server : config.servers) {
    if (server.node == node) return server;
  }
  throw UsageError(fmt::format("orion: node {} has no part of the file system", node));
}

Task<> make(Thread& thread, std::string name, fs::FsConfig config) {
  const Parameters parameters = Parameters::of(config);
  const fs::FsServerNode& part = part_of(config, thread.node.id());
  if (part.role == fs::FsRole::store) {
    orion::make_store(thread.node, name, parameters, part.group);
  } else {
    thread.node.create_region(
        orion::buffers_region(name),
        Bytes{parameters.network_threads} * parameters.sessions * parameters.session_buffers,
        pmem::Medium::pm);
    // With a mirror the MDS makes the file system when both serve, so that both have the same.
    if (parameters.mirror) {
      orion::PairMember::make(thread.node, name);
    } else {
      orion::make_metadata(thread.node, name, config, parameters);
    }
  }
  co_return;
}

Task<std::shared_ptr<fs::FsServer>> open(Thread& thread, std::string name, fs::FsConfig config) {
  const Parameters parameters = Parameters::of(config);
  const fs::FsServerNode& part = part_of(config, thread.node.id());
  if (part.role == fs::FsRole::store) {
    co_return std::make_shared<orion::Store>(thread, std::move(name), parameters, parameters.mds,
                                             part.group);
  }
  if (parameters.mirror) {
    co_return std::make_shared<orion::PairMember>(thread, std::move(name), config, parameters);
  }
  co_return co_await orion::Mds::open(thread, std::move(name), parameters);
}

Task<std::shared_ptr<fs::FileSystem>> mount(Thread& thread, std::string name, fs::FsConfig config) {
  const Parameters parameters = Parameters::of(config);
  auto files = std::make_shared<orion::FileSystem>(thread.node, std::move(name), std::move(config),
                                                   parameters);
  co_await files->probe(thread);
  co_return files;
}

const fs::FsCluster kCluster{
    .small = kSmallServers,
    .small_with_mirror = kSmallWithMirror,
    .server_metrics = orion::kServerMetrics,
    .update = methods::UpdateNeeds{.size = orion::kPage, .carrier = methods::Carrier::write},
    .mirror_update = methods::UpdateNeeds{.carrier = methods::Carrier::send},
    .workers =
        [](const fs::FsConfig& config, NodeId node) {
          const bool is_store = part_of(config, node).role == fs::FsRole::store;
          return is_store ? 1 : Parameters::of(config).mds_threads();
        },
    .open = open,
};

}  // namespace

const fs::FsSystem kOrion{
    .info = {.name = "orion",
             .title = "Orion",
             .paper = "Building Distributed Systems with Non-Volatile Main Memories and RDMA "
                      "Networks, Yang, 2019; chapter 4",
             .guarantee = "what an operation has done is durable, writes included",
             .level = services::GuaranteeLevel::durable,
             .changes_guarantee = kChangesGuarantee,
             .parameters = orion::kParameters,
             .chooses_method = true},
    .promises = {.durable_writes = true, .atomic_writes = true},
    .small = kSmall,
    .events = orion::kEvents,
    .session_metrics = orion::kSessionMetrics,
    .cluster = &kCluster,
    .check = [](const fs::FsConfig& config) { Parameters::of(config); },
    .make = make,
    .mount = mount,
    .inspect = [](Thread& thread, std::string name, bool repair) -> Task<std::vector<fs::Damage>> {
      co_return orion::inspect_metadata(thread.node, name, repair);
    },
    .dump = [](Thread& thread, std::string name, std::optional<fs::InodeNumber> inode)
        -> Task<std::string> { co_return orion::dump_metadata(thread.node, name, inode); },
};

}  // namespace perdura::systems
