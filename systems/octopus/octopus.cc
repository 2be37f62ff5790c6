#include "systems/octopus/octopus.h"

#include "platform/base/error.h"
#include "systems/octopus/file_system.h"
#include "systems/octopus/server.h"
#include "systems/octopus/table.h"

namespace perdura::systems {

using octopus::Parameters;

std::unique_ptr<fs::Session> octopus::FileSystem::attach(Thread&) {
  throw UsageError("octopus: has no inodes; use it by paths");
}

namespace {

constexpr fs::FsServerNode kOneServer[] = {{0, fs::FsRole::metadata, 0}};

constexpr std::uint64_t kSecond = 1'000'000'000;

Task<> make_octopus(Thread& thread, std::string name, fs::FsConfig config) {
  const std::uint64_t now =
      static_cast<std::uint64_t>(config.now.seconds) * kSecond + config.now.nanoseconds;
  octopus::Table::make(thread.node, name, Parameters::of(config), now);
  co_return;
}

Task<std::shared_ptr<fs::FsServer>> open_octopus(Thread& thread, std::string name,
                                                 fs::FsConfig config) {
  co_return std::make_shared<octopus::Server>(thread, name, Parameters::of(config));
}

Task<std::shared_ptr<fs::FileSystem>> mount_octopus(Thread&, std::string, fs::FsConfig config) {
  co_return std::make_shared<octopus::FileSystem>(Parameters::of(config));
}

const fs::FsCluster kServerOfOctopus{
    .small = kOneServer,
    .server_metrics = octopus::kServerMetrics,
    .workers = [](const fs::FsConfig&, NodeId) { return std::uint32_t{1}; },
    .open = open_octopus,
};

}  // namespace

const fs::FsSystem kOctopus{
    .info = {.name = "octopus",
             .title = "Octopus-like",
             .paper =
                 "Octopus: an RDMA-enabled Distributed Persistent Memory File System, Lu, Shu, "
                 "Chen, Li, 2017; sections 3.1 to 3.3",
             .guarantee = "names, sizes and times are durable, data only after fsync",
             .level = services::GuaranteeLevel::visible,
             .parameters = octopus::kParameters,
             .needs = octopus::kDeviceNeeds},
    .promises = {.durable_writes = false, .atomic_writes = false},
    .session_metrics = octopus::kClientMetrics,
    .cluster = &kServerOfOctopus,
    .check = [](const fs::FsConfig& config) { Parameters::of(config); },
    .make = make_octopus,
    .mount = mount_octopus,
};

}  // namespace perdura::systems
