// Whatever store, flush or fence a power failure follows, and whichever image it leaves: recovery
// finds every acknowledged item once and whole, and the operation under way done or not begun.
#include "tests/systems/bucket_hash/explored_index.h"
#include "tests/systems/continuity/support.h"

namespace perdura::systems::continuity::test {
namespace {

using perdura::test::Amounts;
using perdura::test::expect_damage_refused;
using perdura::test::explore_histories;
using perdura::test::is_noticed;
using perdura::test::kModels;
using perdura::test::Readers;
using perdura::test::RecoveryExplored;

TEST(ContinuityCrash, LosesTearsDuplicatesAndRevivesNothing) {
  for (const pmem::PersistenceModel& model : kModels) {
    Amounts amounts = explore_histories<ContinuityHash>(
        model, {{1, 1, 0, 1}, {1, 1, 100, 1}, {2, 1, 50, 0}, {1, 3, 0, 0}, {1, 1, 0, 1, 2}}, 4,
        {60});
    EXPECT_GE(amounts["resizes"], 8U);
    EXPECT_GT(amounts["groups"], 0U);
    EXPECT_GT(amounts["images"], 5'000U);
  }
}

// As LosesTearsDuplicatesAndRevivesNothing, without the checks that only readers of memory need.
TEST(ContinuityCrash, NorDoesLocalMode) {
  for (const pmem::PersistenceModel& model : kModels) {
    Amounts amounts = explore_histories<ContinuityHash>(
        model, {{1, 1, 0, 1}, {1, 1, 100, 1}, {2, 1, 50, 0}}, 4, {60}, Readers::none);
    EXPECT_GE(amounts["resizes"], 4U);
    EXPECT_GT(amounts["groups"], 0U);
    EXPECT_GT(amounts["images"], 1'000U);
  }
}

TEST(ContinuityCrash, RecoveryFromAResizeMayBeInterruptedToo) {
  for (const pmem::PersistenceModel& model : kModels) {
    RecoveryExplored<ContinuityHash> explored({1, 1, 0, 1}, model);
    for (std::uint64_t number = 0; number < 7; ++number) {
      if (explored.put(numbered_key(number), numbered_value(number)) != Index::Outcome::done) break;
    }
    ASSERT_GE(explored.index().items(), 4U);
    explored.begin();
    explored.resize();
    if (model.domain == pmem::PersistenceDomain::dmp) {
      explored.expect_right(50, 45);
    } else {
      explored.expect_right(30, 20);
    }
  }
}

// --- the test notices wrong orders ---------------------------------------------------------------

class SetsTheBitFirst final : public Index {
 public:
  using Index::Index;

 private:
  void insert_item(Place place, Indicator indicator, const Slot& item) override {
    change_indicator(place, indicator | bit_of(place.slot), std::array{toggle(place.slot, item)});
    write_item(place, indicator, item);
    persist_item(place, indicator);
  }
};

class DoesNotPersistTheItem final : public Index {
 public:
  using Index::Index;

 private:
  void insert_item(Place place, Indicator indicator, const Slot& item) override {
    write_item(place, indicator, item);
    change_indicator(place, indicator | bit_of(place.slot), std::array{toggle(place.slot, item)});
  }
};

class UpdatesByTwoStores final : public Index {
 public:
  using Index::Index;

 private:
  void update_item(Place to, SlotNumber from, Indicator indicator, const Slot& old_item,
                   const Slot& item) override {
    insert_item(to, indicator, item);
    change_indicator(to, (indicator | bit_of(to.slot)) & ~bit_of(from),
                     std::array{toggle(from, old_item)});
  }
};

class LeavesTheOldItem final : public Index {
 public:
  using Index::Index;

 private:
  void update_item(Place to, SlotNumber, Indicator indicator, const Slot&,
                   const Slot& item) override {
    insert_item(to, indicator, item);
  }
};

class DeletesBeforeItInserts final : public Index {
 public:
  using Index::Index;

 private:
  void move_item(Place from, const Slot& item) override {
    delete_moved(from, item);
    insert_moved(item);
  }
};

class LetsReadersSeeItFirst final : public Index {
 public:
  using Index::Index;

 private:
  void change_indicator(Place pair, Indicator after, std::span<const Toggle> toggles) override {
    const Indicator before = load_indicator(*pair.table, pair.pair);
    store_indicator(pair, after);
    store_checks(pair, before, after, toggles);
    persist_indicator(pair);
  }
};

// As in published code, whose flush of the metadata covers something else.
class FlushesAnotherLine final : public Index {
 public:
  using Index::Index;

 private:
  void change_indicator(Place pair, Indicator after, std::span<const Toggle> toggles) override {
    const Indicator before = load_indicator(*pair.table, pair.pair);
    store_indicator(pair, after);
    persist_item(pair, after);
    store_checks(pair, before, after, toggles);
  }
};

template <class Wrong>
bool noticed(const pmem::PersistenceModel& model) {
  return is_noticed<ContinuityHash, Wrong>(model, {{1, 1, 0, 1}}, 3, 60);
}

TEST(ContinuityCrash, WrongOrdersAreNoticed) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    EXPECT_FALSE(noticed<Index>(model));
    EXPECT_TRUE(noticed<SetsTheBitFirst>(model));
    EXPECT_TRUE(noticed<UpdatesByTwoStores>(model));
    EXPECT_TRUE(noticed<LeavesTheOldItem>(model));
    EXPECT_TRUE(noticed<DeletesBeforeItInserts>(model));
    EXPECT_TRUE((is_noticed<ContinuityHash, DeletesBeforeItInserts>(model, {{1, 1, 0, 1}}, 3, 60,
                                                                    Readers::none)));
    // Caches that persist need no flush.
    const bool needs_flush = model.domain == pmem::PersistenceDomain::dmp;
    EXPECT_EQ(noticed<DoesNotPersistTheItem>(model), needs_flush);
    EXPECT_EQ(noticed<LetsReadersSeeItFirst>(model), needs_flush);
    EXPECT_EQ(noticed<FlushesAnotherLine>(model), needs_flush);
  }
}

TEST(ContinuityCrash, DamageIsRefusedInOneLine) {
  const Geometry geometry{2, 3, 0, 1};
  const Table table = geometry.table(0);
  expect_damage_refused<ContinuityHash>(geometry,
                                        {{{kStateOffset, State{2, false}.word()}},
                                         {{kStateOffset, State{1, true}.word()}},
                                         {{table.header_offset(1), with_group(0, 0)}},
                                         {{table.header_offset(1), bit_of(table.own_slots())}}});
}

}  // namespace
}  // namespace perdura::systems::continuity::test
