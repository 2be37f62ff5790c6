// Whatever store, flush or fence a power failure follows, and whichever image it leaves: recovery
// finds every acknowledged item once and whole, and the operation under way done or not begun.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <unordered_set>

#include "platform/error.h"
#include "tests/systems/pfarm/support.h"

namespace perdura::systems::pfarm::test {
namespace {

using perdura::test::ExploredMemory;
using perdura::test::ExploredRegion;
using perdura::test::Image;
using perdura::test::PlainMemory;

constexpr std::array kModels{
    pmem::PersistenceModel{.domain = pmem::PersistenceDomain::dmp, .ddio = false},
    pmem::PersistenceModel{.domain = pmem::PersistenceDomain::mhp, .ddio = false},
};

// How an image fails to hold what it should, or "".
std::string recovered_wrong(const Image& image, const Geometry& geometry, const Contents& before,
                            const Contents& after) {
  PlainMemory memory(image);
  Index index(memory.region(), 0, geometry);
  try {
    index.recover();
  } catch (const std::exception& error) {
    return error.what();
  }
  Contents found;
  std::uint64_t items = 0;
  index.for_each([&](const Slot& slot) {
    found[as_text(slot.key_bytes())] = as_text(slot.value_bytes());
    ++items;
  });
  if (items != found.size()) return "a key is there twice";
  if (items != index.items()) return "items are miscounted";
  if (found != before && found != after) return "other contents";
  for (const Contents* contents : {&before, &after}) {
    for (const auto& [key, value] : *contents) {
      const ClientRead read = read_as_client(memory.bytes(), geometry, index.level(), key);
      const auto expected = found.find(key);
      if (read.torn) return "a client reads for ever";
      if (read.value.has_value() != (expected != found.end())) {
        return "a client finds something else";
      }
      if (read.value && *read.value != expected->second) return "a client finds another value";
    }
  }
  return "";
}

// A function of the image in which no check occurs: recovery computes them all.
std::string without_checks(Image image, const Geometry& geometry) {
  for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
    const Table table = geometry.table(level);
    for (std::uint64_t bucket = 0; bucket < table.all_buckets(); ++bucket) {
      std::memset(&image[table.bucket_offset(bucket) + kCheckOffset], 0, kWord);
    }
  }
  return as_text(image);
}

// An index of which every step of every operation is explored.
template <class Tested>
class Explored {
 public:
  Explored(const Geometry& geometry, const pmem::PersistenceModel& model)
      : geometry_(geometry),
        live_(Image(geometry.size()), model),
        index_(live_.region, 0, geometry) {
    live_.memory->after_step = [this] { look(before_, after_); };
  }

  bool put(const std::string& key, const std::string& value) {
    after_[key] = value;
    const Slot item = item_of(key, value);
    while (wrong_.empty()) {
      const Index::Outcome outcome = index_.try_put(item);
      if (outcome == Index::Outcome::done) break;
      after_ = before_;
      if (outcome == Index::Outcome::out_of_space) break;
      resize();
      after_[key] = value;
    }
    return acknowledged();
  }
  bool erase(const std::string& key) {
    const bool known = after_.erase(key) != 0;
    if (index_.erase(item_of(key)).has_value() != known && wrong_.empty()) {
      wrong_ = "a delete finds something else";
    }
    return acknowledged();
  }

  const std::string& wrong() const { return wrong_; }
  std::uint64_t images() const { return images_; }
  const Index& index() const { return index_; }
  const Contents& contents() const { return before_; }

