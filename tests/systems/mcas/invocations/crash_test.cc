// Power failures while active data objects work, at each moment: what is acknowledged is there, and
// what is not is there whole or not at all.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>

#include "platform/sim/failures.h"
#include "systems/mcas/ado/plugins/versioning.h"
#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using ado::Versioning;
using Versions = std::deque<std::string>;

constexpr std::size_t kKept = 2;
const char* const kValues[] = {"first", "second, which is longer", ""};

MakePlugins small_versioning() {
  return [](const std::vector<std::string>&) {
    ado::Plugins plugins;
    plugins.push_back(std::make_unique<Versioning>(
        Versioning::Settings{.versions = kKept, .arena = 1024, .log = 256}));
    return plugins;
  };
}

Task<> put(objects::Pool& pool, const std::string& value) {
  const std::string request = Versioning::put_request();
  const auto done = co_await pool.invoke_put(
      as_key("key"), as_key(request), as_key(value), 1024,
      {.create_on_demand = true, .detached = true, .zero_new_value = true});
  EXPECT_EQ(answer_of(done), "") << value;
}

Task<Versions> versions_of(objects::Pool& pool) {
  Versions all;
  for (std::uint64_t back = 0;; ++back) {
    const std::string request = Versioning::get_request(back);
    const auto got = co_await pool.invoke(as_key("key"), as_key(request), 0, {.read_only = true});
    if (!got && got.error() == objects::Error::not_found) co_return all;
    const auto version = Versioning::version_of(answer_of(got));
    if (!version) co_return all;
    all.push_back(*version);
  }
}

Versions with(Versions versions, const std::string& value) {
  versions.push_front(value);
  if (versions.size() > kKept) versions.pop_back();
  return versions;
}

class InvocationsCrash : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Engines, InvocationsCrash, testing::Values("hstore", "hstore-cc"),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param == "hstore" ? "Hstore" : "HstoreCc";
                         });

// Puts with detached values; then everything is opened again.
TEST_P(InvocationsCrash, APutIsThereOrNot) {
  const auto explored = sim::explore_failures(
      {.images = sim::Images::all, .most_images = 30}, [&](sim::Failure& failure) {
        SCOPED_TRACE(failure.text());
        Cluster cluster("sim",
                        {.memory = 64 * KiB,
                         .max_message_value = 64,
                         .sessions = 2,
                         .parameters = {{"engine", GetParam()},
                                        {"plugins", kFunction},
                                        {"first_segment", 4},
                                        {"heap_region", 4 * KiB},
                                        {"pools", 2},
                                        {"queue_depth", 2}}},
                        small_versioning());
        cluster.sim().track_durability({pmem::PersistenceDomain::dmp, false});
        failure.enable(false);
        Versions before;
        Versions after;
        bool checked = false;
        cluster.serve();
        cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
          const auto pool = *co_await session.create_pool("pool", 64 * KiB, {});
          failure.enable(true);
          for (const char* value : kValues) {
            after = with(before, value);
            const std::string request = Versioning::put_request();
            const auto done = co_await pool->invoke_put(
                as_key("key"), as_key(request), as_key(value), 1024,
                {.create_on_demand = true, .detached = true, .zero_new_value = true});
            if (failure.happened()) co_return;
            EXPECT_EQ(answer_of(done), "") << value;
            before = after;
          }
          failure.enable(false);
        });
        failure.watch(cluster.sim(), [&](pmem::Choices& choices) {
          cluster.sim().fail_power(kShardNode, choices);
          cluster.serve();
          cluster.connect([&](objects::Session& session, Thread&) -> Task<> {
            const auto pool = *co_await session.open_pool("pool", {});
            const Versions found = co_await versions_of(*pool);
            EXPECT_TRUE(found == before || found == after)
                << fmt::format("{} is neither {} nor {}", found, before, after);
            co_await put(*pool, "new");
            EXPECT_EQ(co_await versions_of(*pool), with(found, "new"));
            checked = true;
          });
        });
        cluster.platform().run();
        EXPECT_EQ(checked, failure.happened());
      });
  EXPECT_GT(explored.runs, 300U);
}

}  // namespace
}  // namespace perdura::systems::mcas
