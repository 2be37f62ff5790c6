// The litmus tests of the persistence model hold, each of its rules is needed for those that name
// it, and each is shown by what it allows and what it forbids.
#include "tests/platform/pmem/litmus.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace perdura::pmem {
namespace {

const std::vector<Litmus>& catalogue() {
  static const std::vector<Litmus> tests = [] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(PERDURA_LITMUS_FOLDER)) {
      if (entry.path().extension() == ".litmus") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::vector<Litmus> all;
    for (const auto& file : files) {
      std::ifstream in(file);
      std::stringstream text;
      text << in.rdbuf();
      try {
        for (auto& one : parse_litmus(text.str(), file.filename().string())) {
          all.push_back(std::move(one));
        }
      } catch (const ProgramError& error) {
        throw std::runtime_error(fmt::format("{}: {}", file.filename().string(), error.what()));
      }
    }
    return all;
  }();
  return tests;
}

// The name of a test has letters, digits and underscores.
std::string identifier(const Litmus& litmus) {
  std::string name = litmus.where.substr(0, litmus.where.find('.')) + "_";
  for (const char c : litmus.title) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (c == ' ' || c == '-') {
      name += '_';
    }
  }
  return name;
}

struct Case {
  const Litmus* litmus;
  const Machine* machine;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.litmus->where << ", " << one.machine->name;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Litmus& litmus : catalogue()) {
    for (const Machine& machine : litmus.machines) all.push_back({&litmus, &machine});
  }
  return all;
}

class LitmusTest : public testing::TestWithParam<Case> {};

TEST_P(LitmusTest, Holds) {
  const auto [litmus, machine] = GetParam();
  EXPECT_EQ(failure_of(*litmus, *machine), "") << litmus->where << ": " << litmus->title;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, LitmusTest, testing::ValuesIn(cases()), [](const auto& one) {
  return identifier(*one.param.litmus) + "_on_" + one.param.machine->name;
});

TEST(LitmusCatalogue, HasOneTestOfEachName) {
  std::set<std::string> names;
  for (const Litmus& litmus : catalogue()) {
    EXPECT_TRUE(names.insert(identifier(litmus)).second) << litmus.where;
  }
  EXPECT_GE(names.size(), 50U);
}

class RuleTest : public testing::TestWithParam<std::size_t> {
 protected:
  Rule rule() const { return static_cast<Rule>(GetParam()); }
  std::vector<const Litmus*> litmus_tests() const {
    std::vector<const Litmus*> named;
    for (const Litmus& litmus : catalogue()) {
      if (std::count(litmus.rules.begin(), litmus.rules.end(), rule()) > 0)
        named.push_back(&litmus);
    }
    return named;
  }
};

TEST_P(RuleTest, IsShownByWhatItAllowsAndForbids) {
  bool may = false;
  bool never = false;
  for (const Litmus* litmus : litmus_tests()) {
    for (const Outcome& outcome : litmus->outcomes) (outcome.may ? may : never) = true;
  }
  EXPECT_TRUE(may);
  EXPECT_TRUE(never);
}

