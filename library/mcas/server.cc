#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>

#include "library/choice.h"
#include "library/mcas/config.h"
#include "library/mcas/events.h"
#include "library/mcas/member.h"
#include "library/signals_blocked.h"
#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/base/node_runs.h"
#include "platform/host/child_process.h"
#include "platform/host/inbox.h"
#include "platform/host/os_thread.h"
#include "platform/host/thread_executor.h"
#include "systems/mcas/ado/plugins/plugins.h"
#include "systems/mcas/ado/program/program.h"
#include "systems/mcas/cluster/beacon.h"
#include "systems/mcas/cluster/watcher.h"
#include "systems/mcas/mcas.h"
#include "systems/mcas/parameters.h"

namespace perdura::mcas {

namespace cluster = systems::mcas::cluster;

namespace {

constexpr Picoseconds kLook = Milliseconds(1);
// How long a shard that ends waits for its watchers to be told.
constexpr Picoseconds kToSayGoodbye = Milliseconds(200);

// Thrown to leave the job.
struct Stopped {};

Config read(const std::string& file) {
  try {
    return Config::read(file);
  } catch (const UsageError& problem) {
    throw std::invalid_argument(problem.what());
  }
}

// Checks what a shard needs of the host on which it is served, as far as possible without serving
// it.
void check_on_this_host(const ShardConfig& shard, const std::string& file) {
  const std::string where = fmt::format("{}: [shards.{}]:", file, shard.name);
  if (!shard.directory.empty()) {
    library::check_directory(shard.directory, shard.emulated, where + " the");
  }
  const auto cores = static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_CONF));
  for (const unsigned core : shard.placement.cores) {
    if (core < cores) continue;
    throw std::invalid_argument(
        fmt::format("{} 'cores' has {}; this host has cores 0 to {}", where, core, cores - 1));
  }
  try {
    const auto parameters = systems::mcas::Parameters::of(shard.store);
    const Isolation isolation = parameters.plugin_limits.isolation;
    systems::mcas::ado::check_plugin_files(parameters.plugins, isolation);
    if (!parameters.plugins.empty()) {
      check_host_child(systems::mcas::ado::ado_program().file, isolation);
    }
  } catch (const UsageError& problem) {
    throw std::invalid_argument(fmt::format("{} {}", where, problem.what()));
  } catch (const PlatformError& problem) {
    throw std::runtime_error(fmt::format("{} plugins cannot be called: {}", where, problem.what()));
  }
}

std::vector<ShardConfig> chosen(const Config& config, const ServerOptions& options) {
  std::vector<ShardConfig> shards;
  try {
    for (const std::string& name : options.shards) {
      const ShardConfig& shard = config.shard(name);
      if (std::ranges::count(options.shards, name) > 1) {
        throw UsageError(fmt::format("the shard '{}' is to be served twice; name it once", name));
      }
      shards.push_back(shard);
    }
  } catch (const UsageError& problem) {
    throw std::invalid_argument(fmt::format("{}: {}", options.file, problem.what()));
  }
  if (shards.empty()) shards = config.shards;
  for (const ShardConfig& shard : shards) check_on_this_host(shard, options.file);
  return shards;
}

// Ensures that no one else, perhaps of another job, serves the memory. Returns null if the memory
// does not exist yet.
std::shared_ptr<void> own(Node& node, const std::string& name) {
  if (node.open_region(name) == nullptr) return nullptr;
  std::shared_ptr<void> owned = node.own_region(name);
  if (owned == nullptr) throw UsageError("its memory is served already, by another job");
  return owned;
}

}  // namespace

// A successor's life is larger, also on another host if the hosts' clocks agree.
cluster::Life new_life() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<cluster::Life>(std::chrono::duration_cast<Nanoseconds>(now).count());
}

// One shard: a node of the job with two threads, one that serves requests and one that takes part
// in the cluster.
class ServedShard {
 public:
  ServedShard(const Config& config, const ShardConfig& shard, const ServerOptions& options,
              const std::atomic<bool>& stopping)
      : config_(config),
        shard_(shard),
        options_(options),
        stopping_(stopping),
        member_(join_as_shard(config, shard)) {}

  // Throws UsageError or PlatformError.
  void run() {
    HostPlatform& platform = member_->platform();
    platform.start(shard_.node, kShardPort, shard_.completion,
                   [this](Thread& thread) { return serve(thread); });
    platform.start(shard_.node, kClusterPort, CompletionMode::event,
                   [this](Thread& thread) { return take_part(thread); });
    try {
      platform.run();
    } catch (const Stopped&) {
    }
  }
  const std::string& name() const { return shard_.name; }

 private:
  Task<> serve(Thread& thread) {
    std::shared_ptr<void> owned = own(thread.node, shard_.name);
    const std::shared_ptr<objects::Shard> shard = open(thread);
    if (owned == nullptr) owned = own(thread.node, shard_.name);
    thread.executor.spawn(shard->serve());
    served_ = shard;
    inbox_ = host::current_thread_executor().inbox();
    serving_ = true;
    if (options_.on_serving) options_.on_serving(shard_.name);
    while (!stopping_ || !said_goodbye_) co_await sleep_for(kLook);
    throw Stopped{};
  }

