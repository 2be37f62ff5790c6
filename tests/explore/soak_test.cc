// Generated histories of systems: that they find what is known to be lost, that what they find is
// simple and can be repeated, and that no system keeps less than the table of guarantees says.
#include "explore/soak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "explore/generated_run.h"
#include "explore/tape_search.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"
#include "tests/explore/soak_support.h"
#include "tests/support/seed.h"

namespace perdura::explore::test {
namespace {

using pmem::Tape;
using services::Condition;
using services::GuaranteeLevel;

// The first finding of a search, or the first that kept this level.
SoakFinding first_finding(const SoakCase& one, std::uint64_t seed = 1,
                          std::optional<GuaranteeLevel> kept = std::nullopt) {
  constexpr std::uint64_t kSchedules = 20'000;
  CaseSoak search(one, soaked_testbed(), seed);
  while (search.counts().schedules < kSchedules) {
    auto found = search.next();
    if (found && found->run.kept == kept.value_or(found->run.kept)) return *std::move(found);
  }
  ADD_FAILURE() << "nothing was found in " << kSchedules << " schedules";
  return {};
}

// Operations before the inspector's, which are the same in every run.
std::size_t operations_of_clients(const std::string& trace) {
  const std::size_t inspector = trace.find("comes after recovery");
  std::size_t count = 0;
  for (std::size_t at = 0; (at = trace.find("by client", at)) < inspector; ++at) ++count;
  return count;
}

std::ptrdiff_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

// --- what is found -------------------------------------------------------------------------------

// What a get has returned can be lost: Erda's put is acknowledged by its own client alone. A soak
// makes more than a thousand schedules a second, so these are found within seconds.
TEST(Soak, FindsThatAReaderOfErdaSeesWhatIsLost) {
  constexpr std::uint64_t kFewSchedules = 8000;
  int large = 0;
  for (const std::string_view server : {"dmp ddio", "dmp no-ddio"}) {
    for (const std::uint64_t seed : {1, 3}) {
      const SoakFinding found =
          first_finding(case_of("erda", "persistence = correct", server, GuaranteeLevel::durable),
                        seed, GuaranteeLevel::durable_writes);
      EXPECT_LE(found.schedule, kFewSchedules) << found.text();
      EXPECT_EQ(found.run.kept, GuaranteeLevel::durable_writes) << found.text();
      EXPECT_NE(found.run.loss.find("get of version"), std::string::npos) << found.text();
      if (operations_of_clients(found.run.loss) > 10) ++large;
      EXPECT_LE(lines_of(found.text()), 200) << found.text();
    }
  }
  // Findings are made smaller by leaving out one thing at a time, which may end where only two at
  // once could be left out.
  EXPECT_LE(large, 1);
}

TEST(Soak, FindsThatErdaAsPublishedLosesAKey) {
  const SoakFinding found = first_finding(case_of("erda", "", "dmp ddio", GuaranteeLevel::ordered));
  EXPECT_LT(found.run.kept, GuaranteeLevel::ordered) << found.text();
  EXPECT_LE(operations_of_clients(found.run.loss), 10U) << found.text();
}

TEST(Soak, AFindingIsRepeatedByItsTape) {
  const SoakFinding found = first_finding(case_of("erda", "", "dmp ddio", GuaranteeLevel::ordered));
  Tape tape = Tape::parse(found.tape);
  const SoakRun again = run_once(found.where, soaked_testbed(), tape);
  EXPECT_EQ(again.kept, found.run.kept);
  EXPECT_EQ(again.loss, found.run.loss);
  EXPECT_EQ(again.events, found.run.events);
}

// What is lost in another image than that of the run itself is found, and repeated like any other.
TEST(Soak, FindsWhatIsLostInOtherImagesOfARun) {
  const SoakCase one = case_of("erda", "", "dmp ddio", GuaranteeLevel::durable);
  std::size_t found = 0;
  std::size_t repeated = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Tape tape(seed);
    const SoakRun run = run_once(one, soaked_testbed(), tape, 8);
    EXPECT_LE(run.recoveries, 8U);
    if (!run.failing_image) continue;
    EXPECT_TRUE(run.loss.empty());
    Tape of_image(*run.failing_image);
    ++found;
    if (run_once(one, soaked_testbed(), of_image).kept < GuaranteeLevel::durable) ++repeated;
  }
  // The recovered servers begin later than in a run, so now and then one does not show the loss.
  EXPECT_GT(repeated, 4 * found / 5);
  EXPECT_GE(found, 20U) << "too few to say how many are repeated";
}

// A pair of failures, each of one server, is what a primary that goes on alone depends on.
// Some hundred schedules meet such pairs; it takes more to meet them where a sync point went into a
// second page, of which the primary must flush both.
TEST(Soak, EachServerFailsAloneAndTheOthersWhileItIsAway) {
  CaseSoak search(case_of("m-sync", "persistence = correct", "dmp ddio", GuaranteeLevel::durable),
                  soaked_testbed(), 1);
  while (search.counts().schedules < 3000) {
    const auto found = search.next();
    ASSERT_FALSE(found) << found->text();
  }
  const auto& happened = search.counts().happened;
  for (const std::string_view event :
       {"failures of one server alone", "failures while a server is away",
        "sync points into a second page"}) {
    EXPECT_GE(happened.at(std::string(event)), 20U) << event;
  }
}

// What is kept for each page of a region, or for each copy, can be wrong only where a sync point
// goes into a second page, or where there are more copies than there must be.
TEST(Soak, SyncPointsGoOverPagesAndToMoreCopiesThanTheFewest) {
  for (const std::string_view system : {"m-syncsec", "e-chain", "e-broadcast"}) {
    CaseSoak search(case_of(system, "persistence = correct", "dmp ddio", GuaranteeLevel::durable),
                    soaked_testbed(), 1);
    while (search.counts().schedules < 200) {
      const auto found = search.next();
      ASSERT_FALSE(found) << found->text();
    }
    const auto& happened = search.counts().happened;
    for (const std::string_view event :
         {"sync points into a second page", "sync points with more copies than the fewest"}) {
      EXPECT_GE(happened.at(std::string(event)), 20U) << system << ": " << event;
    }
  }
}

// A copy must not be given up in silence for want of what only a sync point under way, or its last
// bytes, have.
TEST(Soak, SyncPointsAreOfAnyBytes) {
  for (const auto& [system, level] : {std::pair{"m-async", GuaranteeLevel::ordered},
                                      std::pair{"m-syncdisk", GuaranteeLevel::durable}}) {
    CaseSoak search(case_of(system, "persistence = correct", "dmp ddio", level), soaked_testbed(),
                    1);
    while (search.counts().schedules < 200) {
      const auto found = search.next();
      ASSERT_FALSE(found) << found->text();
    }
    for (const std::string_view event : {"ranges that end within a word", "ranges over a line",
                                         "sync points into a second page"}) {
      EXPECT_GE(search.counts().happened.at(std::string(event)), 20U) << system << ": " << event;
    }
  }
}

// What fails for lack of space changes nothing, and what was acknowledged before it stays.
TEST(Soak, FileSystemsRunOutOfSpace) {
  constexpr std::uint64_t kSchedules = 100;
  std::size_t tried = 0;
  for (const services::ServedSystem& system : systems::all_systems()) {
    if (system.service->name() != "fs") continue;
    ++tried;
    CaseSoak search(soak_cases({system}, soaked_testbed()).front(), soaked_testbed(), 1);
    while (search.counts().schedules < kSchedules) {
      const auto found = search.next();
      ASSERT_FALSE(found) << found->text() << found->tape;
    }
    EXPECT_GE(search.counts().happened.at("operations without space"), 20U) << system.info.name;
  }
  EXPECT_GT(tried, 0U);
}

bool is_boundary(std::string_view event) {
  constexpr std::array<std::string_view, 4> kBoundaries{" that end within a word", " over a line",
                                                        " over a page", " of another length"};
  return std::any_of(kBoundaries.begin(), kBoundaries.end(),
                     [&](std::string_view boundary) { return event.ends_with(boundary); });
}

// How often each boundary is met in some schedules of a system: first in its first setting on the
// first kind of server, then in each setting and on each kind of server in turn. Empty if the system
// stores nothing that has several lengths.
std::map<std::string, std::uint64_t> boundaries_met(const services::ServedSystem& system) {
  constexpr std::uint64_t kInTheFirst = 100;
  constexpr std::uint64_t kInTurn = 200;
  std::deque<CaseSoak> searches;
  for (SoakCase& one : soak_cases({system}, soaked_testbed())) {
    searches.emplace_back(std::move(one), soaked_testbed(), 1 + searches.size());
  }
  std::map<std::string, std::uint64_t> met;
  for (std::uint64_t i = 0; i < kInTheFirst + kInTurn; ++i) {
    CaseSoak& search = searches[i < kInTheFirst ? 0 : i % searches.size()];
    if (const auto found = search.next()) {
      ADD_FAILURE() << found->text();
      return {};
    }
    const auto& happened = search.counts().happened;
    if (std::none_of(happened.begin(), happened.end(),
                     [](const auto& event) { return is_boundary(event.first); })) {
      return {};
    }
  }
  for (const CaseSoak& search : searches) {
    for (const auto& [event, count] : search.counts().happened) {
      if (is_boundary(event)) met[event] += count;
    }
  }
  return met;
}

std::string name_in_test(const testing::TestParamInfo<services::ServedSystem>& one) {
  std::string name(one.param.info.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// What each system's generated runs must meet.
class SoakMeets : public testing::TestWithParam<services::ServedSystem> {};

// Failures that hit the first operations alone show nothing of what the later ones leave.
TEST_P(SoakMeets, FailuresOfTheLastOperationsToo) {
  constexpr std::uint64_t kSchedules = 30;
  CaseSoak search(soak_cases({GetParam()}, soaked_testbed()).front(), soaked_testbed(), 1, false,
                  0);
  while (search.counts().schedules < kSchedules) {
    const auto found = search.next();
    ASSERT_FALSE(found) << found->text();
  }
  const auto& happened = search.counts().happened;
  std::uint64_t all = 0;
  for (const std::string_view quarter : kFailuresInQuarters) {
    all += happened.at(std::string(quarter));
  }
  // An eighth would be in each if half of the failures followed any operation.
  for (const std::size_t quarter : {2, 3}) {
    const std::string event(kFailuresInQuarters[quarter]);
    EXPECT_GE(happened.at(event), all / 20) << event;
  }
}

// A fault at the end of a word, a line, a page or a unit of an allocator shows only with values of
// such lengths. Each system has its own code for what is longer than usual.
TEST_P(SoakMeets, BoundariesOfLengths) {
  for (const auto& [event, count] : boundaries_met(GetParam())) EXPECT_GE(count, 20U) << event;
}

INSTANTIATE_TEST_SUITE_P(Each, SoakMeets, testing::ValuesIn(systems::all_systems()), name_in_test);

// Otherwise the test above would ask for nothing.
TEST(Soak, CountsBoundariesOfLengths) {
  std::set<std::string> counted;
  for (const services::ServedSystem& system : systems::all_systems()) {
    CaseSoak search(soak_cases({system}, soaked_testbed()).front(), soaked_testbed(), 1);
    search.next();
    for (const auto& [event, count] : search.counts().happened) counted.insert(event);
  }
  for (const char* const event : {"values over a page", "records over a page",
                                  "values in the place of others of another length"}) {
    EXPECT_TRUE(counted.contains(event)) << event;
  }
}

// So what is found at the end of a soak is written, too.
TEST(Soak, AFindingThatIsNotAsSimpleAsPossibleIsRepeatedByItsTape) {
  const SoakCase one = case_of("erda", "", "dmp ddio", GuaranteeLevel::ordered);
  CaseSoak search(one, soaked_testbed(), 1);
  std::optional<SoakFinding> found;
  while (!found) found = search.next([] { return true; });
  EXPECT_TRUE(found->stopped);
  EXPECT_NE(found->text().find("stopped before"), std::string::npos) << found->text();
  Tape tape = Tape::parse(found->tape);
  EXPECT_EQ(run_once(one, soaked_testbed(), tape).loss, found->run.loss);
  const SoakFinding simplest = first_finding(one);
  EXPECT_FALSE(simplest.stopped);
  EXPECT_LT(simplest.tape.size(), found->tape.size());
}

// Failures that follow an operation come at the same times.
TEST(Soak, AnchoredFailuresMakeTheSameRun) {
  const SoakCase one = case_of("erda", "", "dmp ddio", GuaranteeLevel::durable);
  const std::uint64_t seed = perdura::test::random_seed();
  std::size_t moved = 0;
  for (std::uint64_t i = 0; i < 30; ++i) {
    Tape tape(seed + i);
    GeneratedRun first(one.system, soaked_testbed(), one.setup(), tape);
    first.run().run();
    Tape anchored(first.anchored());
    GeneratedRun again(one.system, soaked_testbed(), one.setup(), anchored);
    again.run().run();
    EXPECT_EQ(again.run().events(), first.run().events());
    EXPECT_EQ(again.run().states(), first.run().states());
    if (anchored.text() != tape.text()) ++moved;
  }
  EXPECT_GT(moved, 0U);
}

// Ranks of a job have seeds that follow each other.
TEST(Soak, SearchesOfDifferentSeedsShareNoSchedule) {
  std::map<Tape::Streams, std::uint64_t> seed_of;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    TapeSearch search(seed);
    for (std::uint64_t i = 0; i < 2000; ++i) {
      Tape tape = search.next();
      for (int choice = 0; choice < 2; ++choice) tape.stream("client-0").choose(1U << 31);
      search.learn(tape.drawn(), {i / 100});
      EXPECT_EQ(seed_of.emplace(tape.drawn(), seed).first->second, seed) << "schedule " << i;
    }
  }
}

TEST(Soak, LeavesOutTheMiddleOfALongMessage) {
  SoakFinding found;
  found.where = case_of("erda", "", "dmp ddio", GuaranteeLevel::durable);
  for (int line = 0; line < 1000; ++line) found.run.loss += "operation\n";
  found.run.loss += "=> what is wrong\n";
  const std::string text = found.text();
  EXPECT_LE(lines_of(text), 200);
  EXPECT_NE(text.find("lines left out"), std::string::npos);
  EXPECT_NE(text.find("what is wrong"), std::string::npos);
}

// --- which systems -------------------------------------------------------------------------------

// A schedule in which the last digit of a code follows the others, and then the power fails: each
// right digit is a state of its own.
class CodeScenario final : public services::CrashScenario {
 public:
  static constexpr std::array<std::size_t, 5> kCode{3, 1, 4, 1, 5};

  CodeScenario(pmem::Choices& choices, bool judge_gives_up) : judge_gives_up_(judge_gives_up) {
    for (std::size_t& digit : dialled_) digit = choices.choose(16);
  }
  std::uint32_t clients() const override { return 1; }
  std::uint64_t planned_calls(std::size_t failures) const override {
    return failures == 0 ? dialled_.size() : 0;
  }
  Task<> serve(Thread& thread) override {
    note_serving(thread);
    for (;;) co_await sleep_for(std::chrono::seconds(1));
  }
  Task<> use(Thread&, std::uint32_t) override {
    for (const std::size_t digit : dialled_) {
      co_await sleep_for(Microseconds(1));
      if (right_ < kCode.size()) right_ = digit == kCode[right_] ? right_ + 1 : 0;
      changed();
    }
  }
  Task<> inspect(Thread&) override { co_return; }
  services::Verdict judge(std::span<const services::ServerFailure> failures,
                          const services::ToJudge&) const override {
    services::Verdict verdict;
    if (!failures.empty() && right_ == kCode.size())
      verdict.set(Condition::durable, {.why = "the door is open\n", .undecided = judge_gives_up_});
    return verdict;
  }
  std::map<std::string, std::uint64_t, std::less<>> events() const override {
    return {{"right digits", right_}, {"wrong doors", 0}};
  }

 protected:
  void snapshot_observations() override {}
  void restore_observations() override {}
  std::string observations_since_snapshot() const override { return {}; }

 private:
  bool judge_gives_up_;
  std::array<std::size_t, 7> dialled_{};
  std::size_t right_ = 0;
};

class CodeService final : public services::Service {
 public:
  explicit CodeService(bool judge_gives_up = false) : judge_gives_up_(judge_gives_up) {}

  std::string_view name() const override { return "code"; }
  std::string_view what() const override { return "digits are dialled"; }
  std::vector<services::SystemInfo> systems() const override { return {info()}; }
  std::string_view acknowledged() const override { return "digits"; }
  std::string_view observed() const override { return "digits"; }
  std::span<const services::CrashSchedule> schedules() const override { return {}; }
  services::CrashHistory crash_history(std::string_view, const services::CrashSetup&,
                                       const services::CrashSchedule&) const override {
    return {};
  }
  std::unique_ptr<services::CrashScenario> generated_scenario(std::string_view,
                                                              const services::CrashSetup&,
                                                              Tape& tape,
                                                              std::uint32_t) const override {
    return std::make_unique<CodeScenario>(tape.stream("client-0"), judge_gives_up_);
  }
  static services::SystemInfo info() {
    services::SystemInfo info;
    info.name = "code";
    info.level = GuaranteeLevel::durable;
    return info;
  }

 private:
  bool judge_gives_up_;
};

const CodeService kCodeService;

SoakCase code_case() {
  return soak_cases({{&kCodeService, CodeService::info()}}, soaked_testbed())[0];
}

// Nothing has to be written down of a new system but its line in the table of systems.
TEST(Soak, ASystemThatTheTableOfGuaranteesDoesNotHaveIsHeldToItsPromise) {
  const auto cases = soak_cases({{&kCodeService, CodeService::info()}}, soaked_testbed());
  EXPECT_EQ(cases.size(), explored_models().size());
  for (const SoakCase& one : cases) EXPECT_EQ(one.expected, GuaranteeLevel::durable) << one.name();
}

// The same search that finds the open door counts it, if the judge cannot tell.
TEST(Soak, WhereTheJudgeGivesUpNothingIsFoundAndNothingIsProved) {
  constexpr std::uint64_t kMostSchedules = 20'000;
  constexpr std::uint64_t kSeed = 1;
  CaseSoak decided(code_case(), soaked_testbed(), kSeed);
  while (!decided.next() && decided.counts().schedules < kMostSchedules) {
  }
  const std::uint64_t found_at = decided.counts().schedules;
  ASSERT_LT(found_at, kMostSchedules);
  const CodeService unsure(true);
  const auto cases = soak_cases({{&unsure, CodeService::info()}}, soaked_testbed());
  CaseSoak undecided(cases[0], soaked_testbed(), kSeed);
  while (undecided.counts().schedules < found_at) EXPECT_FALSE(undecided.next());
  EXPECT_GT(undecided.counts().happened.at(std::string(kUndecided)), 0U);
  EXPECT_FALSE(decided.counts().happened.contains(std::string(kUndecided)));
}

TEST(Soak, SaysOnceOfEachSettingWhereItIsRefusedAndWhy) {
  const auto lines = refused_cases({systems::find_system("erda").value()}, soaked_testbed());
  EXPECT_EQ(lines.size(), explored_settings(systems::find_system("erda")->info).size());
  for (const std::string& line : lines) {
    EXPECT_NE(line.find("dmp ddio iwarp, "), std::string::npos) << line;
    EXPECT_NE(line.find("refused: needs WRITE_WITH_IMM"), std::string::npos) << line;
  }
}

// Each cell of the matrix is either soaked or refused.
TEST(Soak, CoversEverySystemInEverySettingOnEveryServer) {
  std::size_t cells = 0;
  std::size_t refused = 0;
  for (const auto& system : systems::all_systems()) {
    cells += explored_settings(system.info).size() * explored_models().size();
  }
  for (const std::string& line : refused_cases(systems::all_systems(), soaked_testbed())) {
    for (const pmem::PersistenceModel& model : explored_models()) {
      const std::string server = explored_name(model);
      refused += line.find(" " + server + ",") != std::string::npos ||
                         line.find(" " + server + ":") != std::string::npos
                     ? 1
                     : 0;
    }
  }
  EXPECT_EQ(soak_cases(systems::all_systems(), soaked_testbed()).size() + refused, cells);
}

class SoakOfSystem : public testing::TestWithParam<services::ServedSystem> {};

TEST_P(SoakOfSystem, KeepsWhatTheTableSays) {
  constexpr std::uint64_t kSchedules = 40;
  const std::uint64_t seed = perdura::test::random_seed();
  for (const SoakCase& one : soak_cases({GetParam()}, soaked_testbed())) {
    CaseSoak search(one, soaked_testbed(), seed);
    while (search.counts().schedules < kSchedules) {
      const auto found = search.next();
      ASSERT_FALSE(found) << found->text() << found->tape;
    }
  }
}

// What never happens is not explored.
TEST_P(SoakOfSystem, MeetsEveryEventThatItHas) {
  constexpr std::uint64_t kMostSchedules = 40'000;
  constexpr std::uint64_t kSeed = 3;  // of 1 to 4 the one that needs the fewest schedules of Erda
  CaseSoak search(soak_cases({GetParam()}, soaked_testbed()).front(), soaked_testbed(), kSeed);
  const auto missing = [&] {
    std::string names;
    for (const auto& [name, count] : search.counts().happened) {
      if (count == 0) names += name + "; ";
    }
    return names;
  };
  do {
    search.next();
  } while (!missing().empty() && search.counts().schedules < kMostSchedules);
  EXPECT_EQ(missing(), "");
}

INSTANTIATE_TEST_SUITE_P(Systems, SoakOfSystem, testing::ValuesIn(systems::all_systems()),
                         name_in_test);

// --- which schedules -----------------------------------------------------------------------------

// The number of schedules until the finding.
std::uint64_t schedules_until_found(std::uint64_t seed, bool varies) {
  constexpr std::uint64_t kMost = 30'000;
  CaseSoak search(code_case(), soaked_testbed(), seed, varies);
  while (search.counts().schedules < kMost) {
    if (search.next()) break;
  }
  return search.counts().schedules;
}

TEST(Soak, SearchesWhereItHasFoundNewStates) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const std::uint64_t steered = schedules_until_found(seed, true);
    const std::uint64_t unsteered = schedules_until_found(seed, false);
    EXPECT_LT(2 * steered, unsteered) << "seed " << seed;
  }
}

