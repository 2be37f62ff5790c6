// The plugin `replicate`, a client of another shard: what is acknowledged is on both, and what the
// other shard does not have is not acknowledged (MCAS, section 2: back-flow).
#include "systems/mcas/ado/plugins/replicate.h"

#include <random>

#include "systems/mcas/ado/codec.h"

#include "tests/support/seed.h"
#include "tests/systems/mcas/invocations/replicate_support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using objects::Error;

class Replicates : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Replicates, testing::Values("sim", "shm"), platform_name);

// Overwrites the value, in place or, if it is told a length, of another length.
Task<ado::Result> overwrite(ado::Services& services, const ado::Invocation& work) {
  if (work.is_signal()) co_return ado::Result{};
  const auto value = co_await services.resize_value(work.key, work.request.size());
  if (!value) co_return ado::Result{{}, "out of space"};
  const ByteRange range = value.value;
  if (range.length != work.request.size()) co_return ado::Result{{}, "it lies in the table"};
  services.memory().region().write(range.offset, as_key(work.request));
  services.memory().persist(range);
  co_return ado::Result{{"overwritten"}, {}};
}
MakePlugins overwriting() {
  return [](const std::vector<std::string>&) {
    ado::Plugins plugins;
    plugins.push_back(std::make_unique<Function>(overwrite));
    plugins.push_back(std::make_unique<ado::Replicate>());
    return plugins;
  };
}

// Any changes, compared with a map after each: both shards have what it has.
TEST_P(Replicates, BothShardsHaveWhatIsAcknowledged) {
  const unsigned seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Cluster cluster(GetParam(), replicating(std::string(kFunction) + ",replicate"), overwriting());
  cluster.serve_peer(config_with(""));
  cluster.run([&](objects::Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    const auto memory = thread.node.create_region("direct", 4 * KiB, pmem::Medium::dram);
    const objects::DirectMemory direct = *session.register_direct_memory(*memory);
    const auto peer = co_await cluster.connect_to_peer(thread);
    std::unique_ptr<objects::Pool> copy;
    std::map<std::string, std::string> model;
    for (int i = 0; i < 300; ++i) {
      const std::string key = "key" + std::string(random() % 5 * 10, 'k');
      constexpr Bytes kLengths[] = {0, 1, 8, 16, 17, 64, 100, 1000, 2 * KiB};
      const std::string value(kLengths[random() % std::size(kLengths)],
                              static_cast<char>('a' + random() % 26));
      switch (random() % 5) {
        case 0:
        case 1:
          EXPECT_FALSE(error_of(co_await pool->put(as_key(key), as_key(value), {})));
          model[key] = value;
          break;
        case 2:
          EXPECT_EQ(error_of(co_await pool->erase(as_key(key))),
                    model.erase(key) == 1 ? std::nullopt : std::optional(Error::not_found));
          break;
        case 3: {
          const std::string longer = value + std::string(17, 'i');
          const std::string_view request = std::string_view(longer).substr(0, KiB);
          EXPECT_EQ(answer_of(co_await pool->invoke(as_key(key), as_key(request), 100,
                                                    {.create_on_demand = true})),
                    "overwritten");
          model[key] = request;
          break;
        }
        default: {
          const std::string other = value + "d";
          const Bytes length = std::min<Bytes>(other.size(), 2 * KiB);
          memory->write(0, as_key(std::string_view(other).substr(0, length)));
          EXPECT_FALSE(error_of(co_await pool->put_direct(as_key(key), {direct, 0, length}, {})));
          model[key] = other.substr(0, length);
        }
      }
      if (!copy && !model.empty()) copy = *co_await peer->open_pool("pool", {});
      const auto expected = model.find(key);
      const std::optional<std::string> text =
          expected == model.end() ? std::nullopt : std::optional(expected->second);
      EXPECT_EQ(co_await value_in(*pool, key), text) << i;
      if (copy) {
        EXPECT_EQ(co_await value_in(*copy, key), text) << i;
      }
    }
    for (const auto& [key, value] : model) EXPECT_EQ(co_await value_in(*copy, key), value) << key;
    EXPECT_EQ((co_await copy->attributes())->items, model.size());
    EXPECT_EQ((co_await peer->statistics())->sessions, 2U) << "one connection was enough";
    session.unregister_direct_memory(direct);
  });
}