  // Adds the file of the memory and the configuration file to the message of an error, which has
  // neither.
  std::shared_ptr<objects::Shard> open(Thread& thread) const {
    try {
      return systems::kMcasObjects.open(thread, shard_.name, shard_.store);
    } catch (const UsageError& problem) {
      throw UsageError(
          fmt::format("{}: [shards.{}]: {}{}", options_.file, shard_.name, problem.what(),
                      shard_.directory.empty()
                          ? ""
                          : fmt::format(" (its memory is {}/{})", shard_.directory, shard_.name)));
    }
  }

  // A shard joins the cluster when it serves: before that, clients could not use it.
  Task<> take_part(Thread& thread) {
    while (!serving_) co_await sleep_for(kLook);
    const auto beacon = std::make_shared<cluster::Beacon>(thread, config_.cluster, new_life());
    thread.executor.spawn(beacon->serve());
    cluster::Watcher others(thread, config_.cluster, [this](const cluster::Event& event) {
      if (options_.on_event) options_.on_event(shard_.name, event_of(event));
      hand_over(event);
    });
    for (const ShardConfig& other : config_.shards) {
      if (other.node != shard_.node) others.add({other.name, {other.node, kClusterPort}});
    }
    while (!stopping_) co_await sleep_for(kLook);
    bool told = false;
    thread.executor.spawn([](std::shared_ptr<cluster::Beacon> of, bool& done) -> Task<> {
      co_await of->leave();
      done = true;
    }(beacon, told));
    const Time deadline = thread.executor.now() + kToSayGoodbye;
    while (!told && thread.executor.now() < deadline) co_await sleep_for(kLook);
    said_goodbye_ = true;
    WaitList never;
    co_await wait(never);  // the tasks spawned above use this frame
  }

  // Hands the event to the shard on its own thread, where work begins in the order in which it is
  // posted.
  void hand_over(const cluster::Event& event) {
    inbox_->post([shard = served_, event]() -> Task<> {
      if (const auto served = shard.lock()) served->cluster_event(event);
      co_return;
    });
  }

  const Config& config_;
  const ShardConfig& shard_;
  const ServerOptions& options_;
  const std::atomic<bool>& stopping_;
  // The second thread may use these once `serving_` is true.
  std::weak_ptr<objects::Shard> served_;
  std::shared_ptr<host::Inbox> inbox_;
  std::atomic<bool> serving_{false};
  std::atomic<bool> said_goodbye_{false};
  std::unique_ptr<Member> member_;
};

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options)
      : options_(options), config_(read(options.file)), chosen_(chosen(config_, options_)) {
    const library::SignalsBlocked blocked;
    for (const ShardConfig& shard : chosen_) {
      try {
        served_.push_back(std::make_unique<ServedShard>(config_, shard, options_, stopping_));
      } catch (const NodeRuns&) {
        throw std::runtime_error(
            fmt::format("shard {} of the job '{}' is being served already; end that process first",
                        shard.name, config_.job));
      } catch (const UsageError& problem) {
        throw std::invalid_argument(
            fmt::format("{}: [shards.{}]: {}", options_.file, shard.name, problem.what()));
      } catch (const PlatformError& problem) {
        throw std::runtime_error(fmt::format("{}: platform = \"{}\", [shards.{}]: {}",
                                             options_.file, config_.network.rdma ? "verbs" : "shm",
                                             shard.name, problem.what()));
      }
    }
  }

  void run() {
    std::optional<OsThreads> threads;
    {
      const library::SignalsBlocked blocked;
      threads.emplace(served_.size(), [this](std::size_t shard) { run(*served_[shard]); });
    }
    threads->join();
    if (!problem_.empty()) throw std::runtime_error(problem_);
  }
  void stop() noexcept { stopping_ = true; }

 private:
  // If one shard cannot be served, the others are ended.
  void run(ServedShard& shard) {
    std::string problem;
    try {
      shard.run();
      return;
    } catch (const std::exception& error) {
      problem = fmt::format("shard {}: {}", shard.name(), problem_text(error));
    }
    const std::scoped_lock lock(mutex_);
    if (problem_.empty()) problem_ = problem;
    stopping_ = true;
  }

  ServerOptions options_;
  Config config_;
  std::vector<ShardConfig> chosen_;
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<ServedShard>> served_;
  std::mutex mutex_;
  std::string problem_;  // the problem of the first shard that had one
};

ShardList Server::check(const std::string& file) {
  const Config config = read(file);
  chosen(config, {.file = file});
  return ShardList::read(file);
}

Server::Server(const ServerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Server::~Server() = default;
void Server::run() { impl_->run(); }
void Server::stop() noexcept { impl_->stop(); }

}  // namespace perdura::mcas
