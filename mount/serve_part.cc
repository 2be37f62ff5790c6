// Making and serving the parts of a file system over a cluster.
#include <atomic>

#include "mount/cluster_config.h"
#include "mount/ending_signals.h"

namespace perdura::mount {

namespace {

// Interval at which a server's other threads look whether the first one has opened its part.
constexpr Picoseconds kBetweenLooksForPart = Milliseconds(1);

}  // namespace

void make_part(const fs::FsSystem& system, const ClusterConfig& cluster,
               const ConfiguredServer& server, const fs::FsConfig& config) {
  const auto platform = cluster.platform_of_memory(server);
  platform->start(server.part.node, 0, CompletionMode::event,
                  [&](Thread& thread) { return system.make(thread, cluster.name(), config); });
  platform->run();
}

void serve_part(const fs::FsSystem& system, const ClusterConfig& cluster,
                const ConfiguredServer& server, const std::function<void()>& serves) {
  const BlockedSignals blocked;
  const NodeId node = server.part.node;
  const std::uint32_t workers = system.cluster->workers(cluster.config(), node);
  const auto platform = cluster.platform(server, workers);
  std::shared_ptr<fs::FsServer> part;
  std::atomic<bool> opened{false};
  std::vector<std::shared_ptr<StartedThread>> threads;
  for (std::uint32_t port = 0; port < workers; ++port) {
    const auto body = [&](Thread& thread) -> Task<> {
      if (thread.endpoint.address().port == 0) {
        part = co_await system.cluster->open(thread, cluster.name(), cluster.config());
        opened = true;
        serves();
      }
      while (!opened) co_await sleep_for(kBetweenLooksForPart);
      co_await part->serve(thread);
    };
    threads.push_back(
        platform->start(node, static_cast<fabric::Port>(port), CompletionMode::event, body));
  }
  const SignalThread signals([&] {
    for (const auto& thread : threads) thread->stop();
  });
  try {
    platform->run();
  } catch (...) {
    part.reset();  // it uses the platform
    throw;
  }
}

}  // namespace perdura::mount
