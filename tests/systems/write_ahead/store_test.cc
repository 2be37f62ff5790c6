// The store behind the log: reads find what is in the log first, puts that were admitted can always
// be applied, and deleted keys stay deleted.
#include "systems/write_ahead/store.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"
#include "tests/systems/write_ahead/driver.h"

namespace perdura::systems::write_ahead {
namespace {

using namespace test;

const Shape kShape = small_shape(40);
struct StoreTest : testing::Test {
  Recovered made{kShape, Image(kShape.pool_size())};
  Store& store = made.store;
};

TEST_F(StoreTest, FindsAValueInTheLogBeforeItIsApplied) {
  ASSERT_TRUE(put_redo(store, "a key of 16 char", "one"));
  EXPECT_EQ(value_of(store, "a key of 16 char"), "one");
  ASSERT_TRUE(put_redo(store, "a key of 16 char", "two"));
  EXPECT_EQ(value_of(store, "a key of 16 char"), "two");
  while (store.apply_next()) {
  }
  EXPECT_EQ(value_of(store, "a key of 16 char"), "two");
}

TEST_F(StoreTest, AReservedSlotIsReadOnlyWhenItsRecordIsComplete) {
  ASSERT_TRUE(put_redo(store, "key", "old"));
  const std::optional<Position> p = reserve_slot(store, "key", "new", 1);
  ASSERT_TRUE(p);
  EXPECT_EQ(value_of(store, "key"), "old");
  EXPECT_TRUE(store.apply_next());
  EXPECT_FALSE(store.apply_next()) << "the record is not complete";
  EXPECT_EQ(value_of(store, "key"), "old");
  write_record(store, *p, "key", "new");
  EXPECT_EQ(value_of(store, "key"), "new");
  EXPECT_TRUE(store.apply_next());
  EXPECT_EQ(value_of(store, "key"), "new");
}

TEST_F(StoreTest, ARecordForAnotherKeyDoesNotCompleteAReservation) {
  const std::optional<Position> p = reserve_slot(store, "key", "new", 1);
  write_record(store, *p, "yek", "new");
  EXPECT_FALSE(store.verify(*p));
}

TEST_F(StoreTest, TheNewestCompleteRecordCounts) {
  const std::optional<Position> first = reserve_slot(store, "key", "one", 1);
  const std::optional<Position> second = reserve_slot(store, "key", "two", 2);
  write_record(store, *second, "key", "two");
  EXPECT_EQ(value_of(store, "key"), "two");
  write_record(store, *first, "key", "one");
  EXPECT_EQ(value_of(store, "key"), "two");
  for (const Position p : {*first, *second}) {
    EXPECT_TRUE(store.verify(p));
    EXPECT_TRUE(store.apply_next());
  }
  EXPECT_EQ(value_of(store, "key"), "two");
}

TEST_F(StoreTest, AnAdmittedPutIsAppliedEvenIfTheStoreIsFullByThen) {
  std::vector<std::string> admitted;
  for (std::uint64_t i = 0; admitted.size() < 8; ++i) {
    const std::string key = key_number(i);
    if (reserve_slot(store, key, "value", 1)) admitted.push_back(key);
  }
  for (const std::string& key : admitted) {
    const Position p = store.log().applied();
    write_record(store, p, key, "value");
    ASSERT_TRUE(store.verify(p));
    ASSERT_TRUE(store.apply_next());
  }
  for (const std::string& key : admitted) EXPECT_EQ(value_of(store, key), "value");
}

TEST_F(StoreTest, HoldsAsManyKeysAsItWasMadeFor) {
  std::uint64_t held = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const bool taken = put_redo(store, key_number(5 * i + 2), "value");
    held += taken ? 1 : 0;
    refused += taken ? 0 : 1;
  }
  EXPECT_EQ(held, kShape.records);
  EXPECT_EQ(refused, 40 - kShape.records);
}

TEST_F(StoreTest, RoomOfADroppedReservationIsFreeAgain) {
  for (int round = 0; round < 10; ++round) {
    std::vector<Position> positions;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const auto p = reserve_slot(store, key_number(5 * (8 * round + i) + 2), "value", 1);
      ASSERT_TRUE(p) << "round " << round;
      positions.push_back(*p);
    }
    for (const Position p : positions) {
      store.log().at(p).state = LogEntry::State::dropped;
      ASSERT_TRUE(store.apply_next());
    }
  }
}

TEST_F(StoreTest, ADeleteWaitsForRecordsBeforeItThatAreNotComplete) {
  ASSERT_TRUE(put_redo(store, "key", "old"));
  const std::optional<Position> p = reserve_slot(store, "key", "new", 1);
  EXPECT_FALSE(store.erase(as_key("key")).has_value());
  EXPECT_EQ(value_of(store, "key"), "old");
  write_record(store, *p, "key", "new");
  const std::optional<kv::Result<void>> erased = store.erase(as_key("key"));
  ASSERT_TRUE(erased.has_value());
  EXPECT_TRUE(erased->has_value());
  EXPECT_EQ(value_of(store, "key"), std::nullopt);
  EXPECT_EQ(store.erase(as_key("key"))->error(), kv::Error::not_found);
}

