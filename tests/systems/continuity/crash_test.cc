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
using perdura::test::joined;
using perdura::test::kModels;
using perdura::test::Mistake;
using perdura::test::no_mistake;
using perdura::test::Operation;
using perdura::test::Readers;
using perdura::test::RecoveryExplored;
using perdura::test::Step;
using perdura::test::Steps;
using perdura::test::such_first;
using perdura::test::with_checks_before_flushes;
using perdura::test::without_flushes;

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

const Geometry kOfMistakes{1, 1, 0, 1};

struct Part {
  enum Kind : std::uint8_t { state, item, indicator, check, fingerprint };
  Kind kind = state;
  std::uint32_t level = 0;
};
Part part_of(const Step& step) {
  std::uint32_t level = kOfMistakes.resizes;
  while (level > 0 && step.offset < kOfMistakes.table(level).offset) --level;
  const Table table = kOfMistakes.table(level);
  if (step.offset < table.offset) return {};
  const bool in_group = step.offset >= table.group_offset(0);
  const Bytes at = in_group ? (step.offset - table.group_offset(0)) % table.group_size()
                            : (step.offset - table.offset) % table.pair_size();
  const Bytes header = in_group ? 0 : table.header_offset(0) - table.offset;
  if (at < header || at >= header + kHeaderSize) return {Part::item, level};
  if (!in_group && at - header == kIndicatorOffset) return {Part::indicator, level};
  if (at - header < kFingerprintsOffset) return {Part::check, level};
  return {Part::fingerprint, level};
}
bool is_item(const Step& step) { return part_of(step).kind == Part::item; }
bool is_indicator(const Step& step) { return part_of(step).kind == Part::indicator; }
bool is_check(const Step& step) { return part_of(step).kind == Part::check; }
// The bits that a store sets and clears.
Indicator set_by(const Step& step) { return step.word() & ~step.word_before() & ~kSealed; }
Indicator cleared_by(const Step& step) { return step.word_before() & ~step.word(); }
bool is_update(const Step& step) {
  return step.is_write() && is_indicator(step) && set_by(step) != 0 && cleared_by(step) != 0;
}

Steps sets_the_bit_first(Operation operation, Steps steps, const Image&) {
  if (operation != Operation::put || std::ranges::any_of(steps, is_update)) return steps;
  return such_first(steps, [](const Step& step) { return is_indicator(step) || is_check(step); });
}

Steps does_not_persist_the_item(Operation, Steps steps, const Image&) {
  return without_flushes(std::move(steps), is_item);
}

Steps updates_by_two_stores(Operation, Steps steps, const Image&) {
  const auto update = std::ranges::find_if(steps, is_update);
  if (update == steps.end()) return steps;
  const Step both = Step::write_word(update->offset, update->word() | update->word_before());
  return joined(Steps(steps.begin(), update),
                Steps{both, Step::flush(update->offset), Step::fence()},
                Steps(update, steps.end()));
}

Steps leaves_the_old_item(Operation, Steps steps, const Image&) {
  for (Step& step : steps) {
    if (is_update(step)) step = Step::write_word(step.offset, step.word() | step.word_before());
  }
  return steps;
}

// Behind the seal of a pair come, for each of its items, the steps in the next table and then those
// in this one.
Steps deletes_before_it_inserts(Operation operation, Steps steps, const Image&) {
  if (operation != Operation::resize) return steps;
  std::vector<std::pair<std::uint32_t, Steps>> of_tables;
  for (const Step& step : steps) {
    const std::uint32_t level = part_of(step).level;
    if (of_tables.empty() || (!step.is_fence() && of_tables.back().first != level)) {
      of_tables.push_back({level, {}});
    }
    of_tables.back().second.push_back(step);
  }
  for (std::size_t i = 1; i + 1 < of_tables.size(); i += 2) {
    std::swap(of_tables[i], of_tables[i + 1]);
  }
  Steps wrong;
  for (const auto& [level, part] : of_tables) wrong = joined(wrong, part);
  return wrong;
}

Steps lets_readers_see_it_first(Operation, Steps steps, const Image&) {
  return with_checks_before_flushes(std::move(steps), is_indicator, is_check);
}

// As in published code, whose flush of the metadata covers something else.
Steps flushes_another_line(Operation, Steps steps, const Image&) {
  for (Step& step : steps) {
    if (step.is_flush() && is_indicator(step)) step.offset = kStateOffset;
  }
  return steps;
}

bool noticed(const Mistake& mistake, const pmem::PersistenceModel& model,
             Readers readers = Readers::one_sided) {
  return is_noticed<ContinuityHash>(mistake, model, {kOfMistakes}, 3, 60, readers);
}

TEST(ContinuityCrash, WrongOrdersAreNoticed) {
  for (const pmem::PersistenceModel& model : kModels) {
    SCOPED_TRACE(pmem::to_string(model.domain));
    EXPECT_FALSE(noticed(no_mistake, model));
    EXPECT_TRUE(noticed(sets_the_bit_first, model));
    EXPECT_TRUE(noticed(updates_by_two_stores, model));
    EXPECT_TRUE(noticed(leaves_the_old_item, model));
    EXPECT_TRUE(noticed(deletes_before_it_inserts, model));
    EXPECT_TRUE(noticed(deletes_before_it_inserts, model, Readers::none));
    // Caches that persist need no flush.
    const bool needs_flush = model.domain == pmem::PersistenceDomain::dmp;
    EXPECT_EQ(noticed(does_not_persist_the_item, model), needs_flush);
    EXPECT_EQ(noticed(lets_readers_see_it_first, model), needs_flush);
    EXPECT_EQ(noticed(flushes_another_line, model), needs_flush);
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