// Several clients' changes of the same keys end alike on both shards.
TEST_P(Replicates, ConcurrentChangesEndAlike) {
  Cluster cluster(GetParam(), replicating());
  cluster.serve_peer(config_with(""));
  cluster.serve();
  constexpr int kClients = 3;
  std::atomic<int> done = 0;
  for (int client = 0; client < kClients; ++client) {
    cluster.connect([&, client](objects::Session& session, Thread& thread) -> Task<> {
      const auto pool = *co_await session.open_pool("pool", {.create_on_demand = true}, MiB);
      for (int i = 0; i < 60; ++i) {
        const std::string key = "key" + std::to_string(i % 3);
        const std::string value = std::to_string(client) + std::string(1 + i, 'v');
        if (i % 7 == 6) {
          co_await pool->erase(as_key(key));
        } else {
          EXPECT_FALSE(error_of(co_await pool->put(as_key(key), as_key(value), {})));
        }
      }
      if (++done < kClients) {
        while (done < kClients) co_await sleep_for(Microseconds(100));
        co_return;
      }
      const auto peer = co_await cluster.connect_to_peer(thread);
      const auto copy = *co_await peer->open_pool("pool", {});
      for (int i = 0; i < 3; ++i) {
        const std::string key = "key" + std::to_string(i);
        EXPECT_EQ(co_await value_in(*copy, key), co_await value_in(*pool, key));
      }
    });
  }
  cluster.platform().run();
  EXPECT_EQ(done, kClients);
}

TEST_P(Replicates, WithoutThePeerChangesFailAndReadsDoNot) {
  objects::Config config = replicating();
  config.parameters["plugin_patience"] = 400;
  Cluster cluster(GetParam(), config);
  auto serving = cluster.serve_peer(config_with(""));
  cluster.run([&](objects::Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key("first"), {})));
    serving->stop();
    EXPECT_EQ(error_of(co_await pool->put(as_key("key"), as_key("second"), {})), Error::failed);
    EXPECT_EQ(error_of(co_await pool->put(as_key("key"), as_key("third"), {})), Error::failed);
    EXPECT_EQ(co_await value_in(*pool, "key"), "third");
    EXPECT_EQ(cluster.launcher().running, 1) << "its process need not be ended";
    EXPECT_EQ(cluster.launcher().orders.size(), 1U);
    serving = cluster.serve_peer(config_with(""));
    const auto peer = co_await cluster.connect_to_peer(thread);
    {
      const auto copy = *co_await peer->open_pool("pool", {});
      EXPECT_EQ(co_await value_in(*copy, "key"), "first");
      EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key("fourth"), {})));
      EXPECT_EQ(co_await value_in(*copy, "key"), "fourth");
      EXPECT_FALSE(error_of(co_await pool->erase(as_key("key"))));
      EXPECT_EQ(co_await value_in(*copy, "key"), std::nullopt);
    }
    // The connection of before is broken, which says nothing of the peer.
    serving->stop();
    serving = cluster.serve_peer(config_with(""));
    EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key("fifth"), {})));
  });
}

// What the peer does not take is not acknowledged, and harms nothing.
TEST_P(Replicates, WhatThePeerDoesNotTakeFails) {
  Cluster cluster(GetParam(), replicating());
  objects::Config small = config_with("");
  small.max_message_value = 512;
  cluster.serve_peer(small);
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    const std::string value(513, 'v');
    EXPECT_EQ(error_of(co_await pool->put(as_key("key"), as_key(value), {})), Error::failed);
    EXPECT_FALSE(
        error_of(co_await pool->put(as_key("key"), as_key(std::string_view(value).substr(1)), {})));
    EXPECT_EQ(cluster.launcher().orders.size(), 1U);
  });
}