 private:
  // What has been acknowledged is durable.
  bool acknowledged() {
    look(after_, after_);
    before_ = after_;
    live_.memory->settle();
    return wrong_.empty();
  }
  // Each step is durable, too, except for checks, which would only multiply the images of the next.
  void resize() {
    index_.begin_resize();
    do {
      acknowledged();
    } while (index_.resize_step());
    acknowledged();
  }
  void look(const Contents& before, const Contents& after) {
    if (!wrong_.empty()) return;
    const Contents& least = is_read(before, after) ? after : before;
    std::unordered_set<std::string> seen;
    live_.memory->for_each_image([&](const Image& image) {
      if (!wrong_.empty() || !seen.insert(without_checks(image, geometry_)).second) return;
      ++images_;
      wrong_ = recovered_wrong(image, geometry_, least, after);
    });
  }
  // Whether a client reads now what the operation under way changes: then it must stay.
  bool is_read(const Contents& before, const Contents& after) const {
    const auto value_in = [](const Contents& contents, const std::string& key) {
      const auto found = contents.find(key);
      return found == contents.end() ? std::nullopt : std::optional(found->second);
    };
    for (const Contents* contents : {&before, &after}) {
      for (const auto& [key, value] : *contents) {
        if (value_in(before, key) == value_in(after, key)) continue;
        const ClientRead read =
            read_as_client(live_.memory->visible(), geometry_, index_.level(), key);
        if (!read.torn && read.value == value_in(after, key)) return true;
      }
    }
    return false;
  }

  Geometry geometry_;
  ExploredRegion live_;
  Tested index_;
  Contents before_;
  Contents after_;
  std::string wrong_;
  std::uint64_t images_ = 0;
};

// Until something is wrong, or for as many operations.
template <class Tested>
void run_random(Explored<Tested>& explored, std::uint64_t seed, int operations) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < operations; ++i) {
    const std::string key = numbered_key(random() % 24);
    const bool good = random() % 5 == 0 ? explored.erase(key)
                                        : explored.put(key, numbered_value(random() % 1000));
    if (!good) return;
  }
}

TEST(PFarmCrash, LosesTearsDuplicatesAndRevivesNothing) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    std::uint64_t images = 0;
    std::uint64_t resizes = 0;
    std::uint64_t movements = 0;
    std::uint64_t blocks = 0;
    for (const Geometry& geometry : {Geometry{1, 0, 2}, Geometry{1, 100, 1}, Geometry{2, 100, 0},
                                     Geometry{3, 0, 1}, Geometry{4, 50, 0}}) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(testing::Message() << geometry.homes << " homes, " << geometry.overflow_percent
                                        << " % overflow, seed " << seed);
        Explored<Index> explored(geometry, model);
        run_random(explored, seed, 70);
        ASSERT_EQ(explored.wrong(), "");
        images += explored.images();
        resizes += explored.index().level();
        movements += explored.index().movements();
        blocks += explored.index().blocks_used();
        EXPECT_EQ(contents_of(explored.index()), explored.contents());
      }
    }
    std::cout << pmem::to_string(model.domain) << ": " << images << " images, " << resizes
              << " resizes, " << movements << " movements, " << blocks << " overflow blocks\n";
    EXPECT_GE(resizes, 8U);
    EXPECT_GE(movements, 8U);
    EXPECT_GE(blocks, 8U);
    EXPECT_GT(images, 10'000U);
  }
}

// Explores the recovery from every image of some operations: from each of its own steps it can be
// done again.
class RecoveryExplored {
 public:
  RecoveryExplored(const Geometry& geometry, const pmem::PersistenceModel& model)
      : geometry_(geometry),
        model_(model),
        live_(Image(geometry.size()), model),
        index_(live_.region, 0, geometry) {
    live_.memory->after_step = [this] {
      live_.memory->for_each_image([this](const Image& image) {
        if (is_new(once_, image)) explore_recovery(image);
      });
    };
  }

  Index::Outcome put(const std::string& key, const std::string& value) {
    after_[key] = value;
    const Index::Outcome outcome = index_.try_put(item_of(key, value));
    if (outcome != Index::Outcome::done) after_ = before_;
    settle();
    return outcome;
  }
  void erase(const std::string& key) {
    after_.erase(key);
    EXPECT_TRUE(index_.erase(item_of(key)));
    settle();
  }
  void resize() {
    index_.begin_resize();
    do {
      settle();
    } while (index_.resize_step());
    settle();
  }

