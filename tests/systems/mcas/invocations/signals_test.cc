// Signals: plugins are told of the operations of other clients, who wait until they have been told
// (MCAS, section 4.1.1).
#include <fmt/format.h>

#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using ado::Invocation;
using ado::Services;

class Signals : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Signals, testing::Values("sim", "shm"), platform_name);

const objects::Config kWithSignals = config_with(kFunction, {{"plugin_signals", true}});

TEST_P(Signals, AreToldBeforeTheOperationCompletes) {
  std::vector<std::string> told;
  // What takes a while would be missing if the client did not wait for it.
  const auto listen = [&](Services& services, const Invocation& work) -> Task<ado::Result> {
    const auto written = co_await services.open_key(work.key, ado::LockMode::write);
    co_await sleep_for(Microseconds(50));
    told.push_back(fmt::format("{} {} {} {}", work.request, work.key, work.value.length,
                               written.status == ado::CallStatus::locked ? "read-locked" : ""));
    co_return ado::Result{{"heard"}, {}};
  };
  Cluster cluster(GetParam(), kWithSignals, function(listen));
  cluster.run([&](objects::Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    const auto memory = thread.node.create_region("direct", 4 * KiB, pmem::Medium::dram);
    const objects::DirectMemory direct = *session.register_direct_memory(*memory);
    const std::string value(100, 'v');
    using Told = std::vector<std::string>;
    const auto heard = [&] { return std::exchange(told, {}); };
    EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key(value), {})));
    EXPECT_EQ(heard(), Told{"ADO::Signal::post-put key 100 read-locked"});
    EXPECT_EQ(string_of(*co_await pool->get(as_key("key"))), value);
    EXPECT_EQ(heard(), Told{"ADO::Signal::post-get key 100 read-locked"});
    EXPECT_FALSE(error_of(co_await pool->put_direct(as_key("key"), {direct, 0, 200}, {})));
    EXPECT_EQ(heard(), Told{"ADO::Signal::post-put key 200 read-locked"});
    EXPECT_EQ((co_await pool->get_direct(as_key("key"), {direct, 0, 4 * KiB})).value(), 200U);
    EXPECT_EQ(heard(), Told{"ADO::Signal::post-get key 200 read-locked"});
    EXPECT_FALSE(error_of(co_await pool->erase(as_key("key"))));
    EXPECT_EQ(heard(), Told{"ADO::Signal::post-erase key 0 "});
    // Of what has failed, and of what plugins do themselves, nobody is told.
    EXPECT_EQ(error_of(co_await pool->get(as_key("key"))), objects::Error::not_found);
    EXPECT_EQ(error_of(co_await pool->erase(as_key("key"))), objects::Error::not_found);
    EXPECT_EQ(heard(), Told{});
    EXPECT_EQ(
        answer_of(co_await pool->invoke_put(as_key("key"), as_key("hello"), as_key(value), 0, {})),
        "heard");
    EXPECT_EQ(heard(), Told{"hello key 100 "});
    session.unregister_direct_memory(direct);
  });
}

// Whoever is not told, the operation has been done.
TEST_P(Signals, WhoeverDoesNotHearThemHarmsNoOperation) {
  const auto deaf = [](Services&, const Invocation& work) -> Task<ado::Result> {
    while (work.is_signal()) co_await sleep_for(Milliseconds(1));
    co_return ado::Result{};
  };
  objects::Config config = kWithSignals;
  config.parameters["plugin_patience"] = 5;
  Cluster cluster(GetParam(), config, function(deaf));
  cluster.run([&](objects::Session& session, Thread&) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key("value"), {})));
    EXPECT_EQ(string_of(*co_await pool->get(as_key("key"))), "value");
    cluster.launcher().on_launch = [] { throw PlatformError("the test refuses it"); };
    EXPECT_FALSE(error_of(co_await pool->erase(as_key("key"))));
    EXPECT_EQ(error_of(co_await pool->get(as_key("key"))), objects::Error::not_found);
  });
}

// With `plugin_consent` a change fails that plugins refuse, or of which they cannot be told. What
// was read has been read.
TEST_P(Signals, AChangeNeedsTheConsentOfThePlugins) {
  std::atomic<bool> agrees = false;
  const auto plugin = [&](Services&, const Invocation&) -> Task<ado::Result> {
    co_return ado::Result{{}, agrees ? "" : "the test refuses it"};
  };
  objects::Config config = kWithSignals;
  config.parameters["plugin_consent"] = true;
  Cluster cluster(GetParam(), config, function(plugin));
  cluster.run([&](objects::Session& session, Thread& thread) -> Task<> {
    const auto pool = *co_await session.create_pool("pool", MiB, {});
    const auto memory = thread.node.create_region("direct", 4 * KiB, pmem::Medium::dram);
    const objects::DirectMemory direct = *session.register_direct_memory(*memory);
    using objects::Error;
    EXPECT_EQ(error_of(co_await pool->put(as_key("key"), as_key("value"), {})), Error::failed);
    EXPECT_EQ(string_of(*co_await pool->get(as_key("key"))), "value");
    EXPECT_EQ(error_of(co_await pool->put_direct(as_key("key"), {direct, 0, 200}, {})),
              Error::failed);
    EXPECT_EQ(error_of(co_await pool->erase(as_key("key"))), Error::failed);
    agrees = true;
    EXPECT_EQ(error_of(co_await pool->get(as_key("key"))), Error::not_found);
    EXPECT_FALSE(error_of(co_await pool->put(as_key("key"), as_key("value"), {})));
    EXPECT_FALSE(error_of(co_await pool->erase(as_key("key"))));
    EXPECT_FALSE(error_of(co_await pool->close()));
    co_await until_running(cluster.launcher(), 0);
    cluster.launcher().on_launch = [] { throw PlatformError("the test refuses it"); };
    const auto again = *co_await session.open_pool("pool", {});
    EXPECT_EQ(error_of(co_await again->put(as_key("key"), as_key("value"), {})), Error::failed);
    session.unregister_direct_memory(direct);
  });
}

}  // namespace
}  // namespace perdura::systems::mcas