// What a process sends, only its own connection suffers from; and there is one peer, or none.
TEST_P(Replicates, AHostilePluginHarmsItsOwnConnection) {
  const auto hostile = [](ado::Services& services,
                          const ado::Invocation& work) -> Task<ado::Result> {
    if (work.is_signal()) co_return ado::Result{};
    const std::string hello(sizeof(Hello), '\0');
    const std::string too_long(fabric::kMaxPrivateData + 1, 'h');
    const std::string right = ado::encoded(std::uint64_t{kProtocolVersion}).substr(0, hello.size());
    std::string said;
    const auto say = [&](ado::CallStatus status) {
      said += std::to_string(static_cast<int>(status)) + " ";
    };
    say(co_await services.send_to_peer("unasked"));
    say((co_await services.connect_peer(too_long)).status);
    say((co_await services.connect_peer(hello)).status);
    for (int i = 0; i < 3; ++i) say((co_await services.connect_peer(right)).status);
    say(co_await services.send_to_peer(""));
    const std::string long_message(64 * KiB, 'm');
    say(co_await services.send_to_peer(long_message));
    say(co_await services.send_to_peer("garbage"));
    say((co_await services.receive_from_peer()).status);
    say((co_await services.receive_from_peer()).status);
    say(co_await services.send_to_peer("garbage"));
    co_return ado::Result{{said}, {}};
  };
  const auto number = [](ado::CallStatus status) {
    return std::to_string(static_cast<int>(status)) + " ";
  };
  const std::string refused = number(ado::CallStatus::refused);
  const std::string ended = number(ado::CallStatus::disconnected);
  const std::string done = number(ado::CallStatus::done);
  for (const bool has_peer : {true, false}) {
    GivenParameters parameters;
    if (has_peer) parameters["plugin_peer"] = kPeerNode;
    Cluster cluster(GetParam(), config_with(kFunction, parameters), function(hostile));
    cluster.serve_peer(config_with(""));
    cluster.run([&](objects::Session& session, Thread& thread) -> Task<> {
      const auto peer = co_await cluster.connect_to_peer(thread);
      const auto pool = *co_await session.create_pool("pool", MiB, {});
      const auto said =
          co_await pool->invoke(as_key("key"), as_key("attack"), 8, {.create_on_demand = true});
      EXPECT_EQ(answer_of(said), has_peer
                                     ? ended + refused + ended + done + done + done + refused +
                                           refused + done + ended + ended + ended
                                     : ended + refused + refused + refused + refused + refused +
                                           ended + ended + ended + ended + ended + ended);
      // The peer notices the ends of connections one by one.
      while ((co_await peer->statistics())->sessions > 1) co_await sleep_for(Microseconds(100));
    });
  }
}

// The process dies at any moment of a put: either that fails, or the peer has it.
TEST(ReplicateProcess, MayDieAtAnyMoment) {
  int failed = 0;
  for (int moment = 0; moment < 120; ++moment) {
    SCOPED_TRACE(testing::Message() << "moment " << moment);
    Cluster cluster("sim", replicating());
    cluster.serve_peer(config_with(""));
    cluster.run([&](objects::Session& session, Thread& thread) -> Task<> {
      const auto pool = *co_await session.create_pool("pool", MiB, {});
      const auto peer = co_await cluster.connect_to_peer(thread);
      EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key("0"), {})));
      const auto copy = *co_await peer->open_pool("pool", {});
      const NodeId process = cluster.launcher().process_node();
      cluster.sim().at(thread.executor.now() + Picoseconds(Microseconds(1)) * moment,
                       [&, process] { cluster.sim().kill(process); });
      for (int i = 1; i < 8; ++i) {
        const std::string value = std::to_string(i);
        const auto error = error_of(co_await pool->put(as_key("key"), as_key(value), {}));
        if (error) {
          EXPECT_EQ(error, Error::failed);
          ++failed;
        } else {
          EXPECT_EQ(co_await value_in(*copy, "key"), value);
        }
      }
      EXPECT_EQ((co_await peer->statistics())->sessions, 2U) << "the dead one's has ended";
    });
  }
  EXPECT_GT(failed, 20);
}

TEST(ReplicateParameters, SayWhatIsMissing) {
  const auto problem = [](objects::Config config) {
    try {
      Parameters::of(config);
      return std::string("none");
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(problem(replicating()), "none");
  objects::Config config = replicating();
  config.parameters.erase("plugin_peer");
  EXPECT_EQ(problem(config),
            "mcas: the plugin replicate needs plugin_peer, the node of the other shard");
  config = replicating();
  config.parameters.erase("plugin_consent");
  EXPECT_EQ(problem(config),
            "mcas: the plugin replicate needs plugin_signals = true and plugin_consent = true");
  config.parameters["plugin_signals"] = false;
  config.parameters["plugin_consent"] = true;
  EXPECT_EQ(problem(config), "mcas: plugin_consent needs plugin_signals = true");
}

TEST(ReplicateParameters, AShardIsNoClientOfItself) {
  objects::Config config = replicating();
  config.parameters["plugin_peer"] = kShardNode;
  Cluster cluster("sim", config);
  cluster.serve();
  cluster.connect([](objects::Session&, Thread&) -> Task<> { co_return; });
  EXPECT_THROW(cluster.platform().run(), UsageError);
}

}  // namespace
}  // namespace perdura::systems::mcas
