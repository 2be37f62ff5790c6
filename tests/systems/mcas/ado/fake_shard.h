// A shard without clients: an engine, locks of keys, and the host of active data objects; and the
// machine on which it and their process run.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "platform/shm/shm_platform.h"
#include "platform/sim/sim_platform.h"
#include "systems/mcas/ado/host.h"
#include "systems/mcas/ado/process.h"
#include "tests/support/platforms.h"
#include "tests/systems/mcas/ado/ring_peer.h"
#include "tests/systems/mcas/engine_support.h"

namespace perdura::systems::mcas::ado::test {

inline constexpr const char* kMemory = "shard";
inline constexpr NodeId kShardNode = 0;
inline constexpr NodeId kProcessNode = 1;
// Memory that belongs to no key is that of a key which clients cannot have.
inline constexpr char kHidden = '\x01';

class FakeShard final : public Callbacks {
 public:
  // Makes the shard's memory and an empty pool in it.
  Picoseconds allocating_takes{};

  explicit FakeShard(Node& node)
      : FakeShard(node.create_region(kMemory, shape().size(), pmem::Medium::pm)) {
    root_ = engine_.create();
  }
  // Recovers it.
  FakeShard(Node& node, Bytes root) : FakeShard(node.open_region(kMemory)) {
    root_ = root;
    engine_.recover(root);
  }

  std::function<void(const std::string& key)> on_create;

  Bytes root() const { return root_; }
  mcas::test::TestEngine& engine() { return engine_; }
  // What is locked now.
  std::string locked() const {
    std::string text;
    for (const auto& [key, holders] : locks_) text += fmt::format("{}:{} ", key, holders);
    return text;
  }

  bool try_lock(const std::string& key, LockMode mode) override {
    const auto found = locks_.find(key);
    if (found == locks_.end()) {
      locks_[key] = mode == LockMode::write ? -1 : 1;
      return true;
    }
    if (mode == LockMode::write || found->second < 0) return false;
    ++found->second;
    return true;
  }
  void unlock(const std::string& key, LockMode mode) override {
    const auto found = locks_.find(key);
    ASSERT_NE(found, locks_.end()) << key << " is not locked";
    ASSERT_EQ(found->second < 0, mode == LockMode::write) << key << " is locked in another way";
    if (mode == LockMode::write || --found->second == 0) locks_.erase(found);
  }

  std::optional<ByteRange> find(const std::string& key) override {
    const std::optional<ByteRange> range = engine_.engine().get(mcas::test::as_key(key));
    if (range && range->length <= hstore::kLongestInField) return ByteRange{range->offset, 0};
    return range;
  }
  // Of the key "endless" there is more than a message holds.
  std::optional<std::string> read(const std::string& key) override {
    return key == "endless" ? std::string(kLongestMessage, 'x') : "short";
  }
  Task<Created> create(std::string key, Bytes length) override {
    if (on_create) on_create(key);
    return put(std::move(key), std::string(length, '\0'));
  }
  Task<Created> resize(std::string key, Bytes length) override {
    std::optional<std::string> value = engine_.get(key);
    if (!value) return not_found();
    value->resize(length, '\0');
    return put(std::move(key), std::move(*value));
  }
  bool erase(const std::string& key) override { return engine_.erase(key); }

  Task<Created> allocate(Bytes length) override {
    if (allocating_takes > Picoseconds{}) co_await sleep_for(allocating_takes);
    const std::string key = kHidden + std::to_string(++allocations_);
    if (!engine_.put(key, std::string(std::max<Bytes>(length, 17), '\0'))) {
      co_return Created{CallStatus::out_of_space, {}};
    }
    const Bytes offset = engine_.engine().get(mcas::test::as_key(key))->offset;
    co_return Created{CallStatus::done, {offset, length}};
  }
  bool free(ByteRange range) override {
    std::string found;
    engine_.engine().iterate([&](Key key, ByteRange value) {
      const std::string text(reinterpret_cast<const char*>(key.data()), key.size());
      if (text[0] == kHidden && value.offset == range.offset) found = text;
    });
    return !found.empty() && engine_.erase(found);
  }
  void for_each(const std::function<void(const std::string&, ByteRange)>& visit) override {
    engine_.engine().iterate([&](Key key, ByteRange value) {
      const std::string text(reinterpret_cast<const char*>(key.data()), key.size());
      if (text[0] != kHidden) visit(text, value);
    });
  }
  Task<KeySearchResult> find_key(std::string expression, Matching matching,
                                 std::uint64_t position) override {
    if (matching != Matching::prefix) co_return KeySearchResult{};
    std::set<std::string> keys;
    for_each([&](const std::string& key, ByteRange) { keys.insert(key); });
    std::uint64_t at = 0;
    for (const std::string& key : keys) {
      if (at >= position && key.starts_with(expression)) {
        co_return KeySearchResult{CallStatus::done, key, at};
      }
      ++at;
    }
    co_return KeySearchResult{CallStatus::not_found, {}, 0};
  }
  PoolInfo info() override {
    const EngineStatistics counts = engine_.engine().statistics();
    return {"", 0, counts.items, counts.capacity, counts.free};
  }