TEST_F(StoreTest, ADeleteOfAnotherKeyDoesNotWait) {
  ASSERT_TRUE(put_redo(store, "key", "old"));
  while (store.apply_next()) {
  }
  ASSERT_TRUE(reserve_slot(store, "other", "new", 1));
  const std::optional<kv::Result<void>> erased = store.erase(as_key("key"));
  ASSERT_TRUE(erased.has_value());
  EXPECT_TRUE(erased->has_value());
}

TEST_F(StoreTest, RecoveryDoesNotBringADeletedKeyBack) {
  ASSERT_TRUE(put_redo(store, "key", "value"));
  ASSERT_TRUE(put_redo(store, "other", "value"));
  ASSERT_TRUE(store.erase(as_key("key")).has_value());
  // The record of the key is still in the log, and the replay start before it.
  EXPECT_EQ(store.log().replay_start(), 0u + kShape.log_slots);
  Recovered again(kShape, made.memory->durable);
  EXPECT_EQ(value_of(again.store, "key"), std::nullopt);
  EXPECT_EQ(value_of(again.store, "other"), "value");
}

TEST_F(StoreTest, NorIfTheEntryOfTheDeletedKeyIsUsedAgain) {
  const hopscotch::Geometry table = kShape.table();
  const auto home = [&](const std::string& key) { return table.home(table.stored(as_key(key))); };
  const std::string deleted = key_number(2);
  ASSERT_TRUE(put_redo(store, deleted, "value"));
  ASSERT_TRUE(store.erase(as_key(deleted))->has_value());
  std::uint64_t number = 3;
  while (home(key_number(number)) != home(deleted)) ++number;
  ASSERT_TRUE(put_redo(store, key_number(number), "value"));
  while (store.apply_next()) {
  }
  Recovered again(kShape, made.memory->durable);
  EXPECT_EQ(value_of(again.store, deleted), std::nullopt);
  EXPECT_EQ(value_of(again.store, key_number(number)), "value");
}

TEST_F(StoreTest, AKeyDeletedAndPutAgainHasItsLastValue) {
  for (int round = 0; round < 100; ++round) {
    const std::string value = "round " + std::to_string(round);
    ASSERT_TRUE(put_redo(store, "key", "before"));
    ASSERT_TRUE(store.erase(as_key("key"))->has_value());
    ASSERT_TRUE(put_redo(store, "key", value));
    Recovered again(kShape, made.memory->durable);
    EXPECT_EQ(value_of(again.store, "key"), value);
  }
}

// A client dies and is given up, its room goes to another key, and then, as a network may have it,
// the last of its record arrives: recovery must not give the room back to it.
TEST_F(StoreTest, ADroppedRecordThatArrivesLateTakesNoRoomFromAnother) {
  std::uint64_t number = 2;
  for (std::uint64_t held = 0; held + 1 < kShape.records; number += 5) {
    held += put_redo(store, key_number(number), "value") ? 1 : 0;
  }
  while (store.apply_next()) {
  }
  const std::string dead = key_number(number);
  const std::optional<Position> p = reserve_slot(store, dead, "value", 1);
  ASSERT_TRUE(p);
  store.log().at(*p).state = LogEntry::State::dropped;
  ASSERT_TRUE(store.apply_next());
  std::string alive;
  do {
    number += 5;
    alive = key_number(number);
  } while (!put_redo(store, alive, "alive"));
  write_record(store, *p, dead, "value");
  Recovered again(kShape, made.memory->visible);
  EXPECT_EQ(value_of(again.store, alive), "alive");
}

// Table 1 of the Erda paper, by parts: an update is 4 bytes and twice the key and value, of which
// the record's part is written by the client here.
TEST(Table1, IsTheSumOfItsParts) {
  kv::KvConfig config;
  config.key_size = 20;
  config.value_size = config.max_value_size = 100;
  const Shape shape(config, Parameters::of(config, "a-system", 2));
  std::vector<std::uint64_t> memory(shape.pool_size() / kWord);
  Store store({std::make_unique<pmem::Region>("pool", pmem::Medium::pm,
                                              reinterpret_cast<std::byte*>(memory.data()),
                                              shape.pool_size(), nullptr, nullptr),
               true},
              shape);
  const std::string key(20, 'k');
  const std::string value(100, 'v');
  const auto field_bytes = [] {
    return static_cast<double>(pmem::thread_write_meter().writes().local_store.field_bits) / 8;
  };
  double before = field_bytes();
  ASSERT_TRUE(put_redo(store, key, value));
  while (store.apply_next()) {
  }
  EXPECT_EQ(field_bytes() - before, 20 + 12 + 2 * 120.0) << "create";
  before = field_bytes();
  ASSERT_TRUE(put_redo(store, key, value));
  while (store.apply_next()) {
  }
  EXPECT_EQ(field_bytes() - before, 4 + 2 * 120.0) << "update";
  before = field_bytes();
  ASSERT_TRUE(store.erase(as_key(key))->has_value());
  EXPECT_EQ(field_bytes() - before, 20 + 8.0) << "delete";
}

TEST(Recovery, ADamagedTableIsRefused) {
  Recovered made(kShape, Image(kShape.pool_size()));
  Image image = made.memory->visible;
  image[kShape.table_offset() + 3] = std::byte{0x7F};  // an object far beyond the last
  EXPECT_THROW(Recovered(kShape, image), UsageError);
}

}  // namespace
}  // namespace perdura::systems::write_ahead
