// What happens to other members of a shard's cluster reaches the plugins of all processes that run,
// in order, and those that are launched later know who is there (MCAS, section 5).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mutex>

#include "systems/mcas/cluster/beacon.h"
#include "systems/mcas/cluster/watcher.h"
#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using Event = objects::MemberEvent;
using What = Event::What;

constexpr cluster::Timing kTiming{.heartbeat = Milliseconds(5), .patience = Milliseconds(100)};
constexpr fabric::Port kBeacon = 7;
constexpr int kMostQuestions = 10'000;  // until a test takes an event for lost

// Answers "events" with what its process was told so far.
class Listener final : public ado::Plugin {
 public:
  explicit Listener(Function::Body other) : other_(std::move(other)) {}
  Task<ado::Result> do_work(ado::Services& services, const ado::Invocation& work) override {
    if (work.request != "events") co_return co_await other_(services, work);
    co_return ado::Result{{fmt::format("{}", fmt::join(told_, "; "))}, {}};
  }
  void cluster_event(const ado::ClusterEvent& event) override {
    told_.push_back(event.type + " " + event.sender + " " + event.message);
  }

 private:
  Function::Body other_;
  std::vector<std::string> told_;
};

Task<ado::Result> nothing(ado::Services&, const ado::Invocation&) { co_return ado::Result{}; }
MakePlugins listening(Function::Body other = nothing) {
  return [other = std::move(other)](const std::vector<std::string>&) {
    ado::Plugins plugins;
    plugins.push_back(std::make_unique<Listener>(other));
    return plugins;
  };
}

Task<std::string> events(objects::Pool& pool) {
  const std::string request = "events";
  co_return answer_of(
      co_await pool.invoke(as_key("key"), as_key(request), 8, {.create_on_demand = true}));
}
Task<> until(objects::Pool& pool, std::string text) {
  std::string told;
  for (int i = 0; i < kMostQuestions && (told = co_await events(pool)) != text; ++i) {
    co_await sleep_for(Milliseconds(1));
  }
  EXPECT_EQ(told, text);
}

// Waits until more was told than this, and returns all of it.
Task<std::string> more_than(objects::Pool& pool, std::string text) {
  std::string told;
  for (int i = 0; i < kMostQuestions && (told = co_await events(pool)) == text; ++i) {
    co_await sleep_for(Milliseconds(1));
  }
  co_return told;
}

// Events that a test hands to a shard, on the shard's thread.
class Events {
 public:
  explicit Events(Cluster& cluster) {
    cluster.beside_shard = [this](Thread& thread, std::shared_ptr<Shard> shard) {
      thread.executor.spawn(hand_over(std::move(shard)));
      return nullptr;
    };
  }
  Task<> tell(What what, std::string member, std::uint64_t life) {
    {
      const std::scoped_lock lock(mutex_);
      line_.push_back({what, std::move(member), life});
      ++told_;
    }
    while (handed_ != told_) co_await sleep_for(Microseconds(20));
  }

 private:
  Task<> hand_over(std::shared_ptr<Shard> shard) {
    for (;;) {
      {
        const std::scoped_lock lock(mutex_);
        for (const Event& event : std::exchange(line_, {})) {
          shard->cluster_event(event);
          ++handed_;
        }
      }
      co_await sleep_for(Microseconds(20));
    }
  }

  std::mutex mutex_;
  std::vector<Event> line_;
  std::size_t told_ = 0;
  std::atomic<std::size_t> handed_ = 0;
};

class ClusterEvents : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, ClusterEvents, testing::Values("sim", "shm"), platform_name);

// Of a member that is watched by its heartbeats.
TEST_P(ClusterEvents, PluginsHearOfAJoinALeaveAndAFailure) {
  Cluster cluster(GetParam(), config_with(kFunction), listening());
  cluster.beside_shard = [](Thread& thread, const std::shared_ptr<Shard>& shard) {
    auto watcher = std::make_shared<cluster::Watcher>(
        thread, kTiming, [shard](const Event& event) { shard->cluster_event(event); });
    watcher->add({"peer", {kPeerNode, kBeacon}});
    return watcher;
  };
  std::atomic<bool> leaves = false;
  std::atomic<std::uint64_t> life = 0;
  const auto begin_life = [&] {
    return cluster.platform().start_service(
        kPeerNode, kBeacon, CompletionMode::event, [&](Thread& thread) -> Task<> {
          ++life;
          const auto beacon = std::make_shared<cluster::Beacon>(thread, kTiming, life);
          thread.executor.spawn(beacon->serve());
          while (!leaves) co_await sleep_for(Milliseconds(1));
          co_await beacon->leave();
          WaitList never;
          co_await wait(never);
        });
  };
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_EQ(co_await events(*pool), "");
    auto member = begin_life();
    std::string told = co_await more_than(*pool, "");
    EXPECT_TRUE(told.starts_with("JOIN peer ")) << told;
    if (!told.starts_with("JOIN peer ")) co_return;
    const std::string first = told.substr(std::string("JOIN peer ").size());
    leaves = true;
    co_await until(*pool, told + "; LEAVE peer " + first);
    member->stop();
    leaves = false;
    member = begin_life();
    const std::string before = told + "; LEAVE peer " + first;
    told = co_await more_than(*pool, before);
    EXPECT_TRUE(told.starts_with(before + "; JOIN peer ")) << told;
    if (!told.starts_with(before + "; JOIN peer ")) co_return;
    const std::string second = told.substr((before + "; JOIN peer ").size());
    EXPECT_GT(std::stoull(second), std::stoull(first));
    member->stop();  // without a word
    co_await until(*pool, told + "; FAIL peer " + second);
  });
}

