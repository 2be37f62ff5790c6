// What is said of processes that cannot be started; and that the same launcher works on `sim`.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "platform/base/error.h"
#include "platform/sim/failures.h"
#include "systems/registry/registry.h"
#include "tests/platform/shm/process.h"
#include "tests/support/platforms.h"
#include "tests/systems/mcas/ado/isolation/shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;

Task<std::string> problem(Thread& thread, LaunchOrder order, LaunchOptions options = {}) {
  if (!can_isolate()) options.limits.isolation = Isolation::none;
  const auto launcher = make_launcher(thread, std::move(options));
  std::string text;
  try {
    co_await launcher->launch(std::move(order));
  } catch (const PlatformError& error) {
    text = error.what();
  }
  co_return text;
}

TEST(AdoLauncher, SaysWhyAProcessCannotBeStarted) {
  run_shard([](Thread& thread, ShmPlatform&) -> Task<> {
    const auto region = thread.node.create_region(kPools, 4 * kPool, pmem::Medium::pm);
    const std::string of_pool = "the process of pool 7's active data objects: ";
    const LaunchOrder good{
        .pool = "7", .memory = kPools, .parts = {{0, kPool}}, .plugins = {"passthru"}};
    EXPECT_EQ(co_await problem(thread, good), "");

    LaunchOrder order = good;
    order.plugins = {"pasthru"};
    EXPECT_EQ(
        co_await problem(thread, order),
        of_pool +
            "no plugin 'pasthru'; there are passthru, versioning, aggregate and replicate, and "
            "shared objects by their path, with a '/'");
    order = good;
    order.memory = "nowhere";
    EXPECT_NE((co_await problem(thread, order)).find("there is no "), std::string::npos);
    order = good;
    order.parts = {{0, 100}};
    EXPECT_EQ(co_await problem(thread, order),
              of_pool +
                  "region 'pools': a process is given whole pages of 4096 bytes, not 100 "
                  "bytes at 0");
    order.parts = {{0, kPool}, {kPool - 4096, kPool}};
    EXPECT_NE((co_await problem(thread, order)).find("overlap"), std::string::npos);
    order.parts = {{4 * kPool, kPool}};
    EXPECT_NE((co_await problem(thread, order)).find("has no part"), std::string::npos);

    LaunchOptions options;
    options.limits.cores = {1000};
    EXPECT_EQ(co_await problem(thread, good, options),
              of_pool + "the process may use none of the cores that it is given");
    ::setenv("PERDURA_PROGRAMS", "/nowhere", 1);
    EXPECT_EQ(co_await problem(thread, good),
              of_pool +
                  "there is no program /nowhere/perdura-ado; it belongs beside this one, or "
                  "into the folder that PERDURA_PROGRAMS names");
  });
}

// A shard hands on what its parameters say.
TEST(AdoLauncher, AProcessOfAShardHasTheCoresOfItsParameters) {
  use_built_programs();
  for (const char* cores : {"0", "1000"}) {
    const objects::Config config{.parameters = {{"plugins", "passthru"},
                                                {"plugin_cores", cores},
                                                {"plugin_isolation", can_isolate()}}};
    const objects::System& system = find_object_system("mcas-pools");
    const auto platform = perdura::test::make_platform("shm", 2);
    platform->start_service(0, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
      const auto shard = system.open(thread, "shard", config);
      co_await shard->serve();
    });
    platform->start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
      const auto session = co_await system.connect(thread, {0, 0}, config);
      const auto pool = *co_await session->create_pool("pool", 32 * MiB, {});
      const auto key = std::as_bytes(std::span(std::string_view("key")));
      const auto answers = co_await pool->invoke(key, key, 64, {.create_on_demand = true});
      EXPECT_EQ(answers.has_value(), std::string_view(cores) == "0");
    });
    platform->run();
  }
}

// Another user than root may do without isolation, and is told so.
TEST(AdoLauncher, RefusesWhatItCannotIsolate) {
  if (!can_isolate()) GTEST_SKIP() << "only root becomes another user";
  shm_test::Process shard([](const shm_test::Process::Voice&) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) throw std::runtime_error("still root");
    run_shard([](Thread& thread, ShmPlatform&) -> Task<> {
      const auto region = thread.node.create_region(kPools, kPool, pmem::Medium::pm);
      const LaunchOrder order{
          .pool = "7", .memory = kPools, .parts = {{0, kPool}}, .plugins = {"passthru"}};
      LaunchOptions options;
      std::string text;
      try {
        co_await make_launcher(thread, options)->launch(order);
      } catch (const PlatformError& error) {
        text = error.what();
      }
      EXPECT_EQ(text,
                "the process of pool 7's active data objects: cannot isolate the process: only "
                "root can give it a user of its own; run as root; or start it without isolation");
      options.limits.isolation = Isolation::none;
      const auto launched = co_await make_launcher(thread, options)->launch(order);
      EXPECT_NE(launched, nullptr);
    });
  });
  EXPECT_EQ(shard.exit_code(), 0);
}

// Wherever the process dies, launching or working, its shard learns it and starts another one.
TEST(AdoLauncher, OnSimAProcessMayDieAtAnyMoment) {
  std::uint64_t lost = 0;
  std::uint64_t not_launched = 0;
  const auto explored = sim::explore_failures({}, [&](sim::Failure& failure) {
    SCOPED_TRACE(failure.text());
    sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
    failure.enable(false);
    bool ended = false;
    platform.start(0, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
      TwoPools pools(thread);
      failure.enable(true);
      std::string answer = "lost";
      try {
        co_await pools.start("passthru");
        answer = co_await pools.ask(std::string(3000, 'a'));
      } catch (const PlatformError&) {
        ++not_launched;
      }
      failure.enable(false);
      if (answer == "lost") {
        ++lost;
        co_await pools.start("passthru");
        answer = co_await pools.ask(std::string(3000, 'a'));
      }
      EXPECT_EQ(answer, std::string(3000, 'a'));
      ended = true;
    });
    failure.watch(platform, [&](pmem::Choices&) {
      if (platform.local_node(1) != nullptr) platform.kill(1);
    });
    platform.run();
    EXPECT_TRUE(ended);
  });
  EXPECT_GT(explored.runs, 10U);
  EXPECT_GT(lost, 5U);
  EXPECT_GT(not_launched, 0U);
}

TEST(AdoLauncher, OnSimAProcessSeesItsPartsAlone) {
  sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
  platform.start(0, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    TwoPools pools(thread);
    co_await pools.start(PERDURA_HOSTILE_PLUGIN);
    EXPECT_EQ(co_await pools.ask("count"), "1");
    EXPECT_EQ(co_await pools.ask(fmt::format("load {}", 2 * kPool)), "0");
    EXPECT_EQ(co_await pools.ask(fmt::format("load {}", kOther)),
              "a process has accessed what it was not given");
    EXPECT_EQ(co_await pools.ask("count"), "2");
  });
  platform.run();
}

}  // namespace
}  // namespace perdura::systems::mcas::ado
