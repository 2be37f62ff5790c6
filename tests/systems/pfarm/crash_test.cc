// Whatever store, flush or fence a power failure follows, and whichever image it leaves: recovery
// finds every acknowledged item once and whole, and the operation under way done or not begun.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "platform/error.h"
#include "tests/systems/pfarm/explored_index.h"

namespace perdura::systems::pfarm::test {
namespace {

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

TEST(PFarmCrash, DamageIsRefusedInOneLine) {
  const Geometry geometry{4, 50, 1, 2};
  const Table table = geometry.table(0);
  const Bytes mark = geometry.log_offset(1);
  const Bytes record = mark + kCacheLine;
  using Words = std::vector<std::pair<Bytes, std::uint64_t>>;
  for (const Words& words :
       {Words{{kStateOffset, State{2, false}.word()}}, Words{{kStateOffset, State{1, true}.word()}},
        // A mark without a record, with one for another place, and with one from there.
        Words{{mark, 1}},
        Words{{mark, 1}, {record + offsetof(Record, place), table.bucket_offset(1) + 4}},
        Words{{mark, 1}, {record + offsetof(Record, place), geometry.size()}},
        Words{{mark, 1},
              {record + offsetof(Record, place), table.bucket_offset(1)},
              {record + offsetof(Record, from), table.bucket_offset(1) + kCacheLine}},
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