  const Index& index() const { return index_; }
  const std::string& wrong() const { return wrong_; }
  std::size_t once() const { return once_.size(); }
  std::size_t twice() const { return twice_.size(); }

 private:
  void settle() {
    before_ = after_;
    live_.memory->settle();
  }
  bool is_new(std::set<std::string>& seen, const Image& image) const {
    return seen.insert(without_checks(image, geometry_)).second;
  }
  void explore_recovery(const Image& image) {
    ExploredRegion second(image, model_);
    second.memory->after_step = [&] {
      second.memory->for_each_image([&](const Image& again) {
        if (!is_new(twice_, again) || !wrong_.empty()) return;
        wrong_ = recovered_wrong(again, geometry_, before_, after_);
      });
    };
    Index recovering(second.region, 0, geometry_);
    recovering.recover();
  }

  Geometry geometry_;
  pmem::PersistenceModel model_;
  ExploredRegion live_;
  Index index_;
  Contents before_;
  Contents after_;
  std::set<std::string> once_;
  std::set<std::string> twice_;
  std::string wrong_;
};

TEST(PFarmCrash, RecoveryFromAWriteMayBeInterruptedToo) {
  for (const pmem::PersistenceModel& model : kModels) {
    RecoveryExplored explored({3, 50, 0}, model);
    KeysOf keys(explored.index().table());
    std::string last;
    for (int home : {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1}) {
      last = keys.next(static_cast<std::uint64_t>(home));
      EXPECT_EQ(explored.put(last, "value"), Index::Outcome::done);
    }
    explored.put(last, "other");
    explored.erase(last);
    EXPECT_EQ(explored.wrong(), "");
    EXPECT_EQ(explored.index().movements(), 1U);
    EXPECT_EQ(explored.index().blocks_used(), 1U);
    EXPECT_GT(explored.once(), 70U);
    EXPECT_GT(explored.twice(), 40U);
  }
}

TEST(PFarmCrash, RecoveryFromAResizeMayBeInterruptedToo) {
  for (const pmem::PersistenceModel& model : kModels) {
    RecoveryExplored explored({1, 0, 1}, model);
    for (std::uint64_t number = 0; number < 4; ++number) {
      EXPECT_EQ(explored.put(numbered_key(number), numbered_value(number)), Index::Outcome::done);
    }
    explored.resize();
    EXPECT_EQ(explored.wrong(), "");
    EXPECT_EQ(explored.index().items(), 4U);
    EXPECT_GT(explored.once(), 30U);
    EXPECT_GT(explored.twice(), 30U);
  }
}

// --- the test notices wrong orders ---------------------------------------------------------------

// Without a log, an item and its bit may still be ordered; what takes more than that is not atomic.
class DoesNotLog final : public Index {
 public:
  using Index::Index;

 private:
  void execute(const Record& record) override {
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
  void execute(const Record& record) override {
    write_headers(record);
    flush_headers(record);
    drain();
    log().write(record);
    log().commit();
    write_slot(record);
    flush_slot(record);
    drain();
    log().end();
    publish(record);
  }
};

class CommitsBeforeItRecords final : public Index {
 public:
  using Index::Index;

 private:
  void execute(const Record& record) override {
    log().commit();
    log().write(record);
    write_slot(record);
    write_headers(record);
    flush_slot(record);
    flush_headers(record);
    drain();
    log().end();
    publish(record);
  }
};

class EndsTheLogTooEarly final : public Index {
 public:
  using Index::Index;

