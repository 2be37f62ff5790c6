#include "bench/connections/connections_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bench/driver/systems.h"
#include "platform/base/error.h"
#include "platform/runtime/sync.h"
#include "services/metric.h"

namespace perdura::bench {

using harness::Point;

namespace {

constexpr std::string_view kPerProcess = "per-process";
constexpr std::string_view kPerServer = "per-server";

constexpr Parameter kParameters[] = {
    {.name = "cluster_size",
     .type = Count{2, 64},
     .usual = 4,
     .identifies = true,
     .noun = "servers of the cluster",
     .title = "Servers",
     .what = "servers, each of which connects to all others"},
    {.name = "processes",
     .type = Count{1, 64},
     .usual = 1,
     .identifies = true,
     .noun = "processes of a server",
     .title = "Processes of a server",
     .what = "processes of each server"},
};

constexpr services::Metric kMetrics[] = {
    {"connections", "connections of the cluster", "Connections of the cluster"},
    {"queue_pairs_per_device", "queue pairs that a device keeps", "Queue pairs of a device"},
};

// Connects all threads of all nodes with those of the other nodes, and counts.
class Cluster {
 public:
  Cluster(Platform& platform, NodeId nodes, std::uint32_t threads)
      : platform_(platform),
        nodes_(nodes),
        threads_(threads),
        connected_(platform.create_barrier(nodes * threads)) {}

  // Returns the number of queue pairs that are connected, of all nodes together.
  std::uint64_t connect_all() {
    for (NodeId node = 0; node < nodes_; ++node) {
      for (std::uint32_t i = 0; i < threads_; ++i) {
        platform_.start(node, static_cast<fabric::Port>(i), CompletionMode::polling,
                        [this](Thread& thread) { return connect(thread); });
      }
    }
    platform_.run();
    return queue_pairs_;
  }

 private:
  struct Process {
    fabric::CompletionQueue completions;
    std::vector<std::unique_ptr<fabric::QueuePair>> queue_pairs;
    WaitList changed;
  };

  static Task<> accept(Thread& thread, Process* process, std::uint64_t expected) {
    for (std::uint64_t i = 0; i < expected; ++i) {
      const auto request = co_await thread.endpoint.next_connection();
      process->queue_pairs.push_back(request->accept({.completions = &process->completions}, {}));
      process->changed.wake_all();
    }
  }

  // The thread connects to those of the nodes after its own, and accepts from those before.
  Task<> connect(Thread& thread) {
    Process process;
    const NodeId here = thread.node.id();
    const std::uint64_t all = std::uint64_t{nodes_ - 1} * threads_;
    thread.executor.spawn(accept(thread, &process, std::uint64_t{here} * threads_));
    for (NodeId node = here + 1; node < nodes_; ++node) {
      for (std::uint32_t port = 0; port < threads_; ++port) {
        fabric::Connection made = co_await thread.endpoint.connect(
            {node, static_cast<fabric::Port>(port)}, {.completions = &process.completions}, {});
        if (made.queue_pair == nullptr) {
          throw PlatformError(
              fmt::format("connecting to node {}: {}", node, to_string(made.status)));
        }
        process.queue_pairs.push_back(std::move(made.queue_pair));
      }
    }
    while (process.queue_pairs.size() < all) co_await wait(process.changed);
    co_await connected_->arrive_and_wait();
    for (const auto& each : process.queue_pairs) queue_pairs_ += each->connected() ? 1 : 0;
    co_await connected_->arrive_and_wait();
  }

  Platform& platform_;
  NodeId nodes_;
  std::uint32_t threads_;
  std::unique_ptr<Platform::Barrier> connected_;
  std::uint64_t queue_pairs_ = 0;
};

}  // namespace

std::span<const Parameter> ConnectionsDriver::parameters() const { return kParameters; }

std::vector<harness::DriverDeclarations::System> ConnectionsDriver::systems() const {
  return {{kPerProcess, {}, "Each process with each"}, {kPerServer, {}, "Each server with each"}};
}

void ConnectionsDriver::check(const Point& point) const {
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(fmt::format("{}: connections are not recorded over time; remove [timeline]",
                                 point.settings.system.where));
  }
  const std::array known{kPerProcess, kPerServer};
  if (std::find(known.begin(), known.end(), point.settings.system.text) == known.end()) {
    throw UsageError(no_such_system(point, known));
  }
}

void ConnectionsDriver::check_platform(std::string_view platform, const std::string& where) const {
  if (platform == "sim") return;
  throw UsageError(fmt::format(
      "{}: driver connections only counts, which needs no machine; use platform sim", where));
}

harness::Roles ConnectionsDriver::roles(const harness::PointSettings& settings, NodeId) const {
  return harness::Roles(
      {{"server", static_cast<NodeId>(settings.number_if_given("cluster_size").value_or(2))}});
}

std::vector<schema::Column> ConnectionsDriver::columns(std::string_view) const {
  std::vector<schema::Column> columns;
  add_columns(kMetrics, columns);
  return columns;
}

harness::Measurement ConnectionsDriver::run(Platform& platform, const Point& point) const {
  const auto nodes = static_cast<NodeId>(point.settings.number("cluster_size"));
  const auto processes = static_cast<std::uint32_t>(point.settings.number("processes"));
  Cluster cluster(platform, nodes, point.settings.system.text == kPerServer ? 1 : processes);
  const std::uint64_t queue_pairs = cluster.connect_all();
  harness::Measurement result;
  result.kinds[{0, "connection"}].operations = queue_pairs / 2;
  result.declared = {
      {"connections", static_cast<double>(queue_pairs) / 2},
      {"queue_pairs_per_device", static_cast<double>(queue_pairs) / nodes},
  };
  return result;
}

}  // namespace perdura::bench
