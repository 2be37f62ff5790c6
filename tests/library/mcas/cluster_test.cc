// Clients of several shards: every key is where all clients look for it, keys go where they belong
// when shards join or leave, and clients and shards are told who is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>

#include "tests/library/mcas/support.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::Cluster;
using mcas::ClusterEvent;
using mcas::ClusterPool;
using mcas::Status;

constexpr int kItems = 300;
std::string item_key(int key) { return "key " + std::to_string(key); }
std::string item_value(int key) { return "value " + std::to_string(key); }

class McasCluster : public testing::Test {
 protected:
  McasCluster() { shards_.start_all(); }
  // How many items the shard's own pool has.
  std::uint64_t items(unsigned shard) {
    Client client(shards_.client(shard));
    mcas::Result<mcas::Pool> pool = client.open_pool("p");
    return pool.ok() ? pool.value().attributes().value().items : 0;
  }
  static void expect_all(ClusterPool& pool) {
    for (int i = 0; i < kItems; ++i) ASSERT_EQ(pool.get(item_key(i)).value(), item_value(i)) << i;
  }
  static void fill(ClusterPool& pool) {
    for (int i = 0; i < kItems; ++i) ASSERT_TRUE(pool.put(item_key(i), item_value(i)).ok()) << i;
  }

  Shards shards_{3};
};

TEST_F(McasCluster, AllClientsLookForAKeyOnTheSameShard) {
  Cluster cluster(shards_.cluster());
  ClusterPool pool = cluster.pool("p", kPool);
  fill(pool);
  mcas::ClusterOptions options = shards_.cluster();
  std::reverse(options.shards.begin(), options.shards.end());
  Cluster other(options);
  ClusterPool again = other.pool("p", kPool);
  expect_all(again);
  // Each key is on its own shard only.
  std::map<std::string, std::uint64_t> owned;
  for (int i = 0; i < kItems; ++i) ++owned[cluster.owner(item_key(i))];
  ASSERT_EQ(owned.size(), 3U);
  for (unsigned shard = 0; shard < 3; ++shard) EXPECT_EQ(items(shard), owned[Shards::name(shard)]);
  EXPECT_TRUE(again.erase(item_key(7)).ok());
  EXPECT_EQ(pool.get(item_key(7)).status(), Status::not_found);
}

TEST_F(McasCluster, DeletesAPoolOnAllShards) {
  Cluster cluster(shards_.cluster());
  {
    ClusterPool pool = cluster.pool("p", kPool);
    fill(pool);
    EXPECT_EQ(cluster.delete_pool("p").status(), Status::busy);
  }
  EXPECT_TRUE(cluster.delete_pool("p").ok());
  for (unsigned shard = 0; shard < 3; ++shard) EXPECT_EQ(items(shard), 0U);
  ClusterPool pool = cluster.pool("p", kPool);
  EXPECT_EQ(pool.get(item_key(0)).status(), Status::not_found);
}

