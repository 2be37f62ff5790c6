#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "library/mcas/config.h"
#include "library/mcas/events.h"
#include "library/mcas/pool.h"
#include "platform/base/error.h"
#include "systems/mcas/cluster/ring.h"
#include "systems/mcas/cluster/watcher.h"

namespace perdura::mcas {

namespace cluster = systems::mcas::cluster;

ShardList ShardList::read(const std::string& file) {
  try {
    const Config config = Config::read(file);
    ShardList list{.job = config.job, .shards = {}, .device = config.network.device};
    for (const ShardConfig& shard : config.shards) {
      list.shards.push_back({shard.name, shard.node, shard.address});
    }
    return list;
  } catch (const UsageError& problem) {
    throw std::invalid_argument(problem.what());
  }
}

namespace {

cluster::Timing timing_of(const ClusterOptions& options) {
  if (options.patience.count() <= 0) {
    throw std::invalid_argument(
        "patience is no longer than zero; say how long a shard may be silent");
  }
  // A watcher sends nothing; its heartbeat is only the interval in which it tries to connect again.
  return {.heartbeat = std::min<Picoseconds>(cluster::Timing{}.heartbeat, options.patience / 2),
          .patience = options.patience};
}

// A name identifies one shard, also on the ring, and a number one connection.
void check_names(const Shard& shard, const std::vector<Shard>& others) {
  if (shard.name.empty()) {
    throw std::invalid_argument(
        fmt::format("shard {} has no name; name it as the configuration file does", shard.node));
  }
  for (const Shard& other : others) {
    if (other.name == shard.name) {
      throw std::invalid_argument(
          fmt::format("two shards have the name '{}', numbers {} and {}; name each of them once",
                      shard.name, other.node, shard.node));
    }
    if (other.node == shard.node) {
      throw std::invalid_argument(
          fmt::format("'{}' and '{}' are both shard {}; give each its number in the configuration "
                      "file",
                      other.name, shard.name, shard.node));
    }
  }
}

// Checks the shards before anything is opened.
Network network_of(const ClusterOptions& options) {
  if (options.shards.empty()) throw std::invalid_argument("the cluster has no shards; name them");
  const Network network{.rdma = !options.shards.front().address.empty(), .device = options.device};
  std::vector<Shard> before;
  for (const Shard& shard : options.shards) {
    check_shard(network, shard.node, shard.address);
    check_names(shard, before);
    before.push_back(shard);
  }
  return network;
}

}  // namespace

// The shards and the connections to them; may be used by any thread.
class Cluster::Impl {
 public:
  explicit Impl(const ClusterOptions& options)
      : queue_depth_(options.queue_depth),
        timing_(timing_of(options)),
        membership_(
            std::make_shared<Membership>(options.job, network_of(options),
                                         Limits{options.connect_timeout, options.call_timeout})),
        watch_(std::make_shared<Watch>()) {
    // The watcher is created, used and destroyed on the membership's thread.
    membership_->run([watch = watch_, &thread = membership_->thread(), timing = timing_,
                      tell = options.on_event]() -> Task<> {
      watch->watcher =
          std::make_unique<cluster::Watcher>(thread, timing, [tell](const cluster::Event& event) {
            if (tell) tell(event_of(event));
          });
      WatcherEnds ends{*watch};
      WaitList never;
      co_await wait(never);
    });
    for (const Shard& shard : options.shards) add(shard);
  }

  void add(const Shard& shard) {
    check_names(shard, shards());
    membership_->add_shard(shard.node, shard.address);
    const auto connection = this->connection(shard);
    const std::scoped_lock lock(mutex_);
    shards_[shard.name] = shard;
    ring_.add(shard.name);
    membership_->run([watch = watch_, shard]() -> Task<> {
      if (watch->watcher) watch->watcher->add({shard.name, {shard.node, kClusterPort}});
      co_return;
    });
  }
  void remove(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    if (shards_.contains(name) && shards_.size() == 1) {
      throw std::invalid_argument("the last shard of a cluster cannot be removed");
    }
    shards_.erase(name);
    ring_.remove(name);
    membership_->run([watch = watch_, name]() -> Task<> {
      if (watch->watcher) watch->watcher->remove(name);
      co_return;
    });
  }
  std::vector<Shard> shards() const {
    const std::scoped_lock lock(mutex_);
    std::vector<Shard> all;
    for (const auto& [name, shard] : shards_) all.push_back(shard);
    return all;
  }
  Shard owner(std::string_view key) const {
    const std::scoped_lock lock(mutex_);
    return shards_.at(ring_.owner(std::as_bytes(std::span(key))));
  }
  // Returns the same connection for the same shard.
  std::shared_ptr<ShardConnection> connection(const Shard& shard) {
    const std::scoped_lock lock(mutex_);
    auto& connection = connections_[shard.node];
    if (connection == nullptr) connection = membership_->shard(shard.node, queue_depth_);
    return connection;
  }
  bool is_there(const std::string& name) const {
    auto asked = membership_->post<bool>([watch = watch_, name]() -> Task<Result<bool>> {
      co_return watch->watcher != nullptr && watch->watcher->is_there(name);
    });
    Result<bool> there = asked.wait();
    return there.ok() && there.value();
  }
  const std::shared_ptr<Membership>& membership() const { return membership_; }

 private:
  struct Watch {
    std::unique_ptr<cluster::Watcher> watcher;
  };
  struct WatcherEnds {
    Watch& watch;
    ~WatcherEnds() { watch.watcher = nullptr; }
  };

