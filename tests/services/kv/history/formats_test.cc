#include "services/kv/history/formats.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "platform/base/error.h"
#include "services/kv/history/checker.h"
#include "tests/services/kv/history/builder.h"
#include "tests/services/kv/history/random_history.h"

namespace perdura::history::test {
namespace {

History of_each_kind() {
  Builder builder;
  builder.put(1, 0, 2).get(1, 1, 3).erase(4, 5).find_absent(6, 7).erase(8, 9, Outcome::not_found);
  builder.lost_put(2, 10).get(0, 10, 12, Outcome::torn).lost_erase(13);
  builder.put(3, 14, 15, Outcome::refused);
  return builder.history();
}

TEST(HistoryFormats, EdnIsWhatJepsenReads) {
  EXPECT_EQ(
      to_edn(of_each_kind()),
      "{:index 0, :process 0, :type :invoke, :f :write, :value [7 1], :time 0, :client 0}\n"
      "{:index 1, :process 1, :type :invoke, :f :read, :value [7 nil], :time 1000, :client 1}\n"
      "{:index 2, :process 0, :type :ok, :f :write, :value [7 1], :time 2000, :client 0}\n"
      "{:index 3, :process 1, :type :ok, :f :read, :value [7 1], :time 3000, :client 1}\n"
      "{:index 4, :process 0, :type :invoke, :f :delete, :value [7 nil], :time 4000, :client 2}\n"
      "{:index 5, :process 0, :type :ok, :f :delete, :value [7 nil], :time 5000, :client 2}\n"
      "{:index 6, :process 0, :type :invoke, :f :read, :value [7 nil], :time 6000, :client 3}\n"
      "{:index 7, :process 0, :type :ok, :f :read, :value [7 :absent], :time 7000, :client 3}\n"
      "{:index 8, :process 0, :type :invoke, :f :read, :value [7 nil], :time 8000, :client 4}\n"
      "{:index 9, :process 0, :type :ok, :f :read, :value [7 :absent], :time 9000, :client 4}\n"
      "{:index 10, :process 0, :type :invoke, :f :write, :value [7 2], :time 10000, :client 5}\n"
      "{:index 11, :process 1, :type :invoke, :f :read, :value [7 nil], :time 10000, :client 6}\n"
      "{:index 12, :process 1, :type :ok, :f :read, :value [7 :torn], :time 12000, :client 6}\n"
      "{:index 13, :process 1, :type :invoke, :f :delete, :value [7 nil], :time 13000, :client 7}\n"
      "{:index 14, :process 0, :type :info, :f :write, :value [7 2], :time 13000, :client 5}\n"
      "{:index 15, :process 1, :type :info, :f :delete, :value [7 nil], :time 13000, :client 7}\n");
}

TEST(HistoryFormats, JsonIsWhatPorcupineReads) {
  Builder builder;
  builder.put(1, 0, 2).get(1, 1, 3).find_absent(4, 5).lost_put(2, 6);
  EXPECT_EQ(to_json(builder.history()),
            "[\n"
            R"({"ClientId":0,"Input":{"op":"put","key":7,"value":1},"Call":0,)"
            R"("Output":{"outcome":"ok"},"Return":2000000},)"
            "\n"
            R"({"ClientId":1,"Input":{"op":"get","key":7},"Call":1000000,)"
            R"("Output":{"outcome":"ok","value":1},"Return":3000000},)"
            "\n"
            R"({"ClientId":2,"Input":{"op":"get","key":7},"Call":4000000,)"
            R"("Output":{"outcome":"not found"},"Return":5000000},)"
            "\n"
            R"({"ClientId":3,"Input":{"op":"put","key":7,"value":2},"Call":6000000,)"
            R"("Output":{"outcome":"unknown"},"Return":9223372036854775807})"
            "\n]\n");
}

TEST(HistoryFormats, JsonKeepsWhatIsSaid) {
  History expected;
  const History all = of_each_kind();
  for (const Operation& operation : all.operations()) {
    if (operation.outcome != Outcome::refused) expected.add(operation);
  }
  const History read = from_json(to_json(all));
  ASSERT_EQ(read.size(), expected.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read.operations()[i], expected.operations()[i])
        << describe(read.operations()[i]) << "; " << describe(expected.operations()[i]);
  }
}

TEST(HistoryFormats, JsonKeepsTheVerdict) {
  std::uint64_t accepted = 0;
  constexpr std::uint64_t kHistories = 2000;
  for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
    std::mt19937_64 random(seed);
    const History history = RandomHistory(random, {.operations = 10, .lost_of_ten = 2}).make();
    const bool expected = check(history).accepted();
    ASSERT_EQ(check(from_json(to_json(history))).accepted(), expected) << "seed " << seed;
    accepted += expected ? 1 : 0;
  }
  EXPECT_GT(accepted, kHistories / 10);
  EXPECT_LT(accepted, kHistories * 9 / 10);
}

// The value of a word such as :process in a line of EDN.
std::string field(const std::string& line, const std::string& name) {
  const std::size_t begin = line.find(":" + name + " ") + name.size() + 2;
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

TEST(HistoryFormats, EachProcessOfEdnHasOneOperationAtATime) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const History history =
        RandomHistory(random, {.operations = 12, .times = 8, .lost_of_ten = 3}).make();
    std::map<std::string, std::string> last;  // type of line, by process
    std::istringstream lines(to_edn(history));
    std::size_t open = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::string type = field(line, "type");
      std::string& before = last[field(line, "process")];
      if (type == ":invoke") {
        ASSERT_TRUE(before.empty() || before == ":ok") << "seed " << seed << ": " << line;
        ++open;
      } else {
        ASSERT_EQ(before, ":invoke") << "seed " << seed << ": " << line;
        --open;
      }
      before = type;
    }
    EXPECT_EQ(open, 0U);
  }
}

std::string problem_with(const std::string& text) {
  try {
    from_json(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(HistoryFormats, SaysWhatIsWrong) {
  const auto operation = [](const std::string& outcome, int returns) {
    return fmt::format(
        R"([{{"ClientId":0,"Input":{{"op":"put","key":7,"value":1}},"Call":5,"Output":{{"outcome":"{}"}},"Return":{}}}])",
        outcome, returns);
  };
  EXPECT_EQ(problem_with("[]"), "");
  EXPECT_EQ(problem_with(operation("ok", 5)), "");
  EXPECT_EQ(problem_with("{}"), "it is no array of operations");
  EXPECT_EQ(problem_with(operation("ok", 4)),
            "line 1: operation 0: it returns before it is called");
  EXPECT_EQ(problem_with(operation("good", 6)), "line 1: operation 0: 'good' is not known");
  EXPECT_EQ(problem_with(operation("torn", 6)), "line 1: operation 0: a put is 'ok' or 'unknown'");
  EXPECT_NE(problem_with("[7]").find("operation 0: "), std::string::npos);
  EXPECT_NE(problem_with("[{}]").find("operation 0: "), std::string::npos);
  EXPECT_NE(problem_with("[{"), "");
  EXPECT_NE(problem_with(""), "");
}

}  // namespace
}  // namespace perdura::history::test