 private:
  void execute(const Record& record) override {
    log().write(record);
    log().commit();
    log().end();
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
  void execute(const Record& record) override {
    log().write(record);
    log().commit();
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
  void execute(const Record& record) override {
    log().write(record);
    log().commit();
    write_slot(record);
    write_headers(record);
    flush_headers(record);
    drain();
    log().end();
    publish(record);
  }
};

class DoesNotPersistTheBitmap final : public Index {
 public:
  using Index::Index;

 private:
  void execute(const Record& record) override {
    log().write(record);
    log().commit();
    write_slot(record);
    write_headers(record);
    flush_slot(record);
    drain();
    log().end();
    publish(record);
  }
};

class DoesNotWaitForTheFlushes final : public Index {
 public:
  using Index::Index;

 private:
  void execute(const Record& record) override {
    log().write(record);
    log().commit();
    write_slot(record);
    write_headers(record);
    flush_slot(record);
    flush_headers(record);
    log().end();
    publish(record);
  }
};

class LetsReadersSeeItFirst final : public Index {
 public:
  using Index::Index;

 private:
  void execute(const Record& record) override {
    write_slot(record);
    write_headers(record);
    publish(record);
    log().write(record);
    log().commit();
    flush_slot(record);
    flush_headers(record);
    drain();
    log().end();
  }
};

class LeavesTheOldItem final : public Index {
 public:
  using Index::Index;

 private:
  void update_item(Place place, const Slot& item) override {
    const auto other = free_place(*place.table, place.table->home(item));
    if (other) return insert_item(*other, item);
    Index::update_item(place, item);
  }
};

class UpdatesByTwoWrites final : public Index {
 public:
  using Index::Index;

 private:
  void update_item(Place place, const Slot& item) override {
    delete_item(place);
    insert_item(place, item);
  }
};

class MovesByTwoWrites final : public Index {
 public:
  using Index::Index;

 private:
  void move_item(Place from, Place to, const Slot& item) override {
    insert_item(to, item);
    delete_item(from);
  }
};

class MovesByTwoWritesTheOtherWay final : public Index {
 public:
  using Index::Index;

 private:
  void move_item(Place from, Place to, const Slot& item) override {
    delete_item(from);
    insert_item(to, item);
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

// Whether it is found out, under this model, in a history of any of some seeds.
template <class Wrong>
bool noticed(const pmem::PersistenceModel& model) {
  for (const Geometry& geometry : {Geometry{1, 0, 2}, Geometry{3, 100, 0}}) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      Explored<Wrong> explored(geometry, model);
      run_random(explored, seed, 60);
      if (!explored.wrong().empty()) return true;
    }
  }
  return false;
}

TEST(PFarmCrash, WrongOrdersAreNoticed) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    EXPECT_FALSE(noticed<Index>(model));
    EXPECT_TRUE(noticed<DoesNotLog>(model));
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

TEST(PFarmCrash, DamageIsRefusedInOneLine) {
  const Geometry geometry{4, 50, 1};
  const Table table = geometry.table(0);
  constexpr Bytes kRecord = kLogOffset + kCacheLine;
  using Words = std::vector<std::pair<Bytes, std::uint64_t>>;
  for (const Words& words :
       {Words{{kStateOffset, State{2, false}.word()}}, Words{{kStateOffset, State{1, true}.word()}},
        // A mark without a record, with one for another place, and with one from there.
        Words{{kLogOffset, 1}},
        Words{{kLogOffset, 1}, {kRecord + offsetof(Record, place), table.bucket_offset(1) + 4}},
        Words{{kLogOffset, 1}, {kRecord + offsetof(Record, place), geometry.size()}},
        Words{{kLogOffset, 1},
              {kRecord + offsetof(Record, place), table.bucket_offset(1)},
              {kRecord + offsetof(Record, from), table.bucket_offset(1) + kCacheLine}},
        Words{{table.bucket_offset(1) + kLinkOffset, 3}},
        Words{{table.bucket_offset(4) + kLinkOffset, 1}},
        Words{{table.bucket_offset(1) + kLinkOffset, 1}, {table.bucket_offset(5) + kLinkOffset, 1}},
        Words{{table.bucket_offset(0) + kHeaderOffset, kJointBefore.incremented(0)}},
        Words{{table.bucket_offset(2) + kHeaderOffset, kJointBehind.incremented(0)}}}) {
    PlainMemory memory(geometry.size());
    for (const auto& [offset, word] : words) memory.region().store(offset, word);
    Index index(memory.region(), 0, geometry);
    try {
      index.recover();
      ADD_FAILURE() << "was recovered: " << words.back().first;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace perdura::systems::pfarm::test
