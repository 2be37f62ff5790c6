// What is particular to a store with continuity hashing: a get is a second READ where SBuckets were
// added.
#include <set>

#include "systems/registry/registry.h"
#include "tests/systems/bucket_hash/hash_store.h"

namespace perdura::systems::test {
namespace {

class ContinuityStore : public HashStore {};
INSTANTIATE_TEST_SUITE_P(All, ContinuityStore, testing::ValuesIn(hash_subjects("continuity")),
                         subject_name);

// Section II: "a client needs at most two RDMA round-trips (one for the segment and the other for
// the added SBuckets)".
TEST_P(ContinuityStore, AGetFromAddedSBucketsIsTwoReads) {
  config_.parameters = {{"buckets", 2}, {"sbuckets", 1}, {"resizes", 0}, {"added_percent", 100}};
  serve();
  connect_counted([](kv::KvSession& session, const faults::FaultyThread& fabric) -> Task<> {
    std::uint64_t items = 0;
    while (co_await put(session, items, items + 1)) ++items;
    EXPECT_GT(items, 8U);
    std::set<std::uint64_t> reads;
    for (std::uint64_t i = 0; i < items; ++i) {
      reads.insert(co_await reads_of_get(session, fabric, i, i + 1));
    }
    EXPECT_EQ(reads, (std::set<std::uint64_t>{1, 2}));
  });
  run();
}

TEST(ContinuityParameters, TheImpossibleIsRefusedInOneLine) {
  expect_parameters_refused(find_kv_system("continuity"), {{"buckets", 3},
                                                           {"buckets", 0},
                                                           {"sbuckets", 0},
                                                           {"sbuckets", 5},
                                                           {"resized_sbuckets", 2},
                                                           {"resized_sbuckets", 5},
                                                           {"added_percent", 101}});
}

}  // namespace
}  // namespace perdura::systems::test
