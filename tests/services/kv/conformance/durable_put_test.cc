// Puts that are durable when they are acknowledged, by each method that the chooser may come to.
// That they are durable is explored in tests/explore; here they must do what puts do.
#include <algorithm>

#include "methods/durable_write.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"
#include "tests/services/kv/conformance/recording.h"

namespace perdura::systems::test {
namespace {

using methods::Method;

// Of all configurations, alone and all together.
std::vector<Method> put_methods(const kv::KvSystem& system) {
  std::vector<std::vector<methods::Configuration>> known;
  known.push_back(methods::configurations(methods::StatedConfiguration{}));
  for (const auto& configuration : known.front()) known.push_back({configuration});
  std::vector<Method> methods;
  for (const auto& configurations : known) {
    const Method method = methods::choose(configurations, *system.put, {});
    const bool found = std::any_of(methods.begin(), methods.end(),
                                   [&](const Method& other) { return other.name == method.name; });
    if (!found) methods.push_back(method);
  }
  return methods;
}

TEST_P(KvTest, PutsDurablyByEachMethod) {
  if (!system().put) GTEST_SKIP() << "it persists in its own way only";
  const std::vector<Method> methods = put_methods(system());
  EXPECT_GE(methods.size(), 2U);
  for (const Method& method : methods) {
    SCOPED_TRACE(method.name);
    SetUp();
    config_.put_method = method;
    Recording recording;
    serve();
    for (std::uint64_t c = 0; c < 2; ++c) {
      connect(recording.of([c, this](kv::KvSession& session, Thread&) -> Task<> {
        Buffer into(4096);
        for (std::uint64_t i = 1; i <= 200; ++i) {
          const std::uint64_t number = i % 7;
          const Buffer key = key_of(number);
          const Buffer value = value_of(number, 2 * i + c, fit_value(i % 5 == 0 ? 1000 : 64));
          EXPECT_TRUE((co_await session.put(key, value)).has_value());
          EXPECT_TRUE((co_await session.get(key, into)).has_value());
        }
      }));
    }
    run();
    const auto verdict = history::check(recording.history());
    EXPECT_TRUE(verdict.accepted()) << describe(verdict);
    EXPECT_EQ(verdict.operations, 2 * 2 * 200U);
  }
}

TEST(DurableWrite, TakesMethodsForASingleUpdateByWriteOnly) {
  for (const Method& method : methods::methods()) {
    SCOPED_TRACE(method.name);
    const auto make = [&](const fabric::Capabilities& device) {
      return methods::DurableWrite(method, device);
    };
    const fabric::Capabilities poor;
    const fabric::Capabilities able{.flush = true, .flush_persistence = true};
    if (method.update != methods::Update::single || method.carrier != methods::Carrier::write) {
      EXPECT_THROW(make(able), UsageError);
      continue;
    }
    EXPECT_EQ(make(able).asks_responder(), !method.responder().empty());
    if (method.uses(pmem::StepKind::flush_persistence)) {
      EXPECT_THROW(make(poor), UsageError);
    } else {
      EXPECT_NO_THROW(make(poor));
    }
  }
}

// Redo Logging has to wait for its server's answer whatever the configuration; the others wait for
// as little as the configuration allows.
TEST(PutMethod, IsTheBestForTheConfiguration) {
  struct Case {
    methods::StatedConfiguration stated;
    std::string_view by_write;
    std::string_view by_send;
  };
  const Case cases[] = {
      {{"dmp", "on", "", ""}, "write-message", "send-copy-flush"},
      {{"dmp", "off", "", ""}, "write-flush", "send-copy-flush"},
      {{"mhp", "", "", ""}, "write-flush", "send-copy"},
      {{"wsp", "", "", "ib"}, "write", "send-copy"},
      {{"wsp", "", "", "roce"}, "write", "send-copy"},
      {{"wsp", "", "", "iwarp"}, "write-flush", "send-copy"},
      {{"wsp", "", "", ""}, "write-flush", "send-copy"},
      {{}, "write-message", "send-copy-flush"},
  };
  for (const auto& [stated, by_write, by_send] : cases) {
    const auto configurations = methods::configurations(stated);
    const auto chosen = [&](std::string_view system) {
      return methods::choose(configurations, *find_kv_system(system).put, {}).name;
    };
    EXPECT_EQ(chosen("erda"), by_write);
    EXPECT_EQ(chosen("read-after-write"), by_write);
    EXPECT_EQ(chosen("redo-logging"), by_send);
  }
}

}  // namespace
}  // namespace perdura::systems::test
