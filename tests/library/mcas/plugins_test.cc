// Plugins of shards that are processes, in isolated processes of their own where this machine can
// isolate any: they are told of the cluster, and are clients of another shard.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/library/mcas/support.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::Pool;
using mcas::Status;

const char* isolation() {
  ::setenv("PERDURA_PROGRAMS", PERDURA_TEST_PROGRAMS, 1);
  return ::geteuid() == 0 ? "" : "plugin_isolation = false\n";
}

TEST(McasPlugins, AreToldOfShardsThatJoinAndFail) {
  Shards shards(2, std::string("plugins = [\"" PERDURA_TEST_PLUGIN "\"]\n") + isolation());
  shards.start(0);
  Client client(shards.client(0));
  Pool pool = client.open_pool("p", {.create_on_demand = true}, kPool).value();
  const auto told = [&] {
    return pool.invoke("key", "?", 8, {.create_on_demand = true}).value().at(0);
  };
  EXPECT_EQ(told(), "");
  shards.start(1);
  EXPECT_TRUE(test::wait_until([&] { return told() == "JOIN b;"; })) << told();
  shards.kill(1);
  EXPECT_TRUE(test::wait_until([&] { return told() == "JOIN b;FAIL b;"; })) << told();
  shards.start(1);
  EXPECT_TRUE(test::wait_until([&] { return told() == "JOIN b;FAIL b;JOIN b;"; })) << told();
}

TEST(McasPlugins, CopyToAnotherShard) {
  Shards shards(2, isolation(),
                {"plugins = [\"replicate\"]\nplugin_signals = true\nplugin_consent = true\n"
                 "plugin_peer = 1\nplugin_patience = 2000\n"});
  shards.start_all();
  {
    Client right(shards.client(1));
    Client left(shards.client(0));
    Pool pool = left.open_pool("p", {.create_on_demand = true}, kPool).value();
    ASSERT_TRUE(pool.put("small", "s").ok());
    ASSERT_TRUE(pool.put("large", std::string(5000, 'l')).ok());
    Pool copy = right.open_pool("p").value();
    EXPECT_EQ(copy.get("small").value(), "s");
    EXPECT_EQ(copy.get("large").value(), std::string(5000, 'l'));
    ASSERT_TRUE(pool.erase("large").ok());
    EXPECT_EQ(copy.get("large").status(), Status::not_found);
    shards.kill(1);
    EXPECT_EQ(pool.put("small", "alone").status(), Status::failed);
    shards.start(1);
    EXPECT_TRUE(test::wait_until([&] { return pool.put("small", "both").ok(); }));
  }
  shards.kill(0);
  Client right(shards.client(1));
  EXPECT_EQ(right.open_pool("p").value().get("small").value(), "both");
}

}  // namespace
}  // namespace perdura::library_test