// Without the rule each litmus test that names it fails, on one of its machines at least.
TEST_P(RuleTest, IsNeeded) {
  EXPECT_FALSE(litmus_tests().empty());
  for (const Litmus* litmus : litmus_tests()) {
    EXPECT_TRUE(std::any_of(litmus->machines.begin(), litmus->machines.end(),
                            [&](const Machine& machine) {
                              return !failure_of(*litmus, machine, Rules().without(rule())).empty();
                            }))
        << litmus->where << ": " << litmus->title;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleTest, testing::Range(std::size_t{0}, kRules),
                         [](const auto& one) {
                           return std::string(to_string(static_cast<Rule>(one.param)));
                         });

// --- the reader of litmus tests ------------------------------------------------------------------

std::string litmus_error(std::string_view text) {
  try {
    parse_litmus(text, "t.litmus");
  } catch (const ProgramError& error) {
    return error.what();
  }
  return "";
}

TEST(LitmusParser, ReadsATest) {
  const auto tests = parse_litmus(
      "# a comment\n"
      "litmus: title   # and another\n"
      "rules: push_persists, push_orders\n"
      "machine: mhp, no ddio, iwarp, buffers in pm, other device 2\n"
      "machine: any\n"
      "memory: a b[3] | c[2]@7\n"
      "requester: write c,b; completion\n"
      "finally never: a=0 c=torn\n",
      "t.litmus");
  ASSERT_EQ(tests.size(), 1U);
  const Litmus& test = tests[0];
  EXPECT_EQ(test.title, "title");
  EXPECT_EQ(test.where, "t.litmus:2");
  EXPECT_EQ(test.rules, (std::vector{Rule::push_persists, Rule::push_orders}));
  ASSERT_EQ(test.machines.size(), 7U);
  EXPECT_EQ(test.machines[0].name, "mhp_no_ddio_iwarp_buffers_in_pm_other_device_2");
  EXPECT_EQ(test.machines[0].model.transport, Transport::iwarp);
  EXPECT_EQ(test.machines[0].receive_buffers, Medium::pm);
  EXPECT_EQ(test.machines[0].other_ddio, (std::vector<bool>{false, true}));
  EXPECT_EQ(test.machines[6].name, "wsp_ddio");
  EXPECT_EQ(test.program.variables, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_FALSE(test.layout[0].same_line);
  EXPECT_TRUE(test.layout[1].same_line);
  EXPECT_EQ(test.layout[1].words, 3U);
  EXPECT_EQ(test.layout[2].first_word, 7U);
  ASSERT_EQ(test.outcomes.size(), 1U);
  EXPECT_TRUE(test.outcomes[0].finally);
  EXPECT_FALSE(test.outcomes[0].may);
  EXPECT_EQ(test.outcomes[0].values[1].value, kTorn);
}

TEST(LitmusParser, SaysWhatIsWrongAndWhere) {
  const std::string test = "litmus: t\nmachine: dmp\nresponder: store a\n";
  EXPECT_EQ(litmus_error("may: a=0\n"),
            "line 1, column 1: a test starts with \"litmus: its title\"");
  EXPECT_EQ(litmus_error("litmus\n"), "line 1, column 1: expected \"key: ...\"");
  EXPECT_EQ(litmus_error("litmus: t\nrules: gravity\n"),
            "line 2, column 8: \"gravity\" is no rule (see platform/pmem/model/rules.h)");
  EXPECT_EQ(litmus_error("litmus: t\nmachine: dmp, cxl\n"),
            "line 2, column 15: \"cxl\" is unknown; known are any, dmp, mhp, wsp, ddio, no ddio, "
            "iwarp, buffers in pm, other device N");
  EXPECT_EQ(litmus_error("litmus: t\nmachine: ddio\n"),
            "line 2, column 10: a machine is dmp, mhp, wsp or any");
  EXPECT_EQ(litmus_error("litmus: t\nmemory: a[9]\n"),
            "line 2, column 9: expected a name, perhaps [words] from 1 to 8, and of the first of a "
            "line perhaps @word from 0 to 7");
  EXPECT_EQ(litmus_error("litmus: t\nmemory: a | a\n"),
            "line 2, column 13: variable a has a place already");
  EXPECT_EQ(litmus_error("litmus: t\nmemory: a[7] b[2]\n"),
            "line 2, column 14: a line has 8 words");
  EXPECT_EQ(litmus_error(test + "memory: a\n"),
            "line 4, column 9: \"memory\" stands before the agents, once");
  EXPECT_EQ(litmus_error("litmus: t\nmemory: a\nrequester: write b\n"),
            "line 3, column 1: variable b is missing in \"memory\"");
  EXPECT_EQ(litmus_error(test + "often: a=0\n"),
            "line 4, column 1: \"often\" is unknown; known are litmus, rules, machine, memory, "
            "requester, responder, may, never, finally may, finally never");
  EXPECT_EQ(litmus_error(test + "may: b=0\n"),
            "line 4, column 6: \"b\" is no variable of the program above");
  EXPECT_EQ(litmus_error(test + "may: a=ten\n"),
            "line 4, column 6: expected variable=value, the value 0 to 9 or torn");
  EXPECT_EQ(litmus_error(test + "may:\n"), "line 4, column 5: expected variable=value");
  EXPECT_EQ(litmus_error(test), "line 1, column 1: the test \"t\" lacks an outcome");
  EXPECT_EQ(litmus_error("litmus: t\nmachine: dmp\n"),
            "line 1, column 1: the test \"t\" lacks a program");
  EXPECT_EQ(litmus_error("litmus: t\n"), "line 1, column 1: the test \"t\" lacks a machine");
}

TEST(LitmusFailure, ShowsTheExecution) {
  const auto tests = parse_litmus(
      "litmus: t\nmachine: dmp, no ddio\nrequester: write a; read\nfinally never: a=0\n"
      "litmus: u\nmachine: dmp, no ddio\nrequester: write a; read; completion\nfinally may: a=0\n"
      "litmus: v\nmachine: mhp\nresponder: receive\nrequester: write a\nmay: a=0\n",
      "t.litmus");
  EXPECT_EQ(failure_of(tests[0], tests[0].machines[0]),
            "finally never: a=0, on dmp_no_ddio:\n"
            "  requester    write a\n"
            "  requester    read\n"
            "  -- the requester has finished; the power fails --\n"
            "  recovery     a = 0   (perhaps no further than the device)\n");
  EXPECT_EQ(failure_of(tests[1], tests[1].machines[0]),
            "finally may: a=0, on dmp_no_ddio: not in any of 6 images of 4 moments");
  EXPECT_EQ(failure_of(tests[2], tests[2].machines[0]),
            "responder waits for what never comes: receive");
}

}  // namespace
}  // namespace perdura::pmem
