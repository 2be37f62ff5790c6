// Failures while active data objects work: the process dies, or does not answer, or the machine's
// power fails, at each moment. Works end, locks are given back, and each key has the versions from
// before a put or from after it.
#include <gtest/gtest.h>

#include <deque>

#include "platform/sim/failures.h"
#include "systems/mcas/ado/plugins/versioning.h"
#include "tests/systems/mcas/ado/fake_shard.h"

namespace perdura::systems::mcas::ado {
namespace {

using namespace test;

constexpr Versioning::Settings kTwoVersions{.versions = 2, .arena = 1024, .log = 256};
const char* const kValues[] = {"first", "second, which is longer", "third", ""};

Plugins versioning() { return only(std::make_unique<Versioning>(kTwoVersions)); }

// A child process of the shard's node that serves it; the first child of the platform is
// kProcessNode.
Task<std::shared_ptr<PeerProcess>> start_child(Thread& thread, MakePlugins plugins) {
  ChildProgram program{"", [plugins](ChildContext& self) -> Task<> {
                         Process process(self.memory(), self.parent(), Flushing::lines, plugins());
                         self.ready();
                         co_await process.serve();
                       }};
  const Bytes size = thread.node.open_region(kMemory)->size();
  ChildOrder order{.memory = kMemory, .parts = {{0, size}}, .messages = kQueue};
  ChildProcesses& processes = child_processes_of(thread.node);
  co_return co_await processes.start_child(std::move(program), std::move(order));
}
Connect child_with(MakePlugins plugins) {
  return [plugins](Thread& thread) { return start_child(thread, plugins); };
}

using Versions = std::deque<std::string>;

Task<Versions> versions_of(Shard& shard) {
  Versions all;
  for (std::uint64_t back = 0;; ++back) {
    const CompletionMessage got = co_await shard.invoke("key", Versioning::get_request(back));
    EXPECT_EQ(got.status, WorkStatus::done) << got.error;
    const auto version =
        got.responses.empty() ? std::nullopt : Versioning::version_of(got.responses.front());
    if (!version) co_return all;
    all.push_back(*version);
  }
}

Versions with(Versions versions, const std::string& value) {
  versions.push_front(value);
  if (versions.size() > kTwoVersions.versions) versions.pop_back();
  return versions;
}

// The versions of which puts are known: those from before the put under way, and from after it.
struct Known {
  Versions before;
  Versions after;
};

// Puts all values; ends with the first put that is lost.
Task<> put_all(Shard& shard, Known& known) {
  for (const char* value : kValues) {
    known.after = with(known.before, value);
    const CompletionMessage put = co_await shard.invoke("key", Versioning::put_request(value));
    if (put.status == WorkStatus::lost) co_return;
    EXPECT_EQ(put.status, WorkStatus::done) << put.error;
    known.before = known.after;
  }
}

// What must be there when a process is attached again; and that it can go on.
Task<> check(Shard& shard, const Known& known) {
  const Versions found = co_await versions_of(shard);
  EXPECT_TRUE(found == known.before || found == known.after)
      << fmt::format("{} is neither {} nor {}", found, known.before, known.after);
  const CompletionMessage put = co_await shard.invoke("key", Versioning::put_request("new"));
  EXPECT_EQ(put.status, WorkStatus::done) << put.error;
  EXPECT_EQ(co_await versions_of(shard), with(found, "new"));
}

// The process dies at each moment. The shard lives on: what it has waited for is lost, nothing is
// locked, and a new process goes on.
TEST(AdoCrash, AProcessThatDiesTakesNothingButItsWork) {
  std::uint64_t lost = 0;
  const auto explored = sim::explore_failures({}, [&](sim::Failure& failure) {
    SCOPED_TRACE(failure.text());
    sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
    platform.track_durability({pmem::PersistenceDomain::dmp, false});  // for more moments
    failure.enable(false);
    bool ended = false;
    start_shard(
        platform,
        [&](Shard& shard) -> Task<> {
          failure.enable(true);
          Known known;
          co_await put_all(shard, known);
          failure.enable(false);
          // What it has not been told yet it learns now.
          while (failure.happened() && shard.host->attached()) co_await sleep_for(Microseconds(10));
          EXPECT_EQ(shard.store.locked(), "");
          if (!shard.host->attached()) {
            ++lost;
            co_await shard.host->attach(co_await start_child(shard.thread, versioning));
          }
          co_await check(shard, known);
          ended = true;
        },
        {}, child_with(versioning));
    failure.watch(platform, [&](pmem::Choices&) { platform.kill(kProcessNode); });
    platform.run();
    EXPECT_TRUE(ended);
  });
  EXPECT_GT(lost, 50U);
  EXPECT_EQ(lost, explored.runs);
}

// The power of the machine fails at each moment, with up to 30 images of each; then everything is
// opened again.
TEST(AdoCrash, APowerFailureLeavesTheVersionsFromBeforeOrAfterAPut) {
  const auto explored = sim::explore_failures(
      {.images = sim::Images::all, .most_images = 30}, [&](sim::Failure& failure) {
        SCOPED_TRACE(failure.text());
        sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
        platform.track_durability({pmem::PersistenceDomain::dmp, false});
        failure.enable(false);
        Known known;
        Bytes root = 0;
        bool checked = false;
        start_shard(
            platform,
            [&](Shard& shard) -> Task<> {
              root = shard.store.root();
              failure.enable(true);
              co_await put_all(shard, known);
              failure.enable(false);
            },
            {}, child_with(versioning));
        failure.watch(platform, [&](pmem::Choices& choices) {
          platform.fail_power(kShardNode, choices);
          platform.start(kShardNode, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
            FakeShard store(thread.node, root);
            Shard shard{thread, store, std::make_shared<Host>(thread, store)};
            co_await shard.host->attach(co_await start_child(thread, versioning));
            co_await check(shard, known);
            EXPECT_EQ(store.engine().audit(), "");
            checked = true;
          });
        });
        platform.run();
        EXPECT_EQ(checked, failure.happened());
      });
  EXPECT_GT(explored.runs, 500U);
}

// A plugin that never comes back: the host ends its process, and only then gives the locks back.
TEST(AdoCrash, AProcessThatDoesNotAnswerIsEnded) {
  sim::SimPlatform platform(perdura::test::erda_testbed(), 1);
  const auto stuck = [] {
    return function([](Services& services, const Invocation& work) -> Task<Result> {
      co_await services.open_key("other", LockMode::write);
      while (work.request == "never") co_await sleep_for(std::chrono::seconds(1));
      co_return Result{};
    });
  };
  bool ended = false;
  std::string locked_when_ended;
  FakeShard* store = nullptr;
  HostOptions options{.patience = Milliseconds(5), .end_process = [&] {
                        locked_when_ended = store->locked();
                        platform.kill(kProcessNode);
                        return "killed";
                      }};
  start_shard(
      platform,
      [&](Shard& shard) -> Task<> {
        store = &shard.store;
        shard.store.engine().put("other", std::string(64, 'o'));
        EXPECT_EQ((co_await shard.invoke("key", "at once")).status, WorkStatus::done);
        const Time begin = shard.thread.executor.now();
        const CompletionMessage completion = co_await shard.invoke("key", "never");
        EXPECT_EQ(completion.status, WorkStatus::lost);
        EXPECT_EQ(completion.error,
                  "the process of active data objects does not answer, and was ended");
        EXPECT_GE(shard.thread.executor.now() - begin, Milliseconds(5));
        EXPECT_LE(shard.thread.executor.now() - begin, Milliseconds(11));
        co_await shard.host->attach(co_await start_child(shard.thread, stuck));
        EXPECT_EQ((co_await shard.invoke("key", "at once")).status, WorkStatus::done);
        ended = true;
      },
      options, child_with(stuck));
  platform.run();
  EXPECT_EQ(locked_when_ended, "key:-1 other:-1 ");
  EXPECT_TRUE(ended);
}

// The shard dies in the middle of a work, and its process with it.
TEST(AdoCrash, AProcessEndsWithItsShard) {
  sim::SimPlatform platform(perdura::test::erda_testbed(), 2, {0, 0});
  std::uint64_t steps = 0;
  const auto slow = [&] {
    return function([&](Services& services, const Invocation&) -> Task<Result> {
      for (;; ++steps) {
        co_await sleep_for(Microseconds(50));
        co_await services.get_pool_info();
      }
    });
  };
  platform.start_service(kShardNode, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    FakeShard store(thread.node);
    Shard shard{thread, store, std::make_shared<Host>(thread, store)};
    co_await shard.host->attach(co_await start_child(thread, slow));
    co_await shard.invoke("key", "");
    ADD_FAILURE() << "it never ends";
  });
  platform.start(1, 9, CompletionMode::event, [&](Thread&) -> Task<> {
    co_await sleep_for(Milliseconds(1));
    EXPECT_GT(steps, 5U);
    platform.kill(kShardNode);
    const std::uint64_t before = steps;
    co_await sleep_for(Milliseconds(1));
    EXPECT_EQ(steps, before);
  });
  platform.run();
}

}  // namespace
}  // namespace perdura::systems::mcas::ado
