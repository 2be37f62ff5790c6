// Plugins of shards that are processes, in isolated processes of their own where this machine can
// isolate any: they are told of the cluster, and are clients of another shard.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "tests/library/mcas/support.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::Pool;
using mcas::Status;

TEST(McasPlugins, AreToldOfShardsThatJoinAndFail) {
  Shards shards(2, with_plugin(PERDURA_TEST_PLUGIN));
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

// A history of a counter is linearizable if each sum is answered once, none is missing, and a call
// that begins after another one has ended is answered a larger sum.
TEST(McasPlugins, CountWhatSeveralClientsAddOneAfterTheOther) {
  constexpr std::size_t kClients = 3;
  constexpr std::size_t kCalls = 40;
  using Clock = std::chrono::steady_clock;
  struct Call {
    Clock::time_point start;
    Clock::time_point end;
    std::uint64_t sum;
  };
  Shards shards(1, with_plugin(PERDURA_TEST_PLUGIN));
  shards.start_all();
  std::vector<std::vector<Call>> calls(kClients);
  std::vector<std::thread> threads;
  for (std::vector<Call>& of_client : calls) {
    threads.emplace_back([&shards, &of_client] {
      Client client(shards.client());
      Pool pool = client.open_pool("p", {.create_on_demand = true}, kPool).value();
      for (std::size_t i = 0; i < kCalls; ++i) {
        const Clock::time_point start = Clock::now();
        auto answers =
            pool.invoke("sum", "add", 8, {.create_on_demand = true, .zero_new_value = true});
        of_client.push_back({start, Clock::now(), std::stoull(answers.value().at(0))});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Call> all;
  for (const auto& of_client : calls) all.insert(all.end(), of_client.begin(), of_client.end());
  std::ranges::sort(all, {}, &Call::sum);
  ASSERT_EQ(all.size(), kClients * kCalls);
  Clock::time_point latest_start = all[0].start;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].sum, i + 1);
    EXPECT_GE(all[i].end, latest_start) << "sum " << all[i].sum << " came too late";
    latest_start = std::max(latest_start, all[i].start);
  }
}

// Clients are told what a plugin says, and how its process has died. The shard's log has one line
// of each death, and none of a refusal or of a process that ends as it should.
TEST(McasPlugins, WhatTheyDieOfIsToldToClientsAndLogged) {
  Shards shards(1, with_plugin(PERDURA_TEST_PLUGIN));
  const std::string log = shards.directory() + "/log";
  shards.start(0, log);
  {
    Client client(shards.client());
    Pool pool = client.open_pool("a pool", {.create_on_demand = true}, kPool).value();
    const auto failure = [&](std::string_view request) {
      const auto result = pool.invoke("key", request, 8, {.create_on_demand = true});
      EXPECT_EQ(result.status(), Status::failed) << request;
      return result.reason();
    };
    EXPECT_EQ(failure("refuse"), "the plugin does not want to");
    const std::string thrown = failure("throw");
    EXPECT_TRUE(thrown.starts_with("two\\x0alines\\x1b[31m of eeee")) << thrown;
    EXPECT_LT(thrown.size(), 2000U);
    const std::string died = "the process of active data objects has died: perdura-ado ";
    EXPECT_EQ(failure("exit"), died + "has ended with code 3");
    EXPECT_EQ(failure("trap"), died + "was ended by signal 5 (Trace/breakpoint trap)");
    EXPECT_TRUE(pool.invoke("key", "?").ok());
    EXPECT_TRUE(pool.close().ok());
  }
  shards.kill(0);
  const auto line = [](std::string_view how) {
    return "perdura: shard 'a', pool \"a pool\", plugins " PERDURA_TEST_PLUGIN
           ": the process of active data objects has died: perdura-ado " +
           std::string(how) +
           "; calls under way have failed, and the next one launches another process\n";
  };
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text,
            line("has ended with code 3") + line("was ended by signal 5 (Trace/breakpoint trap)"));
}

// The shard's stderr, which is its process' too, is a pipe that nobody reads. The process waits for
// room until it is ended; the shard does not.
TEST(McasPlugins, WhoFillsAPipeThatNobodyReadsHangsNoShard) {
  Shards shards(1, "plugin_patience = 300\n" + with_plugin(PERDURA_TEST_PLUGIN));
  const std::string pipe = shards.directory() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  shards.start(0, pipe);
  {
    Client client(shards.client());
    Pool pool = client.open_pool("p", {.create_on_demand = true}, kPool).value();
    for (const char* sum : {"1", "2"}) {
      EXPECT_EQ(pool.invoke("key", "shout", 8, {.create_on_demand = true, .zero_new_value = true})
                    .status(),
                Status::failed);
      EXPECT_EQ(pool.invoke("key", "add").value().at(0), sum);
    }
  }
  shards.kill(0);
  ::close(reader);
}

// What calls of plugins need is looked for before anybody calls one.
TEST(McasPlugins, AreCheckedBeforeTheyAreCalled) {
  const std::string usual = isolation();
  const Shards shards(1, "plugins = [\"passthru\"]\n" + usual);
  EXPECT_EQ(mcas::Server::check(shards.file()).shards.size(), 1U);
  const auto problem = [](const Shards& of) -> std::string {
    for (const bool serves : {false, true}) {
      try {
        serves ? void(mcas::Server({.file = of.file()})) : void(mcas::Server::check(of.file()));
        return "none";
      } catch (const std::exception& error) {
        if (serves) return error.what();
      }
    }
    return "";
  };
  ::setenv("PERDURA_PROGRAMS", "/nowhere", 1);
  EXPECT_EQ(problem(shards),
            shards.file() +
                ": [shards.a]: plugins cannot be called: there is no program /nowhere/perdura-ado; "
                "it belongs beside this one, or into the folder that PERDURA_PROGRAMS names");
  EXPECT_EQ(problem(Shards(1)), "none") << "nothing needs it";
  isolation();
  if (::geteuid() != 0) return;
  const std::string folder = shards.directory() + "/closed";
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(PERDURA_TEST_PLUGIN, folder + "/plugin.so");
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
  EXPECT_NE(problem(Shards(1, "plugins = [\"" + folder + "/plugin.so\"]\n"))
                .find("which has a user of its own: '" + folder + "' is closed to others"),
            std::string::npos);
  EXPECT_EQ(
      problem(Shards(1, "plugin_isolation = false\nplugins = [\"" + folder + "/plugin.so\"]\n")),
      "none");
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
