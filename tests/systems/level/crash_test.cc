// Whatever store, flush or fence a power failure follows, and whichever image it leaves: recovery
// finds every acknowledged item once and whole, and the operation under way done or not begun.
#include "tests/systems/bucket_hash/explored_index.h"
#include "tests/systems/level/support.h"

namespace perdura::systems::level::test {
namespace {

using perdura::test::Amounts;
using perdura::test::expect_damage_refused;
using perdura::test::explore_histories;
using perdura::test::is_noticed;
using perdura::test::kModels;
using perdura::test::Readers;

using RecoveryExplored = perdura::test::RecoveryExplored<LevelHash>;

TEST(LevelCrash, LosesTearsDuplicatesAndRevivesNothing) {
  for (const pmem::PersistenceModel& model : kModels) {
    Amounts amounts =
        explore_histories<LevelHash>(model, {{2, 0}, {2, 1}, {4, 0}}, 6, {200, 200, 400});
    EXPECT_GE(amounts["movements"], 10U);
    EXPECT_GE(amounts["overwritten slots"], 100U);
    EXPECT_GE(amounts["resizes"], 3U);
    EXPECT_GT(amounts["images"], 20'000U);
  }
}

// As LosesTearsDuplicatesAndRevivesNothing, without the checks that only readers of memory need.
TEST(LevelCrash, NorDoesLocalMode) {
  for (const pmem::PersistenceModel& model : kModels) {
    Amounts amounts = explore_histories<LevelHash>(model, {{2, 0}, {2, 1}, {4, 0}}, 3,
                                                   {200, 200, 400}, Readers::none);
    EXPECT_GE(amounts["movements"], 5U);
    EXPECT_GE(amounts["overwritten slots"], 50U);
    EXPECT_GE(amounts["resizes"], 1U);
    EXPECT_GT(amounts["images"], 5'000U);
  }
}

// Until a put moves an item or finds no room.
void fill(RecoveryExplored& explored) {
  for (std::uint64_t number = 0; explored.index().movements == 0; ++number) {
    const std::string key = numbered_key(number);
    if (explored.put(key, numbered_value(number)) != Index::Outcome::done) break;
  }
  ASSERT_GE(explored.index().items(), 12U);
}

TEST(LevelCrash, RecoveryFromAResizeMayBeInterruptedToo) {
  RecoveryExplored explored({2, 1}, kModels[0]);
  fill(explored);
  explored.begin();
  explored.resize();
  explored.expect_right(30, 30);
}

TEST(LevelCrash, RecoveryFromAnOverwrittenSlotMayBeInterruptedToo) {
  for (const pmem::PersistenceModel& model : kModels) {
    RecoveryExplored explored({2, 0}, model);
    fill(explored);
    explored.begin();
    // The item of a full bucket: the last bucket that a put found full is.
    EXPECT_EQ(explored.put(numbered_key(0), "overwritten"), Index::Outcome::done);
    EXPECT_EQ(explored.index().overwritten, 1U);
    explored.expect_right(4, 2);
  }
}

// Of three histories, the first put of each that moves an item.
TEST(LevelCrash, RecoveryFromAMovementMayBeInterruptedToo) {
  const Geometry geometry{2, 0};
  std::uint64_t tried = 0;
  for (std::uint64_t first = 0; tried < 3; first += 100) {
    PlainMemory memory(geometry.size());
    CountingIndex index(memory.region(), 0, geometry);
    std::uint64_t number = first;
    bool done = true;
    for (; done && index.movements == 0; ++number) {
      done = index.put(item_of(numbered_key(number), "v")).has_value();
    }
    if (!done) continue;
    ++tried;
    RecoveryExplored explored(geometry, kModels[0]);
    for (std::uint64_t i = first; i + 1 < number; ++i) {
      ASSERT_EQ(explored.put(numbered_key(i), "v"), Index::Outcome::done);
    }
    explored.begin();
    EXPECT_EQ(explored.put(numbered_key(number - 1), "v"), Index::Outcome::done);
    EXPECT_EQ(explored.index().movements, 1U);
    explored.expect_right(10, 3);
  }
}

// --- the test notices wrong orders ---------------------------------------------------------------

// "A token can persist before its key": the published code takes what is less than a line apart for
// one line.
class TakesNearForOneLine final : public Index {
 public:
  using Index::Index;

 private:
  void persist_item(Place place) override {
    if (slot_offset(place.slot) - kTokensOffset >= kCacheLine) Index::persist_item(place);
  }
};

// The published code's update: `token |= (1 << k) & ~(1 << j)` never clears bit j.
class LeavesTheOldItem final : public Index {
 public:
  using Index::Index;

 private:
  void update_item(Place to, SlotNumber, const Slot&, const Slot& item, Tag tag) override {
    insert_item(to, item, tag);
  }
};

// The published code flushes a variable on the stack instead.
class FlushesSomethingElse final : public Index {
 public:
  using Index::Index;

 private:
  void persist_tokens(Bytes) override { persist(kStateOffset, kWord); }
};

class SetsTheTokenFirst final : public Index {
 public:
  using Index::Index;

 private:
  void insert_item(Place place, const Slot& item, Tag tag) override {
    change_tokens(place.bucket, with_item(load_tokens(place.bucket), place.slot, tag),
                  toggle(place.slot, item));
    write_item(place, item);
    persist_item(place);
  }
};

class UpdatesByTwoStores final : public Index {
 public:
  using Index::Index;

 private:
  void update_item(Place to, SlotNumber from, const Slot& old_item, const Slot& item,
                   Tag tag) override {
    insert_item(to, item, tag);
    delete_item({to.bucket, from}, old_item);
  }
};

class OverwritesWithoutALog final : public Index {
 public:
  using Index::Index;

 private:
  void overwrite_item(Place place, const Slot& old_item, const Slot& item, LogNumber) override {
    const std::uint64_t check = load_check(place.bucket);
    write_item(place, item);
    persist_item(place);
    store_check(place.bucket, check ^ toggle(place.slot, old_item) ^ toggle(place.slot, item));
  }
};

class MarksTheEntryFirst final : public Index {
 public:
  using Index::Index;

 private:
  void log_item(Place place, const Slot& item, LogNumber log) override {
    mark_log_entry(1, log);
    write_log_entry(place, item, log);
    persist_log_entry(log);
  }
};

class ClearsTheLogFirst final : public Index {
 public:
  using Index::Index;

 private:
  void overwrite_item(Place place, const Slot& old_item, const Slot& item, LogNumber log) override {
    const std::uint64_t check = load_check(place.bucket);
    log_item(place, item, log);
    clear_log(log);
    write_item(place, item);
    persist_item(place);
    store_check(place.bucket, check ^ toggle(place.slot, old_item) ^ toggle(place.slot, item));
  }
};

class MovesByDeletingFirst final : public Index {
 public:
  using Index::Index;

 private:
  void move_item(Place from, Place to, const Slot& item, Tag tag) override {
    delete_item(from, item);
    insert_item(to, item, tag);
  }
};

class DeletesBeforeItInserts final : public Index {
 public:
  using Index::Index;

 private:
  void rehash_bucket(std::uint64_t bucket) override {
    const Bytes offset = geometry().level(bottom()).bucket_offset(bucket);
    const Tokens tokens = load_tokens(offset);
    delete_all(offset);
    store_tokens(offset, tokens);
    insert_descendants(bucket);
    store_tokens(offset, 0);
  }
};

class LetsReadersSeeItFirst final : public Index {
 public:
  using Index::Index;

 private:
  void change_tokens(Bytes bucket, Tokens after, std::uint64_t toggles) override {
    const Tokens before = load_tokens(bucket);
    store_tokens(bucket, after);
    store_check(bucket, load_check(bucket) ^ check_term(before) ^ check_term(after) ^ toggles);
    persist_tokens(bucket);
  }
};

template <class Wrong>
bool noticed(const pmem::PersistenceModel& model) {
  return is_noticed<LevelHash, Wrong>(model, {{2, 0}, {2, 1}}, 4, 120);
}

TEST(LevelCrash, WrongOrdersAreNoticed) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    EXPECT_FALSE(noticed<Index>(model));
    EXPECT_TRUE(noticed<LeavesTheOldItem>(model));
    EXPECT_TRUE(noticed<SetsTheTokenFirst>(model));
    EXPECT_TRUE(noticed<UpdatesByTwoStores>(model));
    EXPECT_TRUE(noticed<OverwritesWithoutALog>(model));
    EXPECT_TRUE(noticed<MarksTheEntryFirst>(model));
    EXPECT_TRUE(noticed<ClearsTheLogFirst>(model));
    EXPECT_TRUE(noticed<MovesByDeletingFirst>(model));
    EXPECT_TRUE((is_noticed<LevelHash, MovesByDeletingFirst>(model, {{2, 0}, {2, 1}}, 4, 120,
                                                             Readers::none)));
    EXPECT_TRUE(noticed<DeletesBeforeItInserts>(model));
    // Caches that persist need no flush.
    const bool needs_flush = model.domain == pmem::PersistenceDomain::dmp;
    EXPECT_EQ(noticed<TakesNearForOneLine>(model), needs_flush);
    EXPECT_EQ(noticed<FlushesSomethingElse>(model), needs_flush);
    EXPECT_EQ(noticed<LetsReadersSeeItFirst>(model), needs_flush);
  }
}

TEST(LevelCrash, DamageIsRefusedInOneLine) {
  const Geometry geometry{2, 1, 2};
  const Bytes entry = log_entry_offset(1, 3);
  const Bytes mark = entry + offsetof(LogEntry, mark);
  const Bytes place = entry + offsetof(LogEntry, place);
  const Bytes bottom = geometry.level(0).offset;
  expect_damage_refused<LevelHash>(
      geometry, {{{kStateOffset, State{2, false}.word()}},
                 {{kStateOffset, State{1, true}.word()}},
                 {{log_position_offset(1), kLogEntries}},
                 {{mark, 1}},
                 {{mark, 1}, {place, bottom}},
                 {{mark, 1}, {place, bottom + slot_offset(1) + kWord}},
                 {{mark, 1}, {place, geometry.level(2).offset + slot_offset(0)}}});
}

}  // namespace
}  // namespace perdura::systems::level::test
