// MCAS, section 4: invocations go to plugins and their responses come back; the callbacks of Table
// 4 do what they say; locks are held as long as they say.
#include <gtest/gtest.h>

#include <algorithm>

#include "platform/base/error.h"
#include "systems/mcas/ado/plugins/passthru.h"
#include "tests/systems/mcas/ado/fake_shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;
using Responses = std::vector<std::string>;

// GCC 12 cannot take a list in braces beside a co_await.
Responses just(const char* response) { return {response}; }

Plugins passthru() { return only(std::make_unique<Passthru>()); }

class AdoWorks : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(On, AdoWorks, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& platform) { return platform.param; });

// Also what is longer than a slot of a ring, and than all slots together.
TEST_P(AdoWorks, RequestsOfAnyLengthComeBack) {
  run(GetParam(), passthru, [](Shard& shard) -> Task<> {
    for (const Bytes length : {0, 1, 900, 1008, 1009, 5000, 300'000}) {
      std::string request(length, '\0');
      for (Bytes i = 0; i < length; ++i) request[i] = static_cast<char>(i * 7 + i / 256);
      const CompletionMessage completion = co_await shard.invoke("key", request);
      EXPECT_EQ(completion.status, WorkStatus::done) << completion.error;
      EXPECT_EQ(completion.responses, Responses{request}) << length;
    }
    const CompletionMessage refused =
        co_await shard.invoke("key", std::string(kLongestMessage, 'x'));
    EXPECT_EQ(refused.status, WorkStatus::too_long);
    EXPECT_NE(refused.error.find("16777216"), std::string::npos) << refused.error;
  });
}

TEST_P(AdoWorks, WhatIsTooLongForAMessageIsRefused) {
  const auto plugin = [] {
    return function([](Services& services, const Invocation& work) -> Task<Result> {
      const Answer<std::string> answer = co_await services.read_value(work.key);
      if (work.key == "endless") {
        EXPECT_EQ(answer.status, CallStatus::refused);
        co_return Result{{std::string(kLongestMessage, 'x')}, {}};
      }
      co_return Result{{answer.value}, {}};
    });
  };
  run(GetParam(), plugin, [](Shard& shard) -> Task<> {
    EXPECT_EQ((co_await shard.invoke("endless", "")).status, WorkStatus::too_long);
    EXPECT_EQ((co_await shard.invoke("key", "")).responses, just("short"));
  });
}

TEST_P(AdoWorks, ManyWaitAtATimeAndEachGetsItsOwn) {
  constexpr int kTasks = 40;
  run(GetParam(), passthru, [](Shard& shard) -> Task<> {
    Semaphore ended(0);
    const auto client = [&](int number) -> Task<> {
      for (int i = 0; i < 10; ++i) {
        const std::string request = fmt::format("{} of {}", i, number);
        const CompletionMessage completion =
            co_await shard.invoke(fmt::format("key {}", number), request);
        EXPECT_EQ(completion.responses, Responses{request});
      }
      ended.release();
    };
    for (int i = 0; i < kTasks; ++i) Executor::current().spawn(client(i));
    for (int i = 0; i < kTasks; ++i) co_await ended.acquire();
  });
}

// "If multiple ADO plugins are defined, they are called on a round-robin schedule. Responses from
// the work is collected as a vector."
TEST_P(AdoWorks, SeveralPluginsAreCalledInTurn) {
  const auto plugin = [](const std::string& name) {
    return std::make_unique<Function>([name](Services&, const Invocation& work) -> Task<Result> {
      if (work.request == "no") co_return Result{{}, name + " refuses"};
      if (work.request == "throw") throw std::runtime_error(name + " throws");
      if (work.request == "throw a number") throw 7;
      co_return Result{{name, work.request}, {}};
    });
  };
  const auto plugins = [&] {
    Plugins all = only(plugin("first"));
    all.push_back(plugin("second"));
    return all;
  };
  run(GetParam(), plugins, [](Shard& shard) -> Task<> {
    const CompletionMessage done = co_await shard.invoke("key", "a");
    EXPECT_EQ(done.responses, (Responses{"first", "a", "second", "a"}));
    const CompletionMessage refused = co_await shard.invoke("key", "no");
    EXPECT_EQ(refused.status, WorkStatus::failed);
    EXPECT_EQ(refused.error, "first refuses");
    EXPECT_EQ((co_await shard.invoke("key", "throw")).error, "first throws");
    EXPECT_EQ((co_await shard.invoke("key", "throw a number")).error,
              "the plugin has thrown what is no std::exception");
    EXPECT_EQ((co_await shard.invoke("key", "b")).status, WorkStatus::done);
  });
}

TEST_P(AdoWorks, APluginChangesAValueWhereItIs) {
  const auto counter = [] {
    return function([](Services& services, const Invocation& work) -> Task<Result> {
      const Memory memory = services.memory();
      const std::uint64_t count = memory.region().load(work.value.offset) + 1;
      memory.store_durably(work.value.offset, count);
      co_return Result{{fmt::format("{}{}", count, work.is_new ? " new" : "")}, {}};
    });
  };
  run(GetParam(), counter, [](Shard& shard) -> Task<> {
    EXPECT_EQ((co_await shard.invoke("a", "")).responses, just("1 new"));
    EXPECT_EQ((co_await shard.invoke("a", "")).responses, just("2"));
    EXPECT_EQ((co_await shard.invoke("b", "")).responses, just("1 new"));
    EXPECT_EQ(static_cast<int>(shard.store.engine().get("a")->at(0)), 2);
  });
}

// --- callbacks -----------------------------------------------------------------------------------

TEST_P(AdoWorks, CallbacksDoWhatTheySay) {
  const auto plugin = [] {
    return function([](Services& services, const Invocation& work) -> Task<Result> {
      const Memory memory = services.memory();
      const auto created = co_await services.create_key("created", 100);
      EXPECT_EQ(created.status, CallStatus::done);
      EXPECT_EQ(created.value.length, 100U);
      memory.region().write(created.value.offset,
                            std::as_bytes(std::span(std::string_view("hello"))));
      memory.persist({created.value.offset, 5});
      EXPECT_EQ((co_await services.create_key("created", 100)).status, CallStatus::exists);
      EXPECT_EQ((co_await services.create_key("huge", GiB)).status, CallStatus::out_of_space);
      EXPECT_EQ((co_await services.open_key("huge", LockMode::read)).status, CallStatus::not_found);
      EXPECT_EQ((co_await services.open_key("there", static_cast<LockMode>(2))).status,
                CallStatus::refused);

      const auto opened = co_await services.open_key("there", LockMode::write);
      EXPECT_EQ(opened.value.length, 40U);
      EXPECT_EQ((co_await services.open_key("short", LockMode::read)).value.length, 0U)
          << "it lies in the table";
      EXPECT_EQ((co_await services.resize_value("short", 200)).status, CallStatus::not_locked)
          << "for writing";
      const auto longer = co_await services.resize_value("there", 300);
      EXPECT_EQ(longer.value.length, 300U);
      std::string bytes(41, 'x');
      memory.region().read(longer.value.offset, std::as_writable_bytes(std::span(bytes)));
      EXPECT_EQ(bytes, std::string(40, 't') + '\0') << "its bytes stay, zeros follow";
      EXPECT_EQ((co_await services.resize_value("there", GiB)).status, CallStatus::out_of_space);
      co_await services.resize_value(work.key, 500);
      EXPECT_EQ(work.value.length, 500U) << "the plugins behind know the new place";

      EXPECT_EQ(co_await services.erase_key("gone"), CallStatus::done);
      EXPECT_EQ(co_await services.erase_key("gone"), CallStatus::not_found);

      const auto memory_of_none = co_await services.allocate_memory(1000);
      EXPECT_EQ(memory_of_none.value.length, 1000U);
      EXPECT_EQ((co_await services.allocate_memory(GiB)).status, CallStatus::out_of_space);
      EXPECT_EQ(co_await services.free_memory(memory_of_none.value), CallStatus::done);
      EXPECT_EQ(co_await services.free_memory(memory_of_none.value), CallStatus::not_found);

      auto references = (co_await services.get_references()).value;
      std::vector<Reference> iterated;
      for (std::uint64_t position = 0;;) {
        const auto piece = co_await services.iterate(position);
        if (piece.value.empty()) break;
        iterated.insert(iterated.end(), piece.value.begin(), piece.value.end());
      }
      EXPECT_EQ(references, iterated);
      std::vector<std::string> found;
      for (std::uint64_t position = 0;;) {
        const auto key = co_await services.find_key("row ", Matching::prefix, position);
        if (!key) break;
        found.push_back(key.value);
      }
      EXPECT_EQ(found.size(), 150U);
      EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
      std::uint64_t position = 0;
      EXPECT_EQ((co_await services.find_key(".", Matching::regular_expression, position)).status,
                CallStatus::refused);
      const auto info = co_await services.get_pool_info();
      EXPECT_EQ(info.value.items, references.size());
      EXPECT_GT(info.value.capacity, info.value.free);
      co_return Result{{std::to_string(references.size())}, {}};
    });
  };
  run(GetParam(), plugin, [](Shard& shard) -> Task<> {
    mcas::test::TestEngine& engine = shard.store.engine();
    engine.put("there", std::string(40, 't'));
    engine.put("short", "s");
    engine.put("gone", "g");
    for (int i = 0; i < 150; ++i) engine.put(fmt::format("row {}", i), "r");
    EXPECT_EQ((co_await shard.invoke("key", "")).responses, just("154"));
    EXPECT_EQ(engine.get("created"), "hello" + std::string(95, '\0'));
    EXPECT_EQ(engine.get("gone"), std::nullopt);
  });
}

// The target and what the work opens is locked until it ends, or until it unlocks it.
TEST_P(AdoWorks, LocksAreHeldUntilTheEndOrAnUnlock) {
  const auto plugin = [] {
    return function([](Services& services, const Invocation& work) -> Task<Result> {
      EXPECT_TRUE(co_await services.open_key("held", LockMode::write));
      EXPECT_TRUE(co_await services.open_key("held", LockMode::read)) << "it has more than that";
      EXPECT_TRUE(co_await services.open_key("read", LockMode::read));
      EXPECT_EQ((co_await services.open_key("read", LockMode::write)).status, CallStatus::locked);
      EXPECT_TRUE(co_await services.open_key("returned", LockMode::write));
      EXPECT_EQ(co_await services.unlock("returned"), CallStatus::done);
      EXPECT_EQ(co_await services.unlock("returned"), CallStatus::not_locked);
      EXPECT_TRUE(co_await services.create_key("created", 64));
      EXPECT_EQ((co_await services.open_key("in use", LockMode::read)).status, CallStatus::locked);
      EXPECT_EQ(co_await services.erase_key("in use"), CallStatus::locked);
      co_await services.create_key("locked now", 64);  // tells the test
      if (work.request == "fail") co_return Result{{}, "failed"};
      co_return Result{};
    });
  };
  run(GetParam(), plugin, [](Shard& shard) -> Task<> {
    for (const char* key : {"held", "read", "returned", "in use"}) {
      shard.store.engine().put(key, std::string(64, 'v'));
    }
    EXPECT_TRUE(shard.store.try_lock("in use", LockMode::write));
    for (const char* request : {"succeed", "fail"}) {
      std::string most;
      shard.store.on_create = [&](const std::string& key) {
        if (key == "locked now") most = shard.store.locked();
      };
      const CompletionMessage completion = co_await shard.invoke("target", request);
      EXPECT_EQ(most, "created:-1 held:-1 in use:-1 locked now:-1 read:1 target:-1 ");
      EXPECT_EQ(shard.store.locked(), "in use:-1 ");
      EXPECT_EQ(completion.error, std::string(request) == "fail" ? "failed" : "");
      shard.store.erase("created");
      shard.store.erase("locked now");
    }
    shard.store.unlock("in use", LockMode::write);
  });
}

// --- besides works -------------------------------------------------------------------------------

// A signal is a work whose request says so; its key is locked for reading meanwhile.
TEST_P(AdoWorks, SignalsTellOfOtherOperations) {
  run(GetParam(), passthru, [](Shard& shard) -> Task<> {
    shard.store.engine().put("key", std::string(64, 'v'));
    const std::pair<Signal, const char*> signals[] = {{Signal::put, "ADO::Signal::post-put"},
                                                      {Signal::get, "ADO::Signal::post-get"},
                                                      {Signal::erase, "ADO::Signal::post-erase"}};
    for (const auto& [signal, text] : signals) {
      EXPECT_TRUE(shard.store.try_lock("key", LockMode::read));
      WorkMessage order;
      order.key = "key";
      order.value = *shard.store.find("key");
      order.request = signal_request(signal);
      Task<CompletionMessage> telling = shard.host->work(order, LockMode::read);
      const CompletionMessage completion = co_await std::move(telling);
      EXPECT_EQ(completion.responses, Responses{text});
    }
  });
}

TEST_P(AdoWorks, EventsAndTheEndReachAllPlugins) {
  struct Told {
    std::vector<std::string> events;
    int shut_down = 0;
  };
  class Listener final : public Plugin {
   public:
    explicit Listener(Told& told) : told_(told) {}
    Task<Result> do_work(Services&, const Invocation&) override { co_return Result{}; }
    void cluster_event(const ClusterEvent& event) override {
      told_.events.push_back(event.type + ' ' + event.sender + ' ' + event.message);
    }
    void shut_down() override { ++told_.shut_down; }

   private:
    Told& told_;
  };
  Told told;
  const auto plugins = [&] {
    Plugins all = only(std::make_unique<Listener>(told));
    all.push_back(std::make_unique<Listener>(told));
    return all;
  };
  run(GetParam(), plugins, [](Shard& shard) -> Task<> {
    shard.host->cluster_event({"node 5", "JOIN", ""});
    EXPECT_EQ((co_await shard.invoke("key", "")).status, WorkStatus::done);
    co_await shard.host->shut_down();
    EXPECT_FALSE(shard.host->attached());
    const CompletionMessage late = co_await shard.invoke("key", "");
    EXPECT_EQ(late.status, WorkStatus::lost);
    EXPECT_EQ(late.error, "no process of active data objects is attached");
  });
  EXPECT_EQ(told.events, (std::vector<std::string>(2, "JOIN node 5 ")));
  EXPECT_EQ(told.shut_down, 2);
}

TEST_P(AdoWorks, APluginThatCannotBeginIsRefused) {
  class Unfit final : public Plugin {
   public:
    Task<> launched(Services&) override {
      throw std::runtime_error("no license");
      co_return;
    }
    Task<Result> do_work(Services&, const Invocation&) override { co_return Result{}; }
  };
  const auto platform = make_machine(GetParam());
  start_process(*platform, [] { return only(std::make_unique<Unfit>()); });
  start_shard(*platform, [](Shard&) -> Task<> { co_return; });
  try {
    platform->run();
    ADD_FAILURE() << "it was attached";
  } catch (const PlatformError& error) {
    EXPECT_STREQ(error.what(), "the process of active data objects cannot begin: no license");
  }
}

// A work that is lost while the shard allocates memory for it was not told of that: it is free.
TEST(AdoAllocations, OfALostWorkAreGivenBack) {
  const auto plugins = [] {
    return function([](Services& services, const Invocation&) -> Task<Result> {
      co_await services.allocate_memory(100);
      co_return Result{};
    });
  };
  const auto body = [](Shard& shard) -> Task<> {
    shard.store.allocating_takes = Milliseconds(2);
    EXPECT_EQ((co_await shard.invoke("key", "")).status, WorkStatus::lost);
    co_await sleep_for(Milliseconds(5));
    EXPECT_EQ(shard.store.info().items, 1U) << "the key, and no memory";
  };
  run("sim", plugins, body, {.patience = Microseconds(200)});
}

}  // namespace
}  // namespace perdura::systems::mcas::ado
