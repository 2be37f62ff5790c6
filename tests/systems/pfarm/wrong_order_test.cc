// Indexes that do one thing in the wrong order or the wrong place: exploring the images of their
// operations notices each. Where the index takes the steps of a write, a wrong one takes others.
#include <gtest/gtest.h>

#include "tests/systems/bucket_hash/explored_index.h"
#include "tests/systems/pfarm/support.h"

namespace perdura::systems::pfarm::test {
namespace {

using perdura::test::is_noticed;
using perdura::test::joined;
using perdura::test::kModels;
using perdura::test::Mistake;
using perdura::test::no_mistake;
using perdura::test::Operation;
using perdura::test::Readers;
using perdura::test::Step;
using perdura::test::Steps;

// --- the steps of a write ------------------------------------------------------------------------

struct LoggedWrite {
  Record record{};
  Header before = 0;       // the header of the item's bucket
  Header from_before = 0;  // that of the bucket that the item leaves
  Steps log, commit, slot, headers, flush_slot, flush_headers, drain, end;
  Steps publish;

  SlotNumber slot_left() const {
    return static_cast<SlotNumber>(
        std::countr_zero((from_before ^ record.from_header) & kOccupied));
  }
};

Steps persisted(const Step& write) {
  return {write, Step::flush(write.offset, write.length), Step::fence()};
}

// Writes one record in the right order, without the checks.
Steps written(const Record& record) {
  const Geometry one_log;
  const Bytes mark = one_log.log_offset(0);
  const Step slot = Step::write_object(record.bucket() + slot_offset(record.slot()), record.item);
  const Step header = Step::write_word(record.bucket() + kHeaderOffset, record.header);
  return joined(persisted(Step::write_object(mark + kCacheLine, record)),
                persisted(Step::write_word(mark, 1)), persisted(slot), persisted(header),
                persisted(Step::write_word(mark, 0)));
}

// Replaces the steps of each write of an operation; others, as those of a link, stay as they are.
Mistake of_each_write(const std::function<Steps(const LoggedWrite&)>& wrong) {
  return [wrong](Operation, const Steps& steps, const Image&) {
    Steps all;
    auto next = steps.begin();
    const auto take = [&](std::ptrdiff_t count) {
      const auto begin = std::exchange(next, next + count);
      return Steps(begin, next);
    };
    while (next != steps.end()) {
      LoggedWrite write;
      if (!next->is_write() || next->length != sizeof(Record)) {
        all.push_back(*next++);
        continue;
      }
      std::memcpy(&write.record, next->bytes.data(), sizeof(Record));
      const std::ptrdiff_t buckets = write.record.from != 0 ? 2 : 1;
      write.log = take(3);
      write.commit = take(3);
      write.slot = take(1);
      write.headers = take(buckets);
      write.before = write.headers.front().word_before();
      write.from_before = write.headers.back().word_before();
      write.flush_slot = take(1);
      write.flush_headers = take(buckets);
      write.drain = take(1);
      write.end = take(3);
      const auto end = std::find_if_not(next, steps.end(), [](const Step& step) {
        return step.is_write() && step.length == kWord;
      });
      write.publish = take(end - next);
      all = joined(all, wrong(write));
    }
    return all;
  };
}

// --- mistakes ------------------------------------------------------------------------------------

// Without a log, an item and its bit may still be ordered; what takes more than that is not atomic.
Steps does_not_log(const LoggedWrite& w) {
  return joined(w.slot, w.flush_slot, w.drain, w.headers, w.flush_headers, w.drain, w.publish);
}
Steps persists_the_bitmap_before_the_item(const LoggedWrite& w) {
  return joined(w.headers, w.flush_headers, w.drain, w.log, w.commit, w.slot, w.flush_slot, w.drain,
                w.end, w.publish);
}
Steps commits_before_it_records(const LoggedWrite& w) {
  return joined(w.commit, w.log, w.slot, w.headers, w.flush_slot, w.flush_headers, w.drain, w.end,
                w.publish);
}
Steps ends_the_log_too_early(const LoggedWrite& w) {
  return joined(w.log, w.commit, w.end, w.slot, w.headers, w.flush_slot, w.flush_headers, w.drain,
                w.publish);
}
Steps never_ends_the_log(const LoggedWrite& w) {
  return joined(w.log, w.commit, w.slot, w.headers, w.flush_slot, w.flush_headers, w.drain,
                w.publish);
}
Steps does_not_persist_the_item(const LoggedWrite& w) {
  return joined(w.log, w.commit, w.slot, w.headers, w.flush_headers, w.drain, w.end, w.publish);
}
Steps does_not_persist_the_bitmap(const LoggedWrite& w) {
  return joined(w.log, w.commit, w.slot, w.headers, w.flush_slot, w.drain, w.end, w.publish);
}
Steps does_not_wait_for_the_flushes(const LoggedWrite& w) {
  return joined(w.log, w.commit, w.slot, w.headers, w.flush_slot, w.flush_headers, w.end,
                w.publish);
}
Steps lets_readers_see_it_first(const LoggedWrite& w) {
  return joined(w.slot, w.headers, w.publish, w.log, w.commit, w.flush_slot, w.flush_headers,
                w.drain, w.end);
}
Steps as_it_should(const LoggedWrite& w) {
  return joined(w.log, w.commit, w.slot, w.headers, w.flush_slot, w.flush_headers, w.drain, w.end,
                w.publish);
}

// With the rest of what changes: the item is deleted and then inserted, or inserted elsewhere.
bool is_update(const LoggedWrite& w) {
  return w.record.from == 0 && (w.before & w.record.header & bit_of(w.record.slot())) != 0;
}
Steps leaves_the_old_item(const LoggedWrite& w) {
  const auto other = free_slot(w.record.header);
  if (!is_update(w) || !other) return as_it_should(w);
  Record elsewhere = w.record;
  elsewhere.target = Record::target_of(w.record.bucket(), *other);
  elsewhere.header |= bit_of(*other);
  return joined(written(elsewhere), w.publish);
}
Steps updates_by_two_writes(const LoggedWrite& w) {
  if (!is_update(w)) return as_it_should(w);
  Record deleted = w.record;
  deleted.item = {};
  deleted.header &= ~bit_of(w.record.slot());
  return joined(written(deleted), written(w.record), w.publish);
}

// Neither increments the joint versions.
Steps copied(const LoggedWrite& w) {
  Record record = w.record;
  record.from = 0;
  record.header = kVersion.incremented(w.before) | bit_of(w.record.slot());
  return written(record);
}
Steps deleted(const LoggedWrite& w) {
  const Header header = kVersion.incremented(w.from_before) & ~bit_of(w.slot_left());
  return written(
      {.item = {}, .target = Record::target_of(w.record.from, w.slot_left()), .header = header});
}
Steps moves_by_two_writes(const LoggedWrite& w) {
  if (w.record.from == 0) return as_it_should(w);
  return joined(copied(w), deleted(w), w.publish);
}
Steps moves_by_two_writes_the_other_way(const LoggedWrite& w) {
  if (w.record.from == 0) return as_it_should(w);
  return joined(deleted(w), copied(w), w.publish);
}

// The last home has its second bucket at the table's start, where no READ comes.
const Geometry kWrapped{2, 0, 0};
Steps wraps_around(Operation operation, const Steps& steps, const Image& memory) {
  const Table table = kWrapped.table(0);
  Header header;
  std::memcpy(&header, &memory[table.bucket_offset(0) + kHeaderOffset], kWord);
  const auto in_first = [&](const LoggedWrite& w) {
    const auto slot = free_slot(header);
    const bool inserts = w.record.from == 0 && (w.before & bit_of(w.record.slot())) == 0;
    if (!inserts || !slot || w.record.bucket() != table.bucket_offset(table.homes)) {
      return as_it_should(w);
    }
    return written({.item = w.record.item,
                    .target = Record::target_of(table.bucket_offset(0), *slot),
                    .header = kVersion.incremented(header) | bit_of(*slot)});
  };
  return of_each_write(in_first)(operation, steps, memory);
}

bool noticed(const Mistake& mistake, const pmem::PersistenceModel& model,
             Readers readers = Readers::one_sided) {
  return is_noticed<PFarmHash>(mistake, model, {{1, 0, 2}, {3, 100, 0}}, 2, 60, readers);
}
bool noticed(Steps (*wrong)(const LoggedWrite&), const pmem::PersistenceModel& model,
             Readers readers = Readers::one_sided) {
  return noticed(of_each_write(wrong), model, readers);
}

TEST(PFarmCrash, WrongOrdersAreNoticed) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    EXPECT_FALSE(noticed(Mistake(no_mistake), model));
    EXPECT_FALSE(noticed(as_it_should, model));
    EXPECT_TRUE(noticed(does_not_log, model));
    EXPECT_TRUE(noticed(does_not_log, model, Readers::none));
    EXPECT_TRUE(noticed(persists_the_bitmap_before_the_item, model));
    EXPECT_TRUE(noticed(commits_before_it_records, model));
    EXPECT_TRUE(noticed(ends_the_log_too_early, model));
    EXPECT_TRUE(noticed(never_ends_the_log, model));
    EXPECT_TRUE(noticed(lets_readers_see_it_first, model));
    EXPECT_TRUE(noticed(leaves_the_old_item, model));
    EXPECT_TRUE(noticed(updates_by_two_writes, model));
    EXPECT_TRUE(noticed(moves_by_two_writes, model));
    EXPECT_TRUE(noticed(moves_by_two_writes_the_other_way, model));
    EXPECT_TRUE(is_noticed<PFarmHash>(wraps_around, model, {kWrapped}, 8, 60));
    // Caches that persist need no flush.
    const bool needs_flush = model.domain == pmem::PersistenceDomain::dmp;
    EXPECT_EQ(noticed(does_not_persist_the_item, model), needs_flush);
    EXPECT_EQ(noticed(does_not_persist_the_bitmap, model), needs_flush);
    EXPECT_EQ(noticed(does_not_wait_for_the_flushes, model), needs_flush);
  }
}

}  // namespace
}  // namespace perdura::systems::pfarm::test
