// Copies that are promoted without having heard of each other, and what comes of it when they meet.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"
#include "systems/mojim/layout.h"
#include "systems/registry/registry.h"
#include "tests/support/platforms.h"

namespace perdura::systems::mojim {
namespace {

using services::MemoryConfig;
using services::MemoryReplica;
using services::MemoryRole;

// Whatever two nodes know, they never begin the same term, and each begins one that is later than
// all that it knows.
TEST(MojimTerms, NoTwoNodesHaveTheSame) {
  std::map<std::uint64_t, NodeId> node_of;
  for (std::uint64_t known = 0; known < 5 * kMostNodes; ++known) {
    for (NodeId node = 0; node < kMostNodes; ++node) {
      const std::uint64_t term = term_after(known, node);
      EXPECT_GT(term, known);
      EXPECT_EQ(node_of.emplace(term, node).first->second, node) << "term " << term;
      // Regions that are older than rounds have terms that are none.
      EXPECT_EQ(round_of(term) == 1, known == 0) << "known " << known << ", node " << node;
    }
  }
}

TEST(MojimTerms, ANodeHasANumberThatATermHolds) {
  MemoryConfig config{.nodes = {0, kMostNodes - 1}};
  find_memory_system("m-sync").check(config);
  config.nodes.back() = kMostNodes;
  EXPECT_THROW(find_memory_system("m-sync").check(config), UsageError);
}

// Nodes 1 and 2 have each been promoted alone, and have acknowledged a sync point of their own.
class MojimPromoted : public testing::TestWithParam<std::string> {
 protected:
  const services::MemorySystem& system_ = find_memory_system(GetParam());

  MemoryConfig config(std::vector<NodeId> nodes) const {
    return {.size = 4 * KiB, .nodes = std::move(nodes), .completion = CompletionMode::polling};
  }
  static Task<> store_and_sync(MemoryReplica& replica, Thread& thread, std::uint64_t value) {
    const auto memory = co_await replica.map(thread);
    memory->region().store(0, value);
    const auto synced = co_await memory->sync({0, kWord});
    EXPECT_TRUE(synced.has_value());
    co_await memory->settle();
  }
  Task<> be_alone(Thread& thread) {
    const NodeId node = thread.node.id();
    const auto replica = system_.open(thread, "memory", config({0, 1, 2}), MemoryRole::mirror);
    replica->promote({node});
    co_await store_and_sync(*replica, thread, node);
    ++alone_;
  }

  // Then `primary` is started with the other one as its copy, and stores and syncs 3. Returns why
  // it could not, and what the copy holds in the end.
  struct Met {
    std::string error;
    std::uint64_t copy = 0;
  };
  Met meet(NodeId primary, bool knows) {
    const NodeId copy = 3 - primary;
    Met met;
    std::shared_ptr<MemoryReplica> replica;
    platform_.start_service(copy, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await be_alone(thread);
      replica = system_.open(thread, "memory", config({primary, copy}), MemoryRole::mirror);
      if (knows) replica->note_missed();
      co_await replica->serve(thread);
    });
    platform_.start(primary, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await be_alone(thread);
      while (!replica) co_await sleep_for(Microseconds(10));
      const auto mine =
          system_.open(thread, "memory", config({primary, copy}), MemoryRole::primary);
      try {
        co_await store_and_sync(*mine, thread, 3);
      } catch (const UsageError& error) {
        met.error = error.what();
      }
      co_await sleep_for(Milliseconds(1));
      replica->read(0, std::as_writable_bytes(std::span(&met.copy, 1)));
    });
    platform_.run();
    EXPECT_EQ(alone_, 2);
    return met;
  }

  int alone_ = 0;
  sim::SimPlatform platform_{sim::load_profile(perdura::test::profile_path("mojim-pmep")), 3};
};

// The later term is that of node 2, which has begun as many as node 1.
TEST_P(MojimPromoted, TheOneThatIsToFollowTheOtherLosesNothingInSilence) {
  const Met met = meet(2, false);
  EXPECT_NE(met.error.find("node 1 has gone on as the primary without a copy"), std::string::npos)
      << met.error;
  EXPECT_EQ(met.copy, 1U) << "what it has acknowledged is still there";
}

TEST_P(MojimPromoted, SoDoesTheOneWithTheLaterTerm) {
  const Met met = meet(1, false);
  EXPECT_NE(met.error.find("node 2 has gone on as the primary without a copy"), std::string::npos)
      << met.error;
  EXPECT_EQ(met.copy, 2U) << "what it has acknowledged is still there";
}

TEST_P(MojimPromoted, TheOneThatIsKnownToHaveMissedSomethingIsGivenTheRegion) {
  const Met met = meet(2, true);
  EXPECT_EQ(met.error, "");
  EXPECT_EQ(met.copy, 3U);
}

// What the copy has acknowledged under the first one is not the second one's to replace: that has not
// heard of it, since it counts the same primaries before itself.
TEST_P(MojimPromoted, ACopyOfTheOneDoesNotFollowTheOther) {
  std::shared_ptr<MemoryReplica> copy;
  bool is_synced = false;
  std::string error;
  platform_.start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    copy = system_.open(thread, "memory", config({1, 0}), MemoryRole::mirror);
    co_await copy->serve(thread);
  });
  const auto promote = [&](Thread& thread, std::uint64_t value) -> Task<> {
    const NodeId node = thread.node.id();
    const auto mine = system_.open(thread, "memory", config({0, node}), MemoryRole::mirror);
    mine->promote({node, 0});
    co_await store_and_sync(*mine, thread, value);
  };
  platform_.start(1, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await sleep_for(Microseconds(100));
    co_await promote(thread, 1);
    is_synced = true;
  });
  platform_.start(2, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!is_synced) co_await sleep_for(Microseconds(10));
    try {
      co_await promote(thread, 2);
    } catch (const UsageError& refused) {
      error = refused.what();
    }
    co_await sleep_for(Milliseconds(1));
  });
  platform_.run();
  EXPECT_NE(error.find("node 0 follows another primary"), std::string::npos) << error;
  std::uint64_t word = 0;
  copy->read(0, std::as_writable_bytes(std::span(&word, 1)));
  EXPECT_EQ(word, 1U);
}

INSTANTIATE_TEST_SUITE_P(Sim, MojimPromoted,
                         testing::Values("m-sync", "m-syncflush", "m-async", "m-syncdisk"),
                         [](const auto& one) {
                           std::string name(one.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace perdura::systems::mojim
