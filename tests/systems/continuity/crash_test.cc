// Whatever store, flush or fence a power failure follows, and whichever image it leaves: recovery
// finds every acknowledged item once and whole, and the operation under way done or not begun.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <random>

#include "platform/error.h"
#include "tests/systems/continuity/support.h"

namespace perdura::systems::continuity::test {
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
  index.recover();
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
      const auto seen = find_as_client(memory.bytes(), geometry, index.level(), key);
      const auto expected = found.find(key);
      if (seen.has_value() != (expected != found.end())) return "a client finds something else";
      if (seen && *seen != expected->second) return "a client finds another value";
    }
  }
  return "";
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
    if (!index_.put(item_of(key, value))) after_ = before_;
    return acknowledged();
  }
  bool erase(const std::string& key) {
    after_.erase(key);
    EXPECT_EQ(index_.erase(item_of(key)).has_value(), after_ != before_);
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
  void look(const Contents& before, const Contents& after) {
    if (!wrong_.empty()) return;
    const Contents& least = is_read(before, after) ? after : before;
    live_.memory->for_each_image([&](const Image& image) {
      ++images_;
      if (wrong_.empty()) wrong_ = recovered_wrong(image, geometry_, least, after);
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

TEST(ContinuityCrash, LosesTearsDuplicatesAndRevivesNothing) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    std::uint64_t images = 0;
    std::uint64_t resizes = 0;
    for (const Geometry& geometry :
         {Geometry{1, 1, 0, 1}, Geometry{1, 1, 100, 1}, Geometry{2, 1, 50, 0}, Geometry{1, 3, 0, 0},
          Geometry{1, 1, 0, 1, 2}}) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(testing::Message() << geometry.pairs << " pairs, " << geometry.added_percent
                                        << " % added, seed " << seed);
        Explored<Index> explored(geometry, model);
        run_random(explored, seed, 60);
        ASSERT_EQ(explored.wrong(), "");
        images += explored.images();
        resizes += explored.index().level();
        EXPECT_EQ(contents_of(explored.index()), explored.contents());
      }
    }
    std::cout << pmem::to_string(model.domain) << ": " << images << " images, " << resizes
              << " resizes\n";
    EXPECT_GE(resizes, 8U);
    EXPECT_GT(images, 5'000U);
  }
}

// A function of the image in which no check or fingerprint occurs: recovery computes them all.
std::string without_checks(Image image, const Geometry& geometry) {
  for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
    const Table table = geometry.table(level);
    for (std::uint64_t pair = 0; pair < table.pairs; ++pair) {
      std::memset(&image[table.header_offset(pair) + kWord], 0, kHeaderSize - kWord);
    }
  }
  return as_text(image);
}

// A power failure during the recovery from another one.
TEST(ContinuityCrash, RecoveryMayBeInterruptedToo) {
  const Geometry geometry{1, 1, 0, 1};
  const auto& model = kModels[0];
  ExploredRegion live(Image(geometry.size()), model);
  Index index(live.region, 0, geometry);
  Contents contents;
  for (std::uint64_t number = 0; number < 7; ++number) {
    const std::string key = numbered_key(number);
    if (index.try_put(item_of(key, numbered_value(number))) != Index::Outcome::done) break;
    contents[key] = numbered_value(number);
  }
  ASSERT_GE(contents.size(), 4U);
  live.memory->settle();
  std::set<std::string> once;
  std::set<std::string> twice;
  std::string wrong;
  const auto is_new = [&](std::set<std::string>& seen, const Image& image) {
    return seen.insert(without_checks(image, geometry)).second;
  };
  const auto explore_recovery = [&](const Image& image) {
    ExploredRegion second(image, model);
    second.memory->after_step = [&] {
      second.memory->for_each_image([&](const Image& again) {
        if (is_new(twice, again) && wrong.empty()) {
          wrong = recovered_wrong(again, geometry, contents, contents);
        }
      });
    };
    Index recovering(second.region, 0, geometry);
    recovering.recover();
  };
  live.memory->after_step = [&] {
    live.memory->for_each_image([&](const Image& image) {
      if (is_new(once, image)) explore_recovery(image);
    });
  };
  index.begin_resize();
  while (index.resize_step()) {
  }
  EXPECT_EQ(wrong, "");
  EXPECT_GT(once.size(), 50U);
  EXPECT_GT(twice.size(), once.size() / 2);
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

// Whether it is found out, under this model, in a history of any of some seeds.
template <class Wrong>
bool noticed(const pmem::PersistenceModel& model) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Explored<Wrong> explored({1, 1, 0, 1}, model);
    run_random(explored, seed, 60);
    if (!explored.wrong().empty()) return true;
  }
  return false;
}

TEST(ContinuityCrash, WrongOrdersAreNoticed) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    EXPECT_FALSE(noticed<Index>(model));
    EXPECT_TRUE(noticed<SetsTheBitFirst>(model));
    EXPECT_TRUE(noticed<UpdatesByTwoStores>(model));
    EXPECT_TRUE(noticed<LeavesTheOldItem>(model));
    EXPECT_TRUE(noticed<DeletesBeforeItInserts>(model));
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
  struct Damage {
    Bytes offset;
    std::uint64_t word;
  };
  for (const auto& [offset, word] :
       {Damage{kStateOffset, State{2, false}.word()}, Damage{kStateOffset, State{1, true}.word()},
        Damage{table.header_offset(1), with_group(0, 0)},
        Damage{table.header_offset(1), bit_of(table.own_slots())}}) {
    PlainMemory memory(geometry.size());
    memory.region().store(offset, word);
    Index index(memory.region(), 0, geometry);
    try {
      index.recover();
      FAIL() << "was recovered";
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace perdura::systems::continuity::test