 private:
  static mcas::test::TestShape shape() {
    return mcas::test::shape_of(32, 16, 16 * KiB, 64 * KiB, 16);
  }
  explicit FakeShard(std::unique_ptr<pmem::Region> region)
      : region_(std::move(region)), engine_(*region_, shape()) {}

  // Others may run in the middle of it, as when a table grows.
  Task<Created> put(std::string key, std::string value) {
    co_await yield();
    if (!engine_.put(key, value)) co_return Created{CallStatus::out_of_space, {}};
    co_return Created{CallStatus::done, *find(key)};
  }
  static Task<Created> not_found() { co_return Created{CallStatus::not_found, {}}; }

  std::unique_ptr<pmem::Region> region_;
  mcas::test::TestEngine engine_;
  Bytes root_ = 0;
  std::map<std::string, int> locks_;  // how many readers, or -1
  std::uint64_t allocations_ = 0;
};

// A plugin that is a function.
class Function final : public Plugin {
 public:
  using Body = std::function<Task<Result>(Services&, const Invocation&)>;
  explicit Function(Body body) : body_(std::move(body)) {}
  Task<Result> do_work(Services& services, const Invocation& work) override {
    return body_(services, work);
  }

 private:
  Body body_;
};

inline Plugins only(std::unique_ptr<Plugin> plugin) {
  Plugins plugins;
  plugins.push_back(std::move(plugin));
  return plugins;
}
inline Plugins function(Function::Body body) {
  return only(std::make_unique<Function>(std::move(body)));
}

inline std::unique_ptr<Platform> make_machine(const std::string& platform) {
  if (platform == "sim") {
    return std::make_unique<sim::SimPlatform>(perdura::test::erda_testbed(), 2, Machines{0, 0});
  }
  ShmOptions options;
  options.node_count = 2;
  options.machines = {0, 0};
  return std::make_unique<ShmPlatform>(std::move(options));
}

using MakePlugins = std::function<Plugins()>;
// The process on the thread of another node, in the test's own program, so that plugins may be part
// of the test.
inline void start_process(Platform& platform, const MakePlugins& plugins) {
  platform.start_service(kProcessNode, 7, CompletionMode::event,
                         [plugins](Thread& thread) -> Task<> {
                           std::unique_ptr<pmem::Region> memory;
                           while (!memory) {
                             co_await sleep_for(Microseconds(1));
                             memory = thread.node.open_region(kMemory);
                           }
                           const auto shard = RingPeer::of_process(thread.node);
                           Process process(*memory, shard, Flushing::lines, plugins());
                           co_await process.serve();
                           co_await shard->send({});
                         });
}

// What a test does on the shard's thread.
struct Shard {
  Thread& thread;
  FakeShard& store;
  std::shared_ptr<Host> host;

  // An invocation as a shard makes it: the key is created if there is none, and locked.
  Task<CompletionMessage> invoke(std::string key, std::string request, Bytes length = 64) {
    WorkMessage order;
    order.request = std::move(request);
    EXPECT_TRUE(store.try_lock(key, LockMode::write)) << key;
    std::optional<ByteRange> value = store.find(key);
    order.is_new = !value;
    if (!value) value = (co_await store.create(key, length)).value;
    order.key = std::move(key);
    order.value = *value;
    Task<CompletionMessage> working = host->work(order, LockMode::write);
    co_return co_await std::move(working);
  }
};
using Body = std::function<Task<>(Shard&)>;

using Connect = std::function<Task<std::shared_ptr<PeerProcess>>(Thread&)>;
inline Task<std::shared_ptr<PeerProcess>> to_other_node(Thread& thread) {
  co_return RingPeer::of_shard(thread.node);
}

// Starts a shard with an empty pool; runs the test's body when a process is attached, which is that
// of start_process() unless the test connects to another one.
inline void start_shard(Platform& platform, const Body& body, HostOptions options = {},
                        const Connect& connect = to_other_node) {
  platform.start(kShardNode, 1, CompletionMode::event,
                 [body, options, connect](Thread& thread) -> Task<> {
                   FakeShard store(thread.node);
                   Shard shard{thread, store, std::make_shared<Host>(thread, store, options)};
                   co_await shard.host->attach(co_await connect(thread));
                   co_await body(shard);
                   EXPECT_EQ(store.locked(), "");
                   EXPECT_EQ(store.engine().audit(), "");
                 });
}

inline void run(const std::string& platform_name, const MakePlugins& plugins, const Body& body,
                HostOptions options = {}) {
  const auto platform = make_machine(platform_name);
  bool ended = false;
  start_process(*platform, plugins);
  start_shard(
      *platform,
      [&](Shard& shard) -> Task<> {
        co_await body(shard);
        ended = true;
      },
      std::move(options));
  platform->run();
  EXPECT_TRUE(ended);
}

}  // namespace perdura::systems::mcas::ado::test
