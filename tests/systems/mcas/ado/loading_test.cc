// Which plugins a configuration may name, and what is said of those that it may not.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "platform/base/error.h"
#include "systems/mcas/ado/plugins/plugins.h"
#include "tests/systems/mcas/ado/fake_shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;

std::string problem_with(const std::string& name) {
  try {
    open_plugins({name});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(AdoPlugins, AreFoundByNameOrLoadedByPath) {
  EXPECT_EQ(open_plugins({"passthru", "versioning", "versioning:7", "aggregate"}).size(), 4U);
  EXPECT_EQ(open_plugins({PERDURA_TEST_PLUGIN, PERDURA_TEST_PLUGIN ":x"}).size(), 2U);
}

TEST(AdoPlugins, ThatCannotBeUsedAreNamedWithTheReason) {
  EXPECT_EQ(problem_with("pasthru"),
            "no plugin 'pasthru'; there are passthru, versioning, aggregate and replicate, and "
            "shared objects "
            "by their path, with a '/'");
  EXPECT_EQ(problem_with("passthru:1"), "plugin 'passthru' takes no argument; '1' was given");
  for (const char* argument : {"0", "-1", "4x", "many"}) {
    EXPECT_EQ(problem_with(std::string("versioning:") + argument),
              std::string("plugin 'versioning' takes how many versions it keeps, not '") +
                  argument + "'");
  }
  EXPECT_EQ(problem_with("./nowhere.so").find("plugin './nowhere.so' cannot be loaded: "), 0U);
  EXPECT_EQ(
      problem_with(PERDURA_LATER_PLUGIN),
      fmt::format("plugin '{}' was built for version {} of the interface, this program has version "
                  "{}; build it anew",
                  PERDURA_LATER_PLUGIN, ado::kPluginInterface + 1, ado::kPluginInterface));
  EXPECT_EQ(problem_with(PERDURA_TEST_PLUGIN ":unfit"),
            "plugin '" PERDURA_TEST_PLUGIN "' does not take the argument 'unfit'");
}

// A loaded plugin uses the program's own executor, memory and accounting.
TEST(AdoPlugins, LoadedOnesDoTheWork) {
  const auto plugins = [] { return open_plugins({PERDURA_TEST_PLUGIN ":length "}); };
  for (const std::string& platform : perdura::test::platform_names()) {
    SCOPED_TRACE(platform);
    run(platform, plugins, [](Shard& shard) -> Task<> {
      const std::vector<std::string> first{"length 5", "1"};
      EXPECT_EQ((co_await shard.invoke("key", "hello")).responses, first);
      const std::vector<std::string> second{"length 11", "1"};
      EXPECT_EQ((co_await shard.invoke("key", " world")).responses, second);
      EXPECT_EQ(shard.store.engine().get("key")->substr(8, 11), "hello world");
    });
  }
}

}  // namespace
}  // namespace perdura::systems::mcas::ado
