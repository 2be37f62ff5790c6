#include "systems/orion/orion.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "systems/nova/inspect.h"
#include "systems/orion/client/file_system.h"
#include "systems/orion/mds/mds.h"
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
    services::Setting{"session_buffers", 32 * KiB},
    services::Setting{"cached_pages", 8},
    services::Setting{"cached_log_pages", 24},
    services::Setting{"free_delay_us", 200},
};

constexpr fs::FsServerNode kSmallServers[] = {{0, fs::FsRole::metadata, 0},
                                              {1, fs::FsRole::store, 0}};

const fs::FsServerNode& part_of(const fs::FsConfig& config, NodeId node) {
  for (const fs::FsServerNode& server : config.servers) {
    if (server.node == node) return server;
  }
  throw UsageError(fmt::format("orion: node {} has no part of the file system", node));
}

NodeId mds_of(const fs::FsConfig& config) {
  for (const fs::FsServerNode& server : config.servers) {
    if (server.role == fs::FsRole::metadata) return server.node;
  }
  return 0;  // Parameters::of() has checked that there is one
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
    orion::make_metadata(thread.node, name, config, parameters);
  }
  co_return;
}

Task<std::shared_ptr<fs::FsServer>> open(Thread& thread, std::string name, fs::FsConfig config) {
  const Parameters parameters = Parameters::of(config);
  const fs::FsServerNode& part = part_of(config, thread.node.id());
  if (part.role == fs::FsRole::store) {
    co_return std::make_shared<orion::Store>(thread, std::move(name), parameters, mds_of(config),
                                             part.group);
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
    .server_metrics = orion::kServerMetrics,
    .update = methods::UpdateNeeds{.size = orion::kPage, .carrier = methods::Carrier::write},
    .workers =
        [](const fs::FsConfig& config, NodeId node) {
          const bool is_mds = part_of(config, node).role == fs::FsRole::metadata;
          return is_mds ? Parameters::of(config).network_threads : 1;
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
    .inspect = [](Thread&, std::string, bool) -> Task<std::vector<fs::Damage>> {
      throw UsageError("orion: fs check is not implemented for it");
      co_return std::vector<fs::Damage>();
    },
    .dump = [](Thread&, std::string, std::optional<fs::InodeNumber>) -> Task<std::string> {
      throw UsageError("orion: fs dump is not implemented for it");
      co_return std::string();
    },
};

}  // namespace perdura::systems