TEST_F(McasCluster, MovesTheKeysOfAShardThatJoinsOrLeavesAndNoOthers) {
  const std::vector<mcas::Shard> all = shards_.list();
  mcas::ClusterOptions options = shards_.cluster();
  options.shards.pop_back();
  Cluster cluster(options);
  ClusterPool pool = cluster.pool("p", kPool);
  fill(pool);
  mcas::DirectMemory memory = cluster.register_direct_memory(200'000).value();
  // Too long for a message.
  for (int i = 0; i < 20; ++i) {
    const std::string key = "long " + std::to_string(i);
    memory.bytes()[199'999] = static_cast<std::byte>(i);
    ASSERT_TRUE(pool.of(key).put_direct(key, {memory, 0, 200'000}).ok());
  }
  const auto expect_long_ones = [&] {
    for (int i = 0; i < 20; ++i) {
      const std::string key = "long " + std::to_string(i);
      ASSERT_EQ(pool.of(key).get_direct(key, {memory, 0, 200'000}).value(), 200'000U);
      EXPECT_EQ(memory.bytes()[199'999], static_cast<std::byte>(i));
    }
  };
  EXPECT_EQ(pool.move_keys(options.shards).status(), Status::unsupported) << "there is no index";
  for (unsigned shard = 0; shard < 3; ++shard) {
    Client client(shards_.client(shard));
    mcas::Pool one = client.open_pool("p", {.create_on_demand = true}, kPool).value();
    ASSERT_TRUE(one.configure("AddIndex::VolatileTree").ok());
  }
  EXPECT_EQ(pool.move_keys(options.shards).value(), 0U);
  const std::uint64_t before = items(0) + items(1);

  cluster.add(all[2]);
  EXPECT_EQ(cluster.shards().size(), 3U);
  // Put since the key belongs there: it is newer than what is moved.
  int newer = 0;
  while (cluster.owner(item_key(newer)) != all[2].name) ++newer;
  ASSERT_TRUE(pool.put(item_key(newer), "newer").ok());
  const std::uint64_t joined = pool.move_keys(options.shards).value();
  EXPECT_GT(joined, 0U);
  EXPECT_EQ(items(2), joined);
  EXPECT_EQ(items(0) + items(1) + items(2), before);
  EXPECT_EQ(pool.get(item_key(newer)).value(), "newer");
  ASSERT_TRUE(pool.put(item_key(newer), item_value(newer)).ok());
  expect_all(pool);
  expect_long_ones();

  cluster.remove(all[0].name);
  const std::uint64_t of_the_first = items(0);
  EXPECT_EQ(pool.move_keys({all[0]}).value(), of_the_first);
  EXPECT_EQ(items(0), 0U);
  shards_.kill(0);
  expect_all(pool);
  expect_long_ones();
  cluster.remove(all[1].name);
  EXPECT_THROW(cluster.remove(all[2].name), std::invalid_argument);
  EXPECT_EQ(pool.move_keys({all[1]}).value(), before - items(2));
  expect_all(pool);
}

TEST_F(McasCluster, TellsOfShardsThatJoinLeaveAndFail) {
  std::mutex mutex;
  std::map<std::string, std::vector<ClusterEvent>> told;
  mcas::ClusterOptions options = shards_.cluster();
  options.on_event = [&](const ClusterEvent& event) {
    const std::scoped_lock lock(mutex);
    told[event.shard].push_back(event);
  };
  Cluster cluster(options);
  const auto count = [&](const std::string& shard) {
    const std::scoped_lock lock(mutex);
    return told[shard].size();
  };
  ASSERT_TRUE(test::wait_until([&] { return count("a") + count("b") + count("c") == 3; }));
  EXPECT_TRUE(cluster.is_there("a"));
  EXPECT_FALSE(cluster.is_there("no such"));
  shards_.kill(0);
  ASSERT_TRUE(test::wait_until([&] { return count("a") == 2; }));
  EXPECT_FALSE(cluster.is_there("a"));
  shards_.start(0);
  ASSERT_TRUE(test::wait_until([&] { return count("a") == 3; }));
  EXPECT_TRUE(cluster.is_there("a"));
  const std::scoped_lock lock(mutex);
  EXPECT_EQ(told["a"][0].what, ClusterEvent::What::joined);
  EXPECT_EQ(told["a"][1].what, ClusterEvent::What::failed);
  EXPECT_EQ(told["a"][1].life, told["a"][0].life);
  EXPECT_EQ(told["a"][2].what, ClusterEvent::What::joined);
  EXPECT_GT(told["a"][2].life, told["a"][1].life);
}

TEST(McasClusterAlone, HasShardsOfOneKind) {
  const auto cluster = [](const std::string& first, const std::string& second) {
    const Cluster made({.job = "x", .shards = {{"a", 0, first}, {"b", 1, second}}});
  };
  EXPECT_THROW(cluster("", "10.0.0.1:4711"), std::invalid_argument);
  EXPECT_THROW(cluster("10.0.0.1:4711", ""), std::invalid_argument);
  EXPECT_THROW(cluster("10.0.0.1:4711", "10.0.0.1"), std::invalid_argument);
  EXPECT_THROW(Cluster({.job = "x", .shards = {}}), std::invalid_argument);
}

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
  return "nothing";
}

TEST_F(McasCluster, HasEachShardOnce) {
  const auto refusal = [&](std::vector<mcas::Shard> shards) {
    mcas::ClusterOptions options = shards_.cluster();
    options.shards = std::move(shards);
    return refusal_of([&] { const Cluster made(options); });
  };
  const std::vector<mcas::Shard> list = shards_.list();
  mcas::Shard same_node = list[1];
  same_node.node = list[0].node;
  mcas::Shard same_name = list[1];
  same_name.name = list[0].name;
  mcas::Shard nameless = list[1];
  nameless.name = "";
  const std::string of_node =
      "'a' and 'b' are both shard 0; give each its number in the configuration file";
  const std::string of_name =
      "two shards have the name 'a', numbers 0 and 1; name each of them once";
  EXPECT_EQ(refusal({list[0], same_node}), of_node);
  EXPECT_EQ(refusal({list[0], same_name}), of_name);
  EXPECT_EQ(refusal({nameless}), "shard 1 has no name; name it as the configuration file does");
  mcas::ClusterOptions options = shards_.cluster();
  options.shards = {list[0]};
  Cluster cluster(options);
  EXPECT_EQ(refusal_of([&] { cluster.add(same_node); }), of_node);
  EXPECT_EQ(refusal_of([&] { cluster.add(same_name); }), of_name);
  EXPECT_EQ(cluster.shards().size(), 1U);
  cluster.add(list[1]);
  cluster.remove(list[1].name);
  cluster.add(list[1]);
  EXPECT_EQ(cluster.shards().size(), 2U);
}

// One that a program names twice would be refused by itself.
TEST(McasServer, ServesNoShardTwice) {
  const Shards shards(1);
  EXPECT_EQ(refusal_of([&] {
              mcas::Server({.file = shards.file(), .shards = {"a", "a"}});
            }),
            shards.file() + ": the shard 'a' is to be served twice; name it once");
}

// The line names the device, and what of the file asks for it.
TEST(McasServer, SaysWhichDeviceIsMissing) {
  const Shards shards(1);
  const std::string file = shards.file() + ".other";
  std::ofstream(file)
      << "job = \"" << shards.job() << "\"\nplatform = \"verbs\"\n[verbs]\n"
      << "device = \"nosuch0\"\n[shards.a]\nnode = 0\naddress = \"127.0.0.1:4711\"\n";
  try {
    mcas::Server({.file = file});
    FAIL() << "it has a device that is not there";
  } catch (const std::exception& problem) {
    const std::string said = problem.what();
    if (said.find("without libibverbs") != std::string::npos) GTEST_SKIP() << said;
    EXPECT_TRUE(said.starts_with(file + ": ")) << said;
    for (const auto* what : {"[shards.a]", "platform", "'nosuch0'"}) {
      EXPECT_NE(said.find(what), std::string::npos) << said;
    }
    EXPECT_EQ(said.find("--platform"), std::string::npos) << said;
  }
}

std::string with(std::string text, const std::string& what, const std::string& instead) {
  return text.replace(text.find(what), what.size(), instead);
}

// Memory of other sizes: the line names the setting and both files.
TEST(McasServer, SaysWhichMemoryHasAnotherSize) {
  Shards shards(1);
  shards.start_all();
  { const Client client(shards.client()); }
  shards.kill(0);
  const std::string other = shards.file() + ".other";
  std::ofstream(other) << with(shards.text(), "memory = 33554432", "memory = 16777216");
  try {
    mcas::Server({.file = other}).run();
    FAIL() << "it takes memory of another size";
  } catch (const std::runtime_error& problem) {
    const std::string said = problem.what();
    EXPECT_TRUE(said.starts_with("shard a: " + other + ": [shards.a]: ")) << said;
    EXPECT_NE(said.find("memory for pools is 33554432 in it, here 16777216"), std::string::npos)
        << said;
    EXPECT_NE(said.find(shards.directory() + "/a"), std::string::npos) << said;
  }
}

// What can be seen of this host without serving is, by `check` as by a server.
TEST(McasServer, ChecksWhatThisHostHas) {
  use_programs_of_the_build();
  const Shards shards(1);
  const std::string other = shards.file() + ".other";
  const auto refusal = [&](const std::string& setting) {
    std::ofstream(other) << shards.text() << setting << "\n";
    const std::string said = refusal_of([&] { mcas::Server::check(other); });
    EXPECT_EQ(refusal_of([&] { const mcas::Server server({.file = other}); }), said);
    const std::string where = other + ": [shards.a]: ";
    return said.starts_with(where) ? said.substr(where.size()) : said;
  };
  const std::string no_plugin = "' is no shared object for this machine";
  EXPECT_EQ(refusal("plugins = [\"" + other + "\"]"), "plugin '" + other + no_plugin);
  EXPECT_EQ(refusal("plugins = [\"passthru\", \"/dev/null:argument\"]"),
            "plugin '/dev/null" + no_plugin);
  EXPECT_EQ(refusal("plugins = [\"" PERDURA_C_TEST "\"]"),
            "plugin '" PERDURA_C_TEST "' does not export 'perdura_mcas_plugin'");
  EXPECT_EQ(refusal("plugins = [\"/no/such.so\"]"),
            "plugin '/no/such.so' cannot be read: No such file or directory");
  EXPECT_TRUE(refusal("cores = [0, 65536]").starts_with("'cores' has 65536; this host has cores "));
  std::ofstream(other) << shards.text() << "plugins = [\"" PERDURA_TEST_PLUGIN ":argument\"]\n";
  EXPECT_EQ(mcas::Server::check(other).shards.size(), 1U);
}

// A shard that is stopped says so; the others, and clients, need no patience.
TEST(McasServer, ServesUntilItIsStoppedAndSaysGoodbye) {
  Shards shards(2);
  struct Told {
    std::atomic<int> serving{0};
    std::atomic<int> joined{0};
    std::atomic<int> failed{0};
    std::atomic<bool> stop{false};
  };
  Shared<Told> told;
  Child both([&] {
    mcas::ServerOptions options{.file = shards.file()};
    options.on_serving = [&](const std::string&) { ++told->serving; };
    options.on_event = [&](const std::string& shard, const ClusterEvent& event) {
      if (shard == event.shard) ++told->failed;
      using What = ClusterEvent::What;
      // One that stops at the same time may no longer hear that the other has left.
      if (event.what == What::joined) ++told->joined;
      if (event.what == What::failed) ++told->failed;
    };
    mcas::Server server(options);
    std::thread stopper([&] {
      test::wait_until([&] { return told->stop.load(); });
      server.stop();
    });
    server.run();
    stopper.join();
  });
  ASSERT_TRUE(test::wait_until([&] { return told->serving == 2 && told->joined == 2; }));
  {
    std::atomic<int> left{0};
    mcas::ClusterOptions options = shards.cluster();
    options.on_event = [&](const ClusterEvent& event) {
      left += event.what == ClusterEvent::What::left ? 1 : 0;
    };
    Cluster cluster(options);
    ClusterPool pool = cluster.pool("p", kPool);
    ASSERT_TRUE(pool.put("k", "v").ok());
    ASSERT_TRUE(test::wait_until([&] { return cluster.is_there("a") && cluster.is_there("b"); }));
    told->stop = true;
    EXPECT_EQ(both.wait(), 0);
    EXPECT_TRUE(test::wait_until([&] { return left == 2; }));
  }
  EXPECT_EQ(told->failed, 0);
}

TEST(McasServer, IsRefusedWhatIsServedAlready) {
  Shards shards(1);
  shards.start_all();
  Client client(shards.client());
  try {
    mcas::Server({.file = shards.file()});
    FAIL() << "two processes serve it";
  } catch (const std::runtime_error& problem) {
    EXPECT_NE(std::string(problem.what()).find("served already"), std::string::npos)
        << problem.what();
  }
  // By another job, which has the same directory.
  std::string text = shards.text();
  const std::string other = shards.file() + ".other";
  text.insert(text.find('"') + 1 + shards.job().size(), "-other");
  if (const std::string address = shards.client().address; !address.empty()) {
    text.replace(text.find(address), address.size(), Shards::address());
  }
  std::ofstream(other) << text;
  mcas::Server server({.file = other});
  try {
    server.run();
    FAIL() << "two jobs serve it";
  } catch (const std::runtime_error& problem) {
    EXPECT_NE(std::string(problem.what()).find("by another job"), std::string::npos)
        << problem.what();
  }
}

}  // namespace
}  // namespace perdura::library_test
