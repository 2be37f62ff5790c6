// Whatever store, flush or fence a power failure follows, and whichever image it leaves: recovery
// finds every acknowledged item once and whole, and the operation under way done or not begun.
#include "tests/systems/bucket_hash/explored_index.h"
#include "tests/systems/pfarm/support.h"

namespace perdura::systems::pfarm::test {
namespace {

using perdura::test::Amounts;
using perdura::test::expect_damage_refused;
using perdura::test::explore_histories;
using perdura::test::kModels;
using perdura::test::Readers;
using perdura::test::RecoveryExplored;

TEST(PFarmCrash, LosesTearsDuplicatesAndRevivesNothing) {
  for (const pmem::PersistenceModel& model : kModels) {
    Amounts amounts = explore_histories<PFarmHash>(
        model, {{1, 0, 2}, {1, 100, 1}, {2, 100, 0}, {3, 0, 1}, {4, 50, 0}}, 4, {70});
    EXPECT_GE(amounts["resizes"], 8U);
    EXPECT_GE(amounts["movements"], 8U);
    EXPECT_GE(amounts["overflow blocks"], 8U);
    EXPECT_GT(amounts["images"], 10'000U);
  }
}

// As LosesTearsDuplicatesAndRevivesNothing, without the checks that only readers of memory need.
TEST(PFarmCrash, NorDoesLocalMode) {
  for (const pmem::PersistenceModel& model : kModels) {
    Amounts amounts = explore_histories<PFarmHash>(model, {{1, 0, 2}, {1, 100, 1}, {2, 100, 0}}, 3,
                                                   {70}, Readers::none);
    EXPECT_GE(amounts["resizes"], 4U);
    EXPECT_GE(amounts["movements"], 4U);
    EXPECT_GE(amounts["overflow blocks"], 4U);
    EXPECT_GT(amounts["images"], 3'000U);
  }
}

TEST(PFarmCrash, RecoveryFromAWriteMayBeInterruptedToo) {
  for (const pmem::PersistenceModel& model : kModels) {
    RecoveryExplored<PFarmHash> explored({3, 50, 0}, model);
    explored.begin();
    KeysOf keys(explored.index().table());
    std::string last;
    for (int home : {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1}) {
      last = keys.next(static_cast<std::uint64_t>(home));
      EXPECT_EQ(explored.put(last, "value"), Index::Outcome::done);
    }
    explored.put(last, "other");
    explored.erase(last);
    EXPECT_EQ(explored.index().movements(), 1U);
    EXPECT_EQ(explored.index().blocks_used(), 1U);
    explored.expect_right(70, 40);
  }
}

TEST(PFarmCrash, RecoveryFromAResizeMayBeInterruptedToo) {
  for (const pmem::PersistenceModel& model : kModels) {
    RecoveryExplored<PFarmHash> explored({1, 0, 1}, model);
    explored.begin();
    for (std::uint64_t number = 0; number < 4; ++number) {
      EXPECT_EQ(explored.put(numbered_key(number), numbered_value(number)), Index::Outcome::done);
    }
    explored.resize();
    EXPECT_EQ(explored.index().items(), 4U);
    explored.expect_right(30, 30);
  }
}

TEST(PFarmCrash, DamageIsRefusedInOneLine) {
  const Geometry geometry{4, 50, 1, 2};
  const Table table = geometry.table(0);
  const Bytes mark = geometry.log_offset(1);
  const Bytes record = mark + kCacheLine;
  expect_damage_refused<PFarmHash>(
      geometry,
      {{{kStateOffset, State{2, false}.word()}},
       {{kStateOffset, State{1, true}.word()}},
       // A mark without a record, with one for another place, and with one from there.
       {{mark, 1}},
       {{mark, 1}, {record + offsetof(Record, target), table.bucket_offset(1) + 4}},
       {{mark, 1}, {record + offsetof(Record, target), geometry.size()}},
       {{mark, 1},
        {record + offsetof(Record, target), table.bucket_offset(1)},
        {record + offsetof(Record, from), table.bucket_offset(1) + kCacheLine}},
       {{table.bucket_offset(1) + kLinkOffset, 3}},
       {{table.bucket_offset(4) + kLinkOffset, 1}},
       {{table.bucket_offset(1) + kLinkOffset, 1}, {table.bucket_offset(5) + kLinkOffset, 1}},
       {{table.bucket_offset(0) + kHeaderOffset, kJointBefore.incremented(0)}},
       {{table.bucket_offset(2) + kHeaderOffset, kJointBehind.incremented(0)}}});
}

}  // namespace
}  // namespace perdura::systems::pfarm::test
