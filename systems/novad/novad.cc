#include "systems/novad/novad.h"

#include "systems/nova/nova.h"
#include "systems/nova/small.h"
#include "systems/novad/client.h"
#include "systems/novad/counted.h"
#include "systems/novad/local.h"
#include "systems/novad/parameters.h"
#include "systems/novad/server.h"

namespace perdura::systems {

using novad::Parameters;

namespace {

constexpr fs::FsServerNode kOneServer[] = {{0, fs::FsRole::metadata, 0}};

Task<> make(Thread& thread, std::string name, fs::FsConfig config) {
  co_await kNova.make(thread, std::move(name), Parameters::of(config).volume);
}

Task<std::shared_ptr<fs::FsServer>> open(Thread& thread, std::string name, fs::FsConfig config) {
  const Parameters parameters = Parameters::of(config);
  const auto volume = co_await kNova.mount(thread, name, parameters.volume);
  auto server = std::make_shared<novad::Server>(thread, name, parameters,
                                                std::static_pointer_cast<nova::FileSystem>(volume));
  novad::note_server(thread.node, name, server);
  co_return server;
}

Task<std::shared_ptr<fs::FileSystem>> mount(Thread& thread, std::string name, fs::FsConfig config) {
  const Parameters parameters = Parameters::of(config);
  std::shared_ptr<novad::FileSystem> files;
  if (auto server = novad::server_of(thread.node, name)) {
    files =
        std::make_shared<novad::LocalFileSystem>(std::move(name), parameters, std::move(server));
  } else {
    files = std::make_shared<novad::FileSystem>(std::move(name), parameters);
  }
  co_await files->begin(thread);
  co_return files;
}

const fs::FsCluster kServerOfNovad{
    .small = kOneServer,
    .server_metrics = novad::kServerMetrics,
    .workers = [](const fs::FsConfig&, NodeId) { return std::uint32_t{1}; },
    .open = open,
};

// In place nothing is promised about a write before a sync, nor that it is atomic.
constexpr std::array kChangesGuarantee{
    services::Setting{.name = "writes", .value = "in-place", .keeps_nothing = true},
};

}  // namespace

const fs::FsSystem kNovad{
    .info = {.name = "novad",
             .title = "novad",
             .paper = "Building Distributed Systems with Non-Volatile Main Memories and RDMA "
                      "Networks, Yang, 2019; section 5.3.1",
             .guarantee = "what an operation has done is durable, writes included",
             .level = services::GuaranteeLevel::durable,
             .changes_guarantee = kChangesGuarantee,
             .parameters = novad::kParameters},
    .promises = {.durable_writes = true, .atomic_writes = true},
    .small = nova::kSmall,
    .events = novad::kEvents,
    .session_metrics = novad::kSessionMetrics,
    .cluster = &kServerOfNovad,
    .check = [](const fs::FsConfig& config) { Parameters::of(config); },
    .make = make,
    .mount = mount,
    .inspect = [](Thread& thread, std::string name, bool repair) -> Task<std::vector<fs::Damage>> {
      return kNova.inspect(thread, std::move(name), repair);
    },
    .dump = [](Thread& thread, std::string name, std::optional<fs::InodeNumber> inode)
        -> Task<std::string> { return kNova.dump(thread, std::move(name), inode); },
};

}  // namespace perdura::systems
