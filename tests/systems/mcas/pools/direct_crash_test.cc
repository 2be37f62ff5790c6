// Power failures at every moment of direct transfers: a put_direct has stored its whole value or
// nothing, and all of it once it is acknowledged; a put_direct_offset that is acknowledged is there
// whole, and one that is not changes nothing outside of its part. A put that has waited for a
// transfer of its key is durable once it is acknowledged, as any other.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "systems/mcas/pools.h"
#include "tests/support/explore.h"
#include "tests/support/platforms.h"
#include "tests/systems/mcas/pools/support.h"

namespace perdura::systems::mcas {
namespace {

using test::as_key;
using test::pools_system;

using perdura::sim::Explored;
using perdura::sim::ExploreOptions;
using perdura::sim::Failure;
using perdura::sim::Images;
using perdura::sim::SimPlatform;

constexpr Bytes kLength = 300;
constexpr Bytes kPieces = 128;
constexpr Bytes kPart = 150;  // from offset kPartAt on: over the ends of pieces and lines
constexpr Bytes kPartAt = 77;

objects::Config direct_config(const std::string& engine) {
  return {.memory = 32 * KiB,
          .max_message_value = 64,
          .sessions = 2,
          .parameters = {{"engine", engine},
                         {"direct_piece", kPieces},
                         {"granule", 4096},
                         {"heap_region", 4096},
                         {"first_segment", 8},
                         {"pools", 2}}};
}

struct Outcome {
  int acknowledged = 0;  // operations
  std::string found;     // after the failure
  std::string problem;
};

std::string contents(char letter, Bytes length) { return std::string(length, letter); }

// What a history is given.
struct Client {
  objects::Pool& pool;
  pmem::Region& region;  // registered as `memory`
  objects::DirectMemory memory;
  Failure& failure;  // to be enabled for as long as it may happen
  int& acknowledged;
};
using History = Task<> (*)(const Client& client);

// 'a's are put, then 'b's, then a part of 'c's.
Task<> put_transfers(const Client& client) {
  const auto fill = [&](char letter) {
    std::fill_n(reinterpret_cast<char*>(client.region.data()), kLength, letter);
  };
  objects::Pool& pool = client.pool;
  fill('a');
  if (!co_await pool.put_direct(as_key("key"), {client.memory, 0, kLength}, {})) co_return;
  client.failure.enable(true);
  fill('b');
  if (!co_await pool.put_direct(as_key("key"), {client.memory, 0, kLength}, {})) co_return;
  client.acknowledged = 1;
  fill('c');
  if (!co_await pool.put_direct_offset(as_key("key"), kPartAt, {client.memory, 0, kPart})) {
    co_return;
  }
  client.acknowledged = 2;
  if (!co_await pool.attributes()) co_return;
  client.failure.enable(false);
}

Task<> get_transfer(const Client& client) {
  co_await client.pool.get_direct(as_key("key"), {client.memory, 0, kLength});
}
// The transfer has locked the key when the put arrives. Neither value takes memory, so the put ends
// with a fence that it might leave to others.
Task<> put_behind_a_transfer(const Client& client) {
  const auto before = co_await client.pool.put(as_key("key"), as_key("old"), {});
  if (!before) co_return;
  client.failure.enable(true);
  Executor::current().spawn(get_transfer(client));
  co_await yield();  // so that it is posted first
  const auto put = co_await client.pool.put(as_key("key"), as_key("new"), {});
  if (!put) co_return;
  client.acknowledged = 1;
  const auto seen = co_await client.pool.attributes();
  if (!seen) co_return;
  client.failure.enable(false);
}

class Scenario {
 public:
  Scenario(pmem::PersistenceModel model, const std::string& engine, Failure& failure,
           History history)
      : config_(direct_config(engine)), platform_(perdura::test::erda_testbed(), 2) {
    platform_.track_durability(model);
    platform_.start_service(0, 0, CompletionMode::polling, [this](Thread& thread) -> Task<> {
      const auto shard = pools_system().open(thread, "shard", config_);
      co_await shard->serve();
    });
    failure.enable(false);
    platform_.start(1, 1, CompletionMode::polling, [this, &failure, history](Thread& thread) {
      return client(thread, failure, history);
    });
    failure.watch(platform_, [this](pmem::Choices& choices) {
      platform_.fail_power(0, choices);
      acknowledged_before_ = outcome_.acknowledged;
      inspect();
    });
    platform_.run();
    outcome_.acknowledged = acknowledged_before_;
  }
  const Outcome& outcome() const { return outcome_; }

