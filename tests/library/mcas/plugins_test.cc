// Plugins of shards that are processes, in isolated processes of their own where this machine can
// isolate any: they are told of the cluster.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/library/mcas/support.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::Pool;

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

}  // namespace
}  // namespace perdura::library_test
