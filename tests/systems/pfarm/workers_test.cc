// The power fails when two workers are in the middle of a write each, with both logs in use: each
// write is done or not begun afterwards, whatever the other one had come to.
//
// The two have locked different buckets, so neither changes what the other one reads. Therefore it
// is enough that one comes to each of its steps and then the other one to each of its: that gives
// the same images as any other order of the same steps.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/systems/bucket_hash/explored_index.h"
#include "tests/systems/pfarm/support.h"

namespace perdura::systems::pfarm::test {
namespace {

using perdura::test::DistinctImages;
using perdura::test::kModels;
using perdura::test::Mistake;
using perdura::test::no_mistake;
using perdura::test::Operation;
using perdura::test::recovered_wrong;
using perdura::test::Step;
using perdura::test::Steps;
using perdura::test::without_checks;

constexpr Geometry kGeometry{7, 30, 0, 2};
// Nothing that a write with the one home touches is touched by one with the other.
constexpr std::array<std::uint64_t, 2> kHomes{1, 5};

enum class Kind { insert, update, erase, insert_with_movement, insert_with_block };
constexpr std::array kKinds{Kind::insert, Kind::update, Kind::erase, Kind::insert_with_movement,
                            Kind::insert_with_block};

std::string name_of(Kind kind) {
  constexpr std::array kNames{"insert", "update", "erase", "insert_with_movement",
                              "insert_with_block"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct Write {
  std::string key;
  std::optional<std::string> value;  // nothing: it erases

  void apply_to(Contents& contents) const {
    if (value) {
      contents[key] = *value;
    } else {
      contents.erase(key);
    }
  }
  // As the server does it for a worker.
  void apply_to(Index& index, std::uint32_t worker) const {
    const Slot item = item_of(key, value.value_or(""));
    if (value) {
      EXPECT_EQ(index.try_put(item, hash_of(item), worker), Index::Outcome::done);
    } else {
      EXPECT_TRUE(index.erase(item, hash_of(item), worker).has_value());
    }
  }
};

// Makes the table such that a write of a home is of that kind.
Write prepare(Index& index, KeysOf& keys, std::uint64_t home, Kind kind) {
  const auto insert = [&](std::uint64_t item_home, int number) {
    std::string key;
    for (int i = 0; i < number; ++i) {
      key = keys.next(item_home);
      EXPECT_TRUE(index.put(item_of(key, "old")).has_value());
    }
    return key;
  };
  switch (kind) {
    case Kind::insert:
      insert(home, 1);
      return {keys.next(home), "new"};
    case Kind::update:
      return {insert(home, 1), "new"};
    case Kind::erase:
      return {insert(home, 1), std::nullopt};
    case Kind::insert_with_movement: {
      // One of the home before lies here, and there is room for it there.
      const std::string before = insert(home - 1, 1);
      insert(home - 1, 4);
      insert(home, 7);
      EXPECT_TRUE(index.erase(item_of(before)).has_value());
      return {keys.next(home), "new"};
    }
    case Kind::insert_with_block:
      insert(home, 8);
      return {keys.next(home), "new"};
  }
  return {};
}

struct Seen {
  std::uint64_t images = 0;
  std::uint64_t of_two_records = 0;  // with a mark in both logs
  std::uint64_t steps = 0;
};

class TwoWorkers {
 public:
  // The second worker may make a mistake.
  TwoWorkers(const pmem::PersistenceModel& model, std::array<Kind, 2> kinds,
             Mistake mistake = no_mistake)
      : model_(model), mistake_(std::move(mistake)) {
    PlainMemory memory(kGeometry.size());
    Index index(memory.region(), 0, kGeometry);
    KeysOf keys(index.table());
    for (std::size_t i = 0; i < 2; ++i) writes_[i] = prepare(index, keys, kHomes[i], kinds[i]);
    contents_ = contents_of(index);
    const auto bytes = memory.bytes();
    image_.assign(bytes.begin(), bytes.end());
  }

  // How an image is wrong, or "".
  std::string explore() {
    for (std::uint64_t steps = 0; !first_done_ && wrong_.empty(); ++steps) explore_after(steps);
    return wrong_;
  }
  const Seen& seen() const { return seen_; }

 private:
  struct Stopped {};

  void explore_after(std::uint64_t steps_of_first) {
    ExploredRegion live(image_, model_);
    ExploredMemory& memory = *live.memory;
    Index index(live.region, 0, kGeometry);
    index.recover();
    memory.writer = &writes_[0];
    std::uint64_t steps = 0;
    memory.after_step = [&] {
      if (steps++ == steps_of_first) throw Stopped{};
    };
    try {
      writes_[0].apply_to(index, 0);
      first_done_ = true;
    } catch (Stopped) {
    }
    memory.writer = &writes_[1];
    memory.record();
    writes_[1].apply_to(index, 1);
    const Steps of_second = memory.recorded();
    memory.after_step = [&] {
      ++seen_.steps;
      look(memory, false);
    };
    distinct_.clear();
    memory.take(mistake_(Operation::put, of_second, memory.visible()));
    distinct_.clear();
    look(memory, true);
  }

  void look(const ExploredMemory& memory, bool second_done) {
    if (!wrong_.empty()) return;
    memory.for_each_image([&](const Image& image) {
      if (!wrong_.empty() || !distinct_.insert(without_checks<PFarmHash>(image, kGeometry)).second)
        return;
      ++seen_.images;
      if (marked(image, 0) && marked(image, 1)) ++seen_.of_two_records;
      const auto is = [&](bool first, bool second, bool or_first, bool or_second) {
        return recovered_wrong<PFarmHash>(image, kGeometry, after(first, second),
                                          after(or_first, or_second));
      };
      wrong_ = is(first_done_, second_done, true, true);
      if (!wrong_.empty()) wrong_ = is(first_done_, true, true, second_done);
    });
  }
  static bool marked(const Image& image, std::uint32_t worker) {
    return image[kGeometry.log_offset(worker)] != std::byte{0};
  }
  Contents after(bool first, bool second) const {
    Contents contents = contents_;
    if (first) writes_[0].apply_to(contents);
    if (second) writes_[1].apply_to(contents);
    return contents;
  }

  pmem::PersistenceModel model_;
  Mistake mistake_;
  std::array<Write, 2> writes_;
  Contents contents_;
  Image image_;
  bool first_done_ = false;
  DistinctImages distinct_;
  std::string wrong_;
  Seen seen_;
};

using Kinds = std::array<Kind, 2>;

// Which of the two comes first makes no difference.
std::vector<Kinds> pairs_of_kinds() {
  std::vector<Kinds> pairs;
  for (const Kind first : kKinds) {
    for (const Kind second : kKinds) {
      if (first <= second) pairs.push_back({first, second});
    }
  }
  return pairs;
}

class PFarmTwoWorkers : public testing::TestWithParam<Kinds> {};
INSTANTIATE_TEST_SUITE_P(All, PFarmTwoWorkers, testing::ValuesIn(pairs_of_kinds()),
                         [](const testing::TestParamInfo<Kinds>& kinds) {
                           return name_of(kinds.param[0]) + "_and_" + name_of(kinds.param[1]);
                         });

TEST_P(PFarmTwoWorkers, InTheMiddleOfAWriteHaveEachDoneItOrNotBegun) {
  for (const pmem::PersistenceModel& model : kModels) {
    TwoWorkers two(model, GetParam());
    ASSERT_EQ(two.explore(), "") << pmem::to_string(model.domain);
    EXPECT_GT(two.seen().of_two_records, 0U);
    std::cout << pmem::to_string(model.domain) << ": " << two.seen().steps << " pairs of steps, "
              << two.seen().images << " images, " << two.seen().of_two_records
              << " with two records\n";
  }
}

// As if there were only one log.
Steps shares_a_log(Operation, Steps steps, const Image&) {
  for (Step& step : steps) {
    const bool is_in_second =
        step.offset >= kGeometry.log_offset(1) && step.offset < kGeometry.log_offset(2);
    if (is_in_second) step.offset -= kLogSize;
  }
  return steps;
}

TEST(PFarmWorkers, ALogThatTwoWorkersShareIsNoticed) {
  for (const pmem::PersistenceModel& model : kModels) {
    TwoWorkers two(model, {Kind::insert_with_movement, Kind::insert}, shares_a_log);
    EXPECT_NE(two.explore(), "");
  }
}

// Of two workers that had taken a block each, only the second's was in a chain.
TEST(PFarmWorkers, ABlockThatNobodyGotIsFreeAfterACrash) {
  constexpr Geometry kBlocks{4, 50, 0};
  PlainMemory memory(kBlocks.size());
  memory.region().store(kBlocks.table(0).bucket_offset(0) + kLinkOffset, 2);
  Index index(memory.region(), 0, kBlocks);
  index.recover();
  EXPECT_EQ(index.blocks_used(), 1U);
  // Its chain goes back to the other one.
  KeysOf keys(index.table());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(index.try_put(item_of(keys.next(0))), Index::Outcome::done);
  }
  EXPECT_EQ(index.blocks_used(), 2U);
  EXPECT_EQ(index.try_put(item_of(keys.next(0))), Index::Outcome::out_of_space);
  Index again(memory.region(), 0, kBlocks);
  again.recover();
  EXPECT_EQ(again.blocks_used(), 2U);
  EXPECT_EQ(again.items(), 16U);
  EXPECT_EQ(contents_of(again), contents_of(index));
}

}  // namespace
}  // namespace perdura::systems::pfarm::test