 private:
  Task<> client(Thread& thread, Failure& failure, History history) {
    const auto session = co_await pools_system().connect(thread, {0, 0}, config_);
    const auto created = co_await session->create_pool("pool", 32 * KiB, {});
    if (!created) co_return;
    const auto region = thread.node.create_region("direct", KiB, pmem::Medium::dram);
    const auto memory = *session->register_direct_memory(*region);
    const Client client{**created, *region, memory, failure, outcome_.acknowledged};
    co_await history(client);
  }
  void inspect() {
    const auto region = platform_.local_node(0)->open_region("shard");
    Pools pools(*region, Parameters::of(config_));
    outcome_.problem = pools.audit();
    const auto pool = pools.open("pool");
    const auto range = pool ? (*pool)->engine->get(as_key("key")) : std::nullopt;
    if (!range) return;
    outcome_.found.resize(range->length);
    region->read(range->offset, std::as_writable_bytes(std::span(outcome_.found)));
  }

  objects::Config config_;
  SimPlatform platform_;
  Outcome outcome_;
  int acknowledged_before_ = 0;
};

void check(const Outcome& outcome) {
  EXPECT_EQ(outcome.problem, "");
  const std::string before = contents('a', kLength);
  const std::string put = contents('b', kLength);
  std::string parted = put;
  parted.replace(kPartAt, kPart, contents('c', kPart));
  if (outcome.acknowledged == 2) {
    EXPECT_EQ(outcome.found, parted);
    return;
  }
  if (outcome.found == before) {
    EXPECT_EQ(outcome.acknowledged, 0);
    return;
  }
  // Of the part any bytes may be there.
  ASSERT_EQ(outcome.found.size(), kLength);
  for (Bytes i = 0; i < kLength; ++i) {
    const bool in_part = i >= kPartAt && i < kPartAt + kPart;
    EXPECT_TRUE(outcome.found[i] == 'b' || (in_part && outcome.found[i] == 'c')) << "byte " << i;
  }
}

class DirectCrash : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Engines, DirectCrash, testing::Values("hstore", "hstore-cc"),
                         test::engine_name);

TEST_P(DirectCrash, WhatIsAcknowledgedIsDurableAndWhatIsNotIsNotInParts) {
  for (const pmem::PersistenceModel model :
       {pmem::PersistenceModel{pmem::PersistenceDomain::dmp, true},
        pmem::PersistenceModel{pmem::PersistenceDomain::dmp, false},
        pmem::PersistenceModel{pmem::PersistenceDomain::mhp, true}}) {
    std::array<std::uint64_t, 3> met{};
    std::uint64_t runs = 0;
    for (const ExploreOptions& options :
         {ExploreOptions{.images = Images::least}, ExploreOptions{.images = Images::most},
          ExploreOptions{.images = Images::random, .seed = 1},
          ExploreOptions{.images = Images::random, .seed = 2}}) {
      const Explored explored =
          perdura::test::explore_until_failure(options, [&](Failure& failure) {
            SCOPED_TRACE(failure.text());
            const Scenario scenario(model, GetParam(), failure, &put_transfers);
            if (!failure.happened()) return;
            check(scenario.outcome());
            ++met[static_cast<std::size_t>(scenario.outcome().acknowledged)];
          });
      runs += explored.runs;
    }
    for (const std::uint64_t count : met) EXPECT_GT(count, 20U);
    std::cout << GetParam() << " on " << to_string(model.domain)
              << (model.ddio ? " with" : " without") << " DDIO: " << runs << " recoveries\n";
  }
}

TEST_P(DirectCrash, APutThatHasWaitedForATransferIsDurableWhenItIsAcknowledged) {
  int acknowledged = 0;
  const Explored explored = perdura::test::explore_until_failure(
      ExploreOptions{.images = Images::least}, [&](Failure& failure) {
        SCOPED_TRACE(failure.text());
        const Scenario scenario({pmem::PersistenceDomain::dmp, true}, GetParam(), failure,
                                &put_behind_a_transfer);
        if (!failure.happened()) return;
        const Outcome& outcome = scenario.outcome();
        EXPECT_EQ(outcome.problem, "");
        EXPECT_TRUE(outcome.found == "new" || (outcome.found == "old" && outcome.acknowledged == 0))
            << outcome.found;
        acknowledged += outcome.acknowledged;
      });
  EXPECT_GT(acknowledged, 0) << explored.runs << " runs";
}

}  // namespace
}  // namespace perdura::systems::mcas