// More than the queue to the process has room for.
TEST_P(ClusterEvents, NothingIsLostWhileTheProcessIsBusy) {
  constexpr int kEvents = 3 * static_cast<int>(ado::kQueue.slots);
  std::atomic<bool> busy = false;
  std::atomic<bool> released = false;
  const auto work = [&](ado::Services&, const ado::Invocation&) -> Task<ado::Result> {
    busy = true;
    while (!released) co_await sleep_for(Microseconds(20));
    co_return ado::Result{{"done"}, {}};
  };
  objects::Config config = config_with(kFunction);
  config.max_message_value = 16 * KiB;
  Cluster cluster(GetParam(), config, listening(work));
  Events events_of_shard(cluster);
  std::string all;
  cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
    while (!busy) co_await sleep_for(Microseconds(20));
    for (int i = 0; i < kEvents; ++i) {
      const std::string member = "m" + std::to_string(i % 7);
      co_await events_of_shard.tell(i % 2 == 0 ? What::joined : What::left, member, i);
      all +=
          fmt::format("{}{} {} {}", i == 0 ? "" : "; ", i % 2 == 0 ? "JOIN" : "LEAVE", member, i);
    }
    released = true;
    (void)session;
  });
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_EQ(answer_of(co_await pool->invoke(as_key("key"), as_key("work"), 8,
                                              {.create_on_demand = true})),
              "done");
    EXPECT_EQ(co_await events(*pool), all);
  });
}

TEST_P(ClusterEvents, AProcessThatIsLaunchedLaterKnowsWhoIsThere) {
  Cluster cluster(GetParam(), config_with(kFunction), listening());
  Events shard(cluster);
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    co_await shard.tell(What::joined, "left", 1);
    co_await shard.tell(What::joined, "right", 2);
    auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_EQ(co_await events(*pool), "JOIN left 1; JOIN right 2");
    co_await shard.tell(What::failed, "left", 1);
    EXPECT_EQ(co_await events(*pool), "JOIN left 1; JOIN right 2; FAIL left 1");
    // Another pool has a process of its own.
    const auto other = *co_await session.create_pool("other", MiB, {});
    EXPECT_EQ(co_await events(*other), "JOIN right 2");
    EXPECT_FALSE(error_of(co_await pool->close()));
    co_await until_running(cluster.launcher(), 1);
    co_await shard.tell(What::joined, "left", 3);
    co_await shard.tell(What::left, "right", 2);
    EXPECT_EQ(co_await events(*other), "JOIN right 2; JOIN left 3; LEAVE right 2");
    pool = *co_await session.open_pool("pool", {});
    EXPECT_EQ(co_await events(*pool), "JOIN left 3");
  });
}

// As a plugin that throws while it works. Others that are called behind it hear of the event.
TEST_P(ClusterEvents, APluginThatThrowsEndsNeitherItsProcessNorWhatOthersHear) {
  class Thrower final : public ado::Plugin {
   public:
    Task<ado::Result> do_work(ado::Services&, const ado::Invocation&) override {
      co_return ado::Result{};
    }
    void cluster_event(const ado::ClusterEvent& event) override {
      throw std::runtime_error(event.sender + " is not welcome");
    }
    void shut_down() override { throw "not yet"; }
  };
  const auto plugins = [](const std::vector<std::string>& names) {
    ado::Plugins both;
    both.push_back(std::make_unique<Thrower>());
    both.push_back(std::move(listening()(names).front()));
    return both;
  };
  Cluster cluster(GetParam(), config_with(kFunction), plugins);
  Events shard(cluster);
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    co_await shard.tell(What::joined, "before", 1);
    EXPECT_EQ(co_await events(*pool), "JOIN before 1");
    co_await shard.tell(What::joined, "a", 2);
    co_await shard.tell(What::failed, "a", 2);
    EXPECT_EQ(co_await events(*pool), "JOIN before 1; JOIN a 2; FAIL a 2");
    EXPECT_EQ(cluster.launcher().orders.size(), 1U) << "it is the same process";
    co_await pool->close();
    co_await until_running(cluster.launcher(), 0);
  });
}

// A process dies at any time while events come: the next one knows who is there, and what comes
// then.
TEST(ClusterEventsOfTheDead, HarmNothing) {
  for (int moment = 0; moment < 40; ++moment) {
    SCOPED_TRACE(testing::Message() << "moment " << moment);
    Cluster cluster("sim", config_with(kFunction), listening());
    Events shard(cluster);
    cluster.run([&](objects::Session& session, Thread& thread) -> Task<> {
      const auto pool = *co_await session.create_pool("pool", MiB, {});
      EXPECT_EQ(co_await events(*pool), "");
      const NodeId process = cluster.launcher().process_node();
      cluster.sim().at(thread.executor.now() + Picoseconds(Microseconds(3)) * moment,
                       [&, process] { cluster.sim().kill(process); });
      for (std::uint64_t i = 0; i < 5; ++i) co_await shard.tell(What::joined, "a", i);
      co_await shard.tell(What::failed, "a", 4);
      co_await shard.tell(What::joined, "b", 9);
      co_await sleep_for(Microseconds(200));
      EXPECT_EQ(co_await events(*pool), "JOIN b 9");
      co_await shard.tell(What::left, "b", 9);
      EXPECT_EQ(co_await events(*pool), "JOIN b 9; LEAVE b 9");
    });
  }
}

}  // namespace
}  // namespace perdura::systems::mcas
