// The plugins that are built in.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "systems/mcas/ado/plugins/aggregate.h"
#include "systems/mcas/ado/plugins/versioning.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/ado/fake_shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;

constexpr Versioning::Settings kSmall{.versions = 3, .arena = 4096, .log = 512};

// MCAS, Appendix C: put, and get of an earlier version; as a model has them.
TEST(AdoPlugins, VersioningKeepsTheLastVersions) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto plugins = [] { return only(std::make_unique<Versioning>(kSmall)); };
  run("sim", plugins, [&](Shard& shard) -> Task<> {
    std::map<std::string, std::deque<std::string>> model;
    for (int i = 0; i < 200; ++i) {
      const std::string key = fmt::format("key {}", random() % 3);
      std::deque<std::string>& versions = model[key];
      if (random() % 2 == 0) {
        const std::string value = mcas::test::text_of(random() % 100, random() % 600);
        const CompletionMessage put = co_await shard.invoke(key, Versioning::put_request(value));
        EXPECT_EQ(put.status, WorkStatus::done) << put.error;
        versions.push_front(value);
        if (versions.size() > kSmall.versions) versions.pop_back();
      } else {
        const std::uint64_t back = random() % 4;
        const CompletionMessage got = co_await shard.invoke(key, Versioning::get_request(back));
        const auto version = Versioning::version_of(got.responses.at(0));
        EXPECT_EQ(version, back < versions.size() ? std::optional(versions[back]) : std::nullopt);
      }
    }
    EXPECT_EQ(
        (co_await shard.invoke("key 0", Versioning::put_request(std::string(5000, 'x')))).error,
        "out of space");
    EXPECT_EQ((co_await shard.invoke("key 0", "got")).error,
              "versioning takes 'put VALUE' and 'get NUMBER'");
    EXPECT_EQ((co_await shard.invoke("key 0", "get two")).status, WorkStatus::failed);
    const auto& versions = model["key 0"];
    for (std::uint64_t back = 0; back < versions.size(); ++back) {
      const CompletionMessage got = co_await shard.invoke("key 0", Versioning::get_request(back));
      EXPECT_EQ(Versioning::version_of(got.responses.at(0)), versions[back]);
    }
  });
}

// What the network carries does not grow with what is summed up.
TEST(AdoPlugins, AggregateSumsUpWhereTheValuesAre) {
  const auto plugins = [] { return only(std::make_unique<Aggregate>()); };
  run("sim", plugins, [](Shard& shard) -> Task<> {
    std::uint64_t expected = 0;
    Bytes of_values = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      std::string value(i % 2 == 0 ? 8 : 100, '\0');  // in the table, and in the heap
      std::memcpy(value.data(), &i, sizeof i);
      shard.store.engine().put(fmt::format("row {:03}", i), value);
      if (i < 100 || i > 249) continue;
      expected += i;
      of_values += value.size();
    }
    shard.store.engine().put("row 200x", "short");
    const CompletionMessage completion =
        co_await shard.invoke("target", Aggregate::request("row 100", "row 249"));
    const auto sum = Aggregate::sum_of(completion.responses.at(0));
    EXPECT_EQ(sum->sum, expected);
    EXPECT_EQ(sum->values, 151U);
    EXPECT_EQ(completion.responses.at(0).size(), 16U);
    EXPECT_EQ(of_values, 8100U) << "what a client would have read";
    EXPECT_EQ((co_await shard.invoke("target", "row")).status, WorkStatus::failed);
  });
}

}  // namespace
}  // namespace perdura::systems::mcas::ado