  unsigned queue_depth_;
  cluster::Timing timing_;
  mutable std::mutex mutex_;
  cluster::Ring ring_;                   // protected by the mutex, like the next two
  std::map<std::string, Shard> shards_;  // the ring's members
  std::map<std::uint32_t, std::shared_ptr<ShardConnection>> connections_;
  std::shared_ptr<Membership> membership_;
  std::shared_ptr<Watch> watch_;
};

class ClusterPool::Impl {
 public:
  Impl(std::shared_ptr<Cluster::Impl> cluster, std::string name, std::uint64_t size)
      : cluster_(std::move(cluster)), name_(std::move(name)), size_(size) {}

  Pool of(std::string_view key) { return on(cluster_->owner(key)); }
  Pool on(const Shard& shard) {
    const std::scoped_lock lock(mutex_);
    const auto found = pools_.find(shard.node);
    if (found != pools_.end()) return found->second;
    const auto open = std::make_shared<OpenPool>(
        cluster_->connection(shard),
        PoolName{.name = name_, .flags = {.create_on_demand = true}, .size = size_});
    const Pool pool(std::make_shared<Pool::Impl>(cluster_->membership(), open));
    return pools_.emplace(shard.node, pool).first->second;
  }

  Result<std::uint64_t> move_keys(const std::vector<Shard>& from);

 private:
  // Moves one key. Returns false if the key stays.
  Result<bool> move(Pool& pool, const Shard& shard, const std::string& key);

  std::shared_ptr<Cluster::Impl> cluster_;
  std::string name_;
  std::uint64_t size_;
  std::mutex mutex_;
  std::map<std::uint32_t, Pool> pools_;  // by shard; protected by the mutex
};

Result<std::uint64_t> ClusterPool::Impl::move_keys(const std::vector<Shard>& from) {
  std::uint64_t moved = 0;
  for (const Shard& shard : from) {
    Pool pool = on(shard);
    // After a key has moved, the next one is at its position.
    for (std::uint64_t position = 0;;) {
      Result<FoundKey> found = pool.find("", Match::prefix, position);
      if (found.status() == Status::not_found) break;
      if (!found.ok()) return failure_of<std::uint64_t>(found);
      Result<bool> goes = move(pool, shard, found.value().key);
      if (!goes.ok()) return failure_of<std::uint64_t>(goes);
      position = found.value().position + (goes.value() ? 0 : 1);
      moved += goes.value() ? 1 : 0;
    }
  }
  return moved;
}

Result<bool> ClusterPool::Impl::move(Pool& pool, const Shard& shard, const std::string& key) {
  const Shard owner = cluster_->owner(key);
  if (owner.node == shard.node) return false;
  Pool target = on(owner);
  Result<void> put = Status::ok;
  Result<std::string> value = pool.get(key);
  if (value.ok()) {
    put = target.put(key, value.value(), {.no_overwrite = true});
  } else if (value.status() == Status::too_large) {
    // The value does not fit into a message.
    Result<KeyAttributes> attributes = pool.attributes(key);
    if (!attributes.ok()) return failure_of<bool>(attributes);
    Result<DirectMemory> memory = allocate(cluster_->membership(), attributes.value().value_length);
    if (!memory.ok()) return failure_of<bool>(memory);
    DirectPart part{memory.value(), 0, memory.value().bytes().size()};
    Result<std::uint64_t> length = pool.get_direct(key, part);
    if (!length.ok()) return failure_of<bool>(length);
    part.length = length.value();
    put = target.put_direct(key, part, {.no_overwrite = true});
  } else if (value.status() != Status::not_found) {
    return failure_of<bool>(value);
  }
  // A key that exists there was put after it came to belong there.
  if (!put.ok() && put.status() != Status::exists) return failure_of<bool>(put);
  const Result<void> erased = pool.erase(key);
  if (!erased.ok() && erased.status() != Status::not_found) return failure_of<bool>(erased);
  return true;
}

Pool ClusterPool::of(std::string_view key) { return impl_->of(key); }
Result<std::uint64_t> ClusterPool::move_keys(const std::vector<Shard>& from) {
  return impl_->move_keys(from);
}

Cluster::Cluster(const ClusterOptions& options) : impl_(std::make_shared<Impl>(options)) {}
Cluster::~Cluster() = default;

ClusterPool Cluster::pool(std::string_view name, std::uint64_t size) {
  return ClusterPool(std::make_shared<ClusterPool::Impl>(impl_, std::string(name), size));
}

Result<void> Cluster::delete_pool(std::string_view name) {
  Result<void> first;
  for (const Shard& shard : impl_->shards()) {
    auto deleted = impl_->membership()->post<void>([connection = impl_->connection(shard),
                                                    name = std::string(name)] {
      return on_session<void>(
          connection, [name](objects::Session& session) { return delete_pool_of(session, name); });
    });
    const Result<void> result = deleted.wait();
    if (first.ok() && result.status() != Status::not_found) first = result;
  }
  return first;
}

void Cluster::add(const Shard& shard) { impl_->add(shard); }
void Cluster::remove(std::string_view name) { impl_->remove(std::string(name)); }
std::vector<Shard> Cluster::shards() const { return impl_->shards(); }
std::string Cluster::owner(std::string_view key) const { return impl_->owner(key).name; }
bool Cluster::is_there(std::string_view shard) const { return impl_->is_there(std::string(shard)); }
Result<DirectMemory> Cluster::register_direct_memory(std::size_t size) {
  return allocate(impl_->membership(), size);
}

}  // namespace perdura::mcas
