// The power of either shard fails at every moment of puts and erases that `replicate` copies: each
// that was acknowledged is on the other shard, and on the one that failed, too.
#include <fmt/format.h>

#include "platform/sim/failures.h"
#include "tests/systems/mcas/invocations/replicate_support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;

objects::Config small(objects::Config config, const std::string& engine) {
  config.memory = 64 * KiB;
  config.max_message_value = 256;
  config.sessions = 3;
  config.parameters["engine"] = engine;
  config.parameters["first_segment"] = 4;
  config.parameters["heap_region"] = 4 * KiB;
  config.parameters["pools"] = 2;
  config.parameters["queue_depth"] = 2;
  return config;
}

// A change of the key, which has no value if it is erased.
struct Change {
  const char* key;
  std::optional<std::string> value;
};
const Change kChanges[] = {
    {"a", "inlined"},    {"b", std::string(100, 'b')}, {"a", std::string(60, 'a')},
    {"b", std::nullopt}, {"a", std::string(40, 'c')},  {"b", ""}};

// The values that a key may have: that of the last acknowledged change, and of one that was not.
struct Known {
  std::optional<std::string> acknowledged{};
  std::optional<std::string> other{};
};

class ReplicateCrash : public testing::TestWithParam<std::string> {
 protected:
  // Fails the power of this node's machine; what is acknowledged is on both shards afterwards.
  static void explore(const std::string& engine, NodeId fails);
};
INSTANTIATE_TEST_SUITE_P(Engines, ReplicateCrash, testing::Values("hstore", "hstore-cc"),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param == "hstore" ? "Hstore" : "HstoreCc";
                         });

void ReplicateCrash::explore(const std::string& engine, NodeId fails) {
  const objects::Config config = small(replicating("replicate", {{"plugin_patience", 1}}), engine);
  const objects::Config peer_config = small(config_with(""), engine);
  const auto explored = sim::explore_failures(
      {.images = sim::Images::all, .most_images = 8}, [&](sim::Failure& failure) {
        SCOPED_TRACE(failure.text());
        Cluster cluster("sim", config);
        cluster.sim().track_durability({pmem::PersistenceDomain::dmp, false});
        failure.enable(false);
        std::map<std::string, Known> known;
        bool checked = false;
        const auto begin = [&](NodeId node) {
          if (node == kShardNode) {
            cluster.serve();
          } else {
            cluster.serve_peer(peer_config);
          }
        };
        const auto check = [&](objects::Pool& pool, const char* where) -> Task<> {
          for (const auto& [key, of] : known) {
            const std::optional<std::string> found = co_await value_in(pool, key);
            EXPECT_TRUE(found == of.acknowledged || found == of.other)
                << where << ": '" << found.value_or("(none)") << "' is neither '"
                << of.acknowledged.value_or("(none)") << "' nor '" << of.other.value_or("(none)")
                << "'";
          }
        };
        begin(kPeerNode);
        begin(kShardNode);
        cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
          const auto pool = *co_await session.create_pool("pool", 64 * KiB, {});
          EXPECT_FALSE(error_of(co_await pool->put(as_key("z"), as_key("first"), {})));
          known["z"] = {"first", "first"};
          failure.enable(true);
          for (const Change& change : kChanges) {
            Known& key = known[change.key];
            key.other = change.value;
            const std::string value = change.value.value_or("");
            auto changing = change.value ? pool->put(as_key(change.key), as_key(value), {})
                                         : pool->erase(as_key(change.key));
            const auto done = co_await std::move(changing);
            if (!done) {
              EXPECT_TRUE(failure.happened()) << objects::to_string(done.error());
              co_return;
            }
            key.acknowledged = change.value;
          }
          failure.enable(false);
        });
        failure.watch(cluster.sim(), [&](pmem::Choices& choices) {
          cluster.sim().fail_power(fails, choices);
          begin(fails);
          // Clients of the one that lives may have been answered just now.
          cluster.platform().start(
              kClientNode, 100, CompletionMode::event, [&](Thread& thread) -> Task<> {
                co_await sleep_for(Milliseconds(20));
                const auto peer = co_await cluster.connect_to_peer(thread);
                const auto copy = co_await peer->open_pool("pool", {});
                EXPECT_TRUE(copy.has_value());
                if (copy) co_await check(**copy, "the peer");
                const auto session = co_await cluster.connect_to(thread);
                const auto pool = *co_await session->open_pool("pool", {});
                co_await check(*pool, "the shard");
                EXPECT_FALSE(error_of(co_await pool->put(as_key("a"), as_key("new"), {})));
                EXPECT_EQ(co_await value_in(**copy, "a"), "new");
                checked = true;
              });
        });
        cluster.platform().run();
        EXPECT_EQ(checked, failure.happened());
      });
  EXPECT_GT(explored.runs, 200U);
}

TEST_P(ReplicateCrash, OfTheShard) { explore(GetParam(), kShardNode); }
TEST_P(ReplicateCrash, OfThePeer) { explore(GetParam(), kPeerNode); }

}  // namespace
}  // namespace perdura::systems::mcas