TEST(Soak, ASeedDecidesWhatIsFound) {
  const auto found = [](std::uint64_t seed) { return first_finding(code_case(), seed); };
  const SoakFinding first = found(1);
  const SoakFinding again = found(1);
  EXPECT_EQ(again.schedule, first.schedule);
  EXPECT_EQ(again.tape, first.tape);
  EXPECT_NE(found(2).schedule, first.schedule);
}

TEST(Soak, CountsWhatHappensAndWhatDoesNot) {
  // The last digit is right in at most one of sixteen schedules.
  constexpr std::uint64_t kManySchedules = 1000;
  CaseSoak search(code_case(), soaked_testbed(), 1);
  while (search.counts().schedules < kManySchedules) search.next();
  const SoakCounts& counts = search.counts();
  EXPECT_GT(counts.happened.at("right digits"), 0U);
  EXPECT_EQ(counts.happened.at("wrong doors"), 0U);
  EXPECT_EQ(counts.happened.at("power failures"), counts.crash_states);
  EXPECT_GT(counts.happened.at("failures while clients are at work"), 0U);
  EXPECT_GT(counts.failures, counts.crash_states);
  EXPECT_GT(counts.fresh, 0U);
  EXPECT_LT(counts.fresh, counts.schedules);
  EXPECT_GT(counts.states, 0U);
}

}  // namespace
}  // namespace perdura::explore::test
