// A shard with active data objects, another shard, and their clients, on one machine each; the
// objects' processes are threads of a node of the shard's machine, which a launcher starts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "platform/shm/shm_platform.h"
#include "platform/sim/sim_platform.h"
#include "systems/mcas/ado/launcher.h"
#include "systems/mcas/ado/plugins/plugins.h"
#include "systems/mcas/ado/process.h"
#include "systems/mcas/session.h"
#include "systems/mcas/shard.h"
#include "tests/support/platforms.h"
#include "tests/systems/mcas/ado/ring_peer.h"

namespace perdura::systems::mcas::test {

inline constexpr NodeId kShardNode = 0;
inline constexpr NodeId kProcessNode = 1;
inline constexpr NodeId kClientNode = 2;
inline constexpr NodeId kPeerNode = 3;  // the other shard's
inline constexpr const char* kMemory = "shard";

inline Key as_key(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string string_of(std::span<const std::byte> bytes) {
  return std::string(text_of(bytes));
}
// The only answer of a call.
inline std::string answer_of(const objects::Result<objects::Answers>& answers) {
  if (!answers) return "error: " + std::string(objects::to_string(answers.error()));
  return answers->size() == 1 ? string_of(answers->front()) : "error: not one answer";
}
template <class T>
std::optional<objects::Error> error_of(const objects::Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

// A plugin that is a function.
class Function final : public ado::Plugin {
 public:
  using Body = std::function<Task<ado::Result>(ado::Services&, const ado::Invocation&)>;
  explicit Function(Body body) : body_(std::move(body)) {}
  Task<ado::Result> do_work(ado::Services& services, const ado::Invocation& work) override {
    return body_(services, work);
  }

 private:
  Body body_;
};

using MakePlugins = std::function<ado::Plugins(const std::vector<std::string>&)>;

using ado::test::RingPeer;

// What a configuration names if its plugin is a function of the test.
inline constexpr const char* kFunction = "/function";
inline MakePlugins function(Function::Body body) {
  return [body = std::move(body)](const std::vector<std::string>&) {
    ado::Plugins plugins;
    plugins.push_back(std::make_unique<Function>(body));
    return plugins;
  };
}

class TestLauncher final : public ado::Launcher {
 public:
  TestLauncher(Platform& platform, MakePlugins plugins)
      : platform_(platform), plugins_(std::move(plugins)) {}

  // What was launched, and how many of that run still.
  std::vector<ado::LaunchOrder> orders;
  std::atomic<int> running = 0;
  // Called before each launch; may throw.
  std::function<void()> on_launch;

  // The node on which the last process runs.
  NodeId process_node() const { return is_sim() ? kPeerNode + started_ : kProcessNode; }

  Task<std::unique_ptr<ado::Launched>> launch(ado::LaunchOrder order) override {
    orders.push_back(order);
    if (on_launch) on_launch();
    ++started_;
    if (is_sim()) co_return std::make_unique<Started>(*this, co_await start_child(order), nullptr);
    // A real child would be another program, to which the test's plugins do not belong.
    const std::string ring = order.pool + "." + std::to_string(started_);
    auto thread = platform_.start_service(
        kProcessNode, static_cast<fabric::Port>(started_), CompletionMode::event,
        [order, ring, plugins = plugins_](Thread& its) -> Task<> {
          const auto memory = its.node.open_region(order.memory);
          const auto shard =
              std::make_shared<RingPeer>(its.node, "to_shard" + ring, "to_process" + ring);
          ado::Process process(*memory, shard, Flushing::lines, plugins(order.plugins));
          co_await process.serve();
          co_await shard->send({});
        });
    co_return std::make_unique<Started>(
        *this, std::make_shared<RingPeer>(*node, "to_process" + ring, "to_shard" + ring),
        std::move(thread));
  }

  Node* node = nullptr;  // the shard's

 private:
  class Started final : public ado::Launched {
   public:
    Started(TestLauncher& launcher, std::shared_ptr<PeerProcess> process,
            std::shared_ptr<StartedThread> thread)
        : launcher_(launcher), process_(std::move(process)), thread_(std::move(thread)) {
      ++launcher_.running;
    }
    std::shared_ptr<PeerProcess> process() const override { return process_; }
    std::string end() override {
      if (std::exchange(ended_, true)) return "";
      if (thread_) thread_->stop();
      if (const auto child = std::dynamic_pointer_cast<ChildProcess>(process_)) child->end();
      --launcher_.running;
      return "";
    }

   private:
    TestLauncher& launcher_;
    std::shared_ptr<PeerProcess> process_;
    std::shared_ptr<StartedThread> thread_;
    bool ended_ = false;
  };

  bool is_sim() const { return dynamic_cast<sim::SimPlatform*>(&platform_) != nullptr; }

  Task<std::shared_ptr<PeerProcess>> start_child(ado::LaunchOrder order) {
    ChildProgram program{"", [order, plugins = plugins_](ChildContext& self) -> Task<> {
                           ado::Process process(self.memory(), self.parent(), Flushing::lines,
                                                plugins(order.plugins));
                           self.ready();
                           co_await process.serve();
                         }};
    ChildOrder child{.memory = order.memory, .messages = ado::kQueue};
    for (const ByteRange part : order.parts) child.parts.push_back({part.offset, part.length});
    std::ranges::sort(child.parts, {}, &MemoryPart::offset);
    ChildProcesses& processes = child_processes_of(*node);
    co_return co_await processes.start_child(std::move(program), std::move(child));
  }

  Platform& platform_;
  MakePlugins plugins_;
  NodeId started_ = 0;
};

// Waits until there are so many processes: what ends in the background has no other sign. Ten
// seconds are enough on a busy host, and pass quickly on `sim`.
inline Task<> until_running(TestLauncher& launcher, int count) {
  constexpr int kMostLooks = 100'000;
  for (int looks = 0; launcher.running != count && looks < kMostLooks; ++looks) {
    co_await sleep_for(Microseconds(100));
  }
  EXPECT_EQ(launcher.running, count);
}

inline std::string platform_name(const testing::TestParamInfo<std::string>& test) {
  return test.param;
}

// Nodes 0 and 1 are on one machine.
inline std::unique_ptr<Platform> make_cluster(const std::string& platform) {
  if (platform == "sim") {
    return std::make_unique<sim::SimPlatform>(perdura::test::erda_testbed(), 4, Machines{0, 0});
  }
  ShmOptions options;
  options.node_count = 4;
  options.machines = {0, 0};
  return std::make_unique<ShmPlatform>(std::move(options));
}

inline objects::Config config_with(const std::string& plugins, GivenParameters more = {}) {
  if (!plugins.empty()) more["plugins"] = plugins;
  return {.memory = 4 * MiB,
          .max_message_value = 2 * KiB,
          .sessions = 8,
          .parameters = std::move(more)};
}

// The shard and clients of a test; `plugins` makes what `config` names.
class Cluster {
 public:
  using Client = std::function<Task<>(objects::Session&, Thread&)>;

  explicit Cluster(std::string platform, objects::Config config,
                   MakePlugins plugins = ado::open_plugins)
      : platform_(make_cluster(platform)),
        config_(std::move(config)),
        launcher_(std::make_shared<TestLauncher>(*platform_, std::move(plugins))) {}

  Platform& platform() { return *platform_; }
  sim::SimPlatform& sim() { return dynamic_cast<sim::SimPlatform&>(*platform_); }
  TestLauncher& launcher() { return *launcher_; }

  // Called on the shard's thread before it serves; what it returns is kept as long as the thread.
  std::function<std::shared_ptr<void>(Thread&, std::shared_ptr<Shard>)> beside_shard;

  void serve() {
    platform_->start_service(
        kShardNode, 0, CompletionMode::event, [this](Thread& thread) -> Task<> {
          launcher_->node = &thread.node;
          const auto shard =
              std::make_shared<Shard>(thread, kMemory, Parameters::of(config_), launcher_);
          EXPECT_EQ(shard->pools().audit(), "");
          const std::shared_ptr<void> beside = beside_shard ? beside_shard(thread, shard) : nullptr;
          co_await shard->serve();
        });
  }
  // The other shard, which has no active data objects.
  std::shared_ptr<StartedThread> serve_peer(objects::Config config) {
    peer_config_ = std::move(config);
    return platform_->start_service(
        kPeerNode, 0, CompletionMode::event, [this](Thread& thread) -> Task<> {
          const auto shard =
              std::make_shared<Shard>(thread, "peer", Parameters::of(peer_config_), nullptr);
          EXPECT_EQ(shard->pools().audit(), "");
          co_await shard->serve();
        });
  }
  void connect(Client client) {
    platform_->start(kClientNode, ++last_client_, CompletionMode::event,
                     [this, client = std::move(client)](Thread& thread) -> Task<> {
                       const auto session = co_await connect_to(thread);
                       co_await client(*session, thread);
                     });
  }
  Task<std::unique_ptr<objects::Session>> connect_to(Thread& thread) {
    return PoolsSession::connect(thread, {kShardNode, 0}, config_);
  }
  Task<std::unique_ptr<objects::Session>> connect_to_peer(Thread& thread) {
    return PoolsSession::connect(thread, {kPeerNode, 0}, peer_config_);
  }
  // Serves one client.
  void run(Client client) {
    serve();
    bool ended = false;
    connect([&](objects::Session& session, Thread& thread) -> Task<> {
      co_await client(session, thread);
      ended = true;
    });
    platform_->run();
    EXPECT_TRUE(ended);
  }

 private:
  std::unique_ptr<Platform> platform_;
  objects::Config config_;
  objects::Config peer_config_;
  std::shared_ptr<TestLauncher> launcher_;
  fabric::Port last_client_ = 0;
};

}  // namespace perdura::systems::mcas::test
