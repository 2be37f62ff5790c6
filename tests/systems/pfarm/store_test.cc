// What is particular to a store with P-FaRM-KV: a get is one READ however full the table, and one
// more for each overflow block; recovery looks at the logs of all workers.
#include <map>
#include <set>

#include "systems/bucket_hash/pool.h"
#include "systems/pfarm/parameters.h"
#include "systems/registry/registry.h"
#include "tests/systems/bucket_hash/hash_store.h"
#include "tests/systems/pfarm/support.h"

namespace perdura::systems::test {
namespace {

using faults::FaultyThread;

class PFarmStore : public HashStore {};
INSTANTIATE_TEST_SUITE_P(All, PFarmStore, testing::ValuesIn(hash_subjects("p-farm-kv")),
                         subject_name);

// Without overflow blocks it always is, however full the table.
TEST_P(PFarmStore, AGetIsOneReadFromAFullTable) {
  config_.parameters = {{"buckets", 16}, {"overflow_percent", 0}, {"resizes", 0}};
  serve();
  connect_counted([](kv::KvSession& session, const FaultyThread& fabric) -> Task<> {
    std::set<std::uint64_t> there;
    for (std::uint64_t i = 0; i < 200; ++i) {
      if (co_await put(session, i, i + 1)) there.insert(i);
    }
    EXPECT_GT(there.size(), 60U);
    for (std::uint64_t i = 0; i < 200; ++i) {
      EXPECT_EQ(co_await reads_of_get(session, fabric, i, there.contains(i) ? i + 1 : 0), 1U);
    }
  });
  run();
}

// What is in the neighborhood is found by one READ; only what is not, and has a home with overflow
// blocks, takes one more for each: exactly those that the same puts leave so in a table of ours.
TEST_P(PFarmStore, AGetFromAnOverflowBlockIsOneMoreRead) {
  config_.parameters = {{"buckets", 8}, {"overflow_percent", 50}, {"resizes", 0}};
  serve();
  connect_counted([](kv::KvSession& session, const FaultyThread& fabric) -> Task<> {
    const pfarm::Geometry geometry{8, 50, 0};
    const pfarm::Table table = geometry.table(0);
    perdura::test::PlainMemory memory(geometry.size());
    pfarm::Index index(memory.region(), 0, geometry);
    std::set<std::uint64_t> there;
    for (std::uint64_t i = 0; i < 80; ++i) {
      const Buffer key = key_of(i);
      const bool fits =
          index.put(bucket_hash::Slot::of(key, value_of(i, i + 1, kHashValue))).has_value();
      EXPECT_EQ((co_await put(session, i, i + 1)).has_value(), fits);
      if (fits) there.insert(i);
    }
    EXPECT_EQ(index.blocks_used(), 4U);
    std::map<std::uint64_t, std::uint64_t> of_reads;
    for (std::uint64_t i = 0; i < 80; ++i) {
      const Buffer key = key_of(i);
      const auto text = perdura::test::as_text(key);
      const auto expected = pfarm::test::read_as_client(memory.bytes(), geometry, 0, text);
      EXPECT_EQ(co_await reads_of_get(session, fabric, i, there.contains(i) ? i + 1 : 0),
                expected.reads);
      const auto near = pfarm::search_neighborhood(
          memory.bytes().subspan(table.bucket_offset(table.home(bucket_hash::Slot::of(key))),
                                 pfarm::kNeighborhoodSize),
          bucket_hash::Slot::of(key));
      if (near.found || near.link == 0) {
        EXPECT_EQ(expected.reads, 1U);
      }
      ++of_reads[expected.reads];
    }
    EXPECT_GT(of_reads[2], 4U);
    EXPECT_GT(of_reads[1], 40U);
  });
  run();
}

// A record that the last of many workers left is found by a store with one.
TEST(PFarmPool, RecoversWhatMoreWorkersLeft) {
  const kv::KvSystem& system = find_kv_system("p-farm-kv");
  kv::KvConfig config = smallest_config();
  config.workers = pfarm::kMaxWorkers;
  const pfarm::Geometry geometry = pfarm::Parameters::of(config).geometry;
  const Buffer key = key_of(7);
  const Buffer value = value_of(7, 1, kHashValue);
  const auto platform = perdura::test::make_platform("sim", 2);
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    system.open(thread, "pool", config);
    {
      const auto region = thread.node.open_region("pool");
      pfarm::Memory memory(*region, bucket_hash::kIndexOffset, Flushing::lines);
      pfarm::RedoLog log(memory, geometry.log_offset(pfarm::kMaxWorkers - 1));
      const pfarm::Table table = geometry.table(0);
      const auto item = bucket_hash::Slot::of(key, value);
      log.write({.item = item,
                 .target = pfarm::Record::target_of(table.bucket_offset(table.home(item)), 2),
                 .header = pfarm::bit_of(2)});
      log.commit();
    }
    config.workers = 1;
    const auto partition = system.open(thread, "pool", config);
    EXPECT_EQ(partition->space().capacity - partition->space().free, bucket_hash::kSlotSize);
    co_await partition->serve();
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto session = co_await system.connect(thread, {0, 0}, config);
    Buffer into(kHashValue);
    const auto got = co_await session->get(key, into);
    EXPECT_TRUE(got.has_value());
    EXPECT_EQ(version_of(7, into), 1U);
  });
  platform->run();
}

TEST(PFarmParameters, TheImpossibleIsRefusedInOneLine) {
  const kv::KvSystem& system = find_kv_system("p-farm-kv");
  kv::KvConfig bad = smallest_config();
  bad.workers = 65;
  EXPECT_EQ(refusal_of(system, bad),
            "p-farm-kv: workers (server_threads in an experiment) is 65, but must be 1 to 64");
  expect_parameters_refused(system, {{"buckets", 0}, {"overflow_percent", 101}});
}

}  // namespace
}  // namespace perdura::systems::test
