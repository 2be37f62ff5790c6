// Copies of the index that do one thing in the wrong order or the wrong place: exploring the images
// of their operations notices each.
#include <gtest/gtest.h>

#include "tests/systems/bucket_hash/explored_index.h"
#include "tests/systems/pfarm/support.h"

namespace perdura::systems::pfarm::test {
namespace {

using perdura::test::is_noticed;
using perdura::test::kModels;

// Without a log, an item and its bit may still be ordered; what takes more than that is not atomic.
class DoesNotLog final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog, const Record& record) override {
    write_slot(record);
    flush_slot(record);
    drain();
    write_headers(record);
    flush_headers(record);
    drain();
    publish(record);
  }
};

class PersistsTheBitmapBeforeTheItem final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog log, const Record& record) override {
    write_headers(record);
    flush_headers(record);
    drain();
    log.write(record);
    log.commit();
    write_slot(record);
    flush_slot(record);
    drain();
    log.end();
    publish(record);
  }
};

class CommitsBeforeItRecords final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog log, const Record& record) override {
    log.commit();
    log.write(record);
    write_slot(record);
    write_headers(record);
    flush_slot(record);
    flush_headers(record);
    drain();
    log.end();
    publish(record);
  }
};

class EndsTheLogTooEarly final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog log, const Record& record) override {
    log.write(record);
    log.commit();
    log.end();
    write_slot(record);
    write_headers(record);
    flush_slot(record);
    flush_headers(record);
    drain();
    publish(record);
  }
};

class NeverEndsTheLog final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog log, const Record& record) override {
    log.write(record);
    log.commit();
    write_slot(record);
    write_headers(record);
    flush_slot(record);
    flush_headers(record);
    drain();
    publish(record);
  }
};

class DoesNotPersistTheItem final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog log, const Record& record) override {
    log.write(record);
    log.commit();
    write_slot(record);
    write_headers(record);
    flush_headers(record);
    drain();
    log.end();
    publish(record);
  }
};

class DoesNotPersistTheBitmap final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog log, const Record& record) override {
    log.write(record);
    log.commit();
    write_slot(record);
    write_headers(record);
    flush_slot(record);
    drain();
    log.end();
    publish(record);
  }
};

class DoesNotWaitForTheFlushes final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog log, const Record& record) override {
    log.write(record);
    log.commit();
    write_slot(record);
    write_headers(record);
    flush_slot(record);
    flush_headers(record);
    log.end();
    publish(record);
  }
};

class LetsReadersSeeItFirst final : public Index {
 public:
  using Index::Index;

 private:
  void execute(RedoLog log, const Record& record) override {
    write_slot(record);
    write_headers(record);
    publish(record);
    log.write(record);
    log.commit();
    flush_slot(record);
    flush_headers(record);
    drain();
    log.end();
  }
};

class LeavesTheOldItem final : public Index {
 public:
  using Index::Index;

 private:
  void update_item(RedoLog log, Place place, const Slot& item) override {
    const auto other = free_place(*place.table, place.table->home(item));
    if (other) return insert_item(log, *other, item);
    Index::update_item(log, place, item);
  }
};

class UpdatesByTwoWrites final : public Index {
 public:
  using Index::Index;

 private:
  void update_item(RedoLog log, Place place, const Slot& item) override {
    delete_item(log, place);
    insert_item(log, place, item);
  }
};

class MovesByTwoWrites final : public Index {
 public:
  using Index::Index;

 private:
  void move_item(RedoLog log, Place from, Place to, const Slot& item) override {
    insert_item(log, to, item);
    delete_item(log, from);
  }
};

class MovesByTwoWritesTheOtherWay final : public Index {
 public:
  using Index::Index;

 private:
  void move_item(RedoLog log, Place from, Place to, const Slot& item) override {
    delete_item(log, from);
    insert_item(log, to, item);
  }
};

// The last home has its second bucket at the table's start, where no READ comes.
class WrapsAround final : public Index {
 public:
  using Index::Index;

 private:
  std::optional<Place> free_place(const Table& table, std::uint64_t home) const override {
    for (const std::uint64_t bucket : {home, (home + 1) % table.homes}) {
      const auto slot = free_slot(load_header(table, bucket));
      if (slot) return Place{&table, bucket, *slot};
    }
    return std::nullopt;
  }
};

template <class Wrong>
bool noticed(const pmem::PersistenceModel& model) {
  return is_noticed<PFarmHash, Wrong>(model, {{1, 0, 2}, {3, 100, 0}}, 2, 60);
}

TEST(PFarmCrash, WrongOrdersAreNoticed) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    EXPECT_FALSE(noticed<Index>(model));
    EXPECT_TRUE(noticed<DoesNotLog>(model));
    EXPECT_TRUE((is_noticed<PFarmHash, DoesNotLog>(model, {{1, 0, 2}, {3, 100, 0}}, 2, 60,
                                                   perdura::test::Readers::none)));
    EXPECT_TRUE(noticed<PersistsTheBitmapBeforeTheItem>(model));
    EXPECT_TRUE(noticed<CommitsBeforeItRecords>(model));
    EXPECT_TRUE(noticed<EndsTheLogTooEarly>(model));
    EXPECT_TRUE(noticed<NeverEndsTheLog>(model));
    EXPECT_TRUE(noticed<LetsReadersSeeItFirst>(model));
    EXPECT_TRUE(noticed<LeavesTheOldItem>(model));
    EXPECT_TRUE(noticed<UpdatesByTwoWrites>(model));
    EXPECT_TRUE(noticed<MovesByTwoWrites>(model));
    EXPECT_TRUE(noticed<MovesByTwoWritesTheOtherWay>(model));
    EXPECT_TRUE(noticed<WrapsAround>(model));
    // Caches that persist need no flush.
    const bool needs_flush = model.domain == pmem::PersistenceDomain::dmp;
    EXPECT_EQ(noticed<DoesNotPersistTheItem>(model), needs_flush);
    EXPECT_EQ(noticed<DoesNotPersistTheBitmap>(model), needs_flush);
    EXPECT_EQ(noticed<DoesNotWaitForTheFlushes>(model), needs_flush);
  }
}

}  // namespace
}  // namespace perdura::systems::pfarm::test
