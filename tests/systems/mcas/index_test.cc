// MCAS, section 3.3: "Scanning is based on exact match, prefix or regular expression."
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "systems/mcas/index/key_index.h"
#include "tests/support/seed.h"

namespace perdura::systems::mcas::index {
namespace {

using Outcome = FindResult::Outcome;

Key as_key(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(Key key) { return {reinterpret_cast<const char*>(key.data()), key.size()}; }

std::unique_ptr<KeyIndex> index_of(const std::vector<std::string>& keys) {
  auto index = make_index("VolatileTree");
  for (const std::string& key : keys) EXPECT_TRUE(index->insert(as_key(key)));
  return index;
}

// The key that is found at last, and its position: "b 1".
std::string found(const KeyIndex& index, std::string_view expression, Match match,
                  std::uint64_t position = 0) {
  for (;;) {
    const FindResult result = index.find(expression, match, position);
    switch (result.outcome) {
      case Outcome::found:
        return text_of(result.key) + " " + std::to_string(result.position);
      case Outcome::not_found:
        return "none";
      case Outcome::invalid:
        return "invalid";
      case Outcome::more:
        EXPECT_GT(result.position, position);
        position = result.position;
    }
  }
}

TEST(McasIndex, FindsTheFirstKeyFromAPositionOnThatMatches) {
  const auto index = index_of({"pear", "apple", "fig", "apricot", "plum", "peach"});
  EXPECT_EQ(index->count(), 6U);
  EXPECT_EQ(found(*index, "fig", Match::exact), "fig 2");
  EXPECT_EQ(found(*index, "fig", Match::exact, 2), "fig 2");
  EXPECT_EQ(found(*index, "fig", Match::exact, 3), "none");
  EXPECT_EQ(found(*index, "figs", Match::exact), "none");
  EXPECT_EQ(found(*index, "p", Match::prefix), "peach 3");
  EXPECT_EQ(found(*index, "p", Match::prefix, 4), "pear 4");
  EXPECT_EQ(found(*index, "ap", Match::prefix, 2), "none");
  EXPECT_EQ(found(*index, "", Match::prefix, 5), "plum 5");
  EXPECT_EQ(found(*index, "p.*m", Match::regular_expression), "plum 5");
  EXPECT_EQ(found(*index, "p", Match::regular_expression), "none") << "all of a key matches";
  EXPECT_EQ(found(*index, ".*p.*", Match::regular_expression, 1), "apricot 1");
  EXPECT_EQ(found(*index, "", Match::next), "apple 0");
  EXPECT_EQ(found(*index, "", Match::next, 5), "plum 5");
  EXPECT_EQ(found(*index, "", Match::next, 6), "none");
  EXPECT_EQ(found(*index, "fig", Match::next), "peach 3");
  EXPECT_EQ(found(*index, "g", Match::next), "peach 3");
  EXPECT_EQ(found(*index, "z", Match::next), "none");
  EXPECT_EQ(found(*index, "", Match::next, ~std::uint64_t{0}), "none");
}

TEST(McasIndex, AnExpressionThatIsNoneIsSaidToBe) {
  const auto index = index_of({"a"});
  for (const char* expression : {"(", "[", "a{2,1}", "*", "\\", "(a)\\1", "a{1000}{1000}"}) {
    EXPECT_EQ(found(*index, expression, Match::regular_expression), "invalid") << expression;
  }
  EXPECT_EQ(found(*index, "(", Match::exact), "none");
  EXPECT_EQ(found(*index, "(", Match::prefix), "none");
}

// A matcher that goes back would need 2^40 steps for each key.
TEST(McasIndex, NoExpressionTakesExponentialTime) {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(std::to_string(i) + std::string(40, 'a') + "!");
  const auto index = index_of(keys);
  EXPECT_EQ(found(*index, "\\d*(a+)+", Match::regular_expression), "none");
}

TEST(McasIndex, ASearchOfManyKeysIsDividedIntoSteps) {
  std::vector<std::string> keys;
  for (int i = 0; i < 2500; ++i) keys.push_back(std::to_string(10'000 + i));
  const auto index = index_of(keys);
  EXPECT_EQ(index->find("12499", Match::regular_expression, 0).outcome, Outcome::more);
  EXPECT_EQ(found(*index, "x", Match::regular_expression), "none");
  // Each key, also those at which a step begins and ends, and from each side of such a place.
  for (const std::uint64_t from : {0, 999, 1000, 1001}) {
    for (std::uint64_t i = from; i < keys.size(); ++i) {
      ASSERT_EQ(found(*index, keys[i], Match::regular_expression, from),
                keys[i] + " " + std::to_string(i))
          << "from " << from;
    }
  }
}

TEST(McasIndex, KeysAreBytes) {
  const std::string low("\0a", 2);
  const std::string high("\xff\n\xfe", 3);
  const auto index = index_of({high, low, "a"});
  EXPECT_EQ(found(*index, "", Match::next), low + " 0");
  EXPECT_EQ(found(*index, "", Match::next, 2), high + " 2");
  EXPECT_EQ(found(*index, "\\xff.\\xfe", Match::regular_expression), high + " 2");
  EXPECT_EQ(found(*index, std::string_view("\0", 1), Match::prefix), low + " 0");
}

TEST(McasIndex, BehavesLikeASet) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto index = make_index("VolatileTree");
  std::set<std::string> expected;
  const auto draw = [&] {
    std::string text(random() % 4, 'a');
    for (char& one : text) one = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::string key = draw();
    if (random() % 2 == 0) {
      EXPECT_EQ(index->insert(as_key(key)), expected.insert(key).second);
    } else {
      EXPECT_EQ(index->erase(as_key(key)), expected.erase(key) > 0);
    }
    ASSERT_EQ(index->count(), expected.size());
    const std::string expression = draw();
    const std::uint64_t from = random() % 45;
    const auto first = [&](auto matches) -> std::string {
      std::uint64_t position = 0;
      for (const std::string& one : expected) {
        if (position++ >= from && matches(one)) return one + " " + std::to_string(position - 1);
      }
      return "none";
    };
    ASSERT_EQ(found(*index, expression, Match::exact, from),
              first([&](const std::string& one) { return one == expression; }));
    ASSERT_EQ(found(*index, expression, Match::prefix, from),
              first([&](const std::string& one) { return one.starts_with(expression); }));
    ASSERT_EQ(found(*index, expression, Match::next, from), first([&](const std::string& one) {
                return expression.empty() || one > expression;
              }));
    const std::string pattern = expression + "[ab]*";
    ASSERT_EQ(
        found(*index, pattern, Match::regular_expression, from),
        first([&](const std::string& one) { return std::regex_match(one, std::regex(pattern)); }));
  }
}

TEST(McasIndex, IsMadeByName) { EXPECT_EQ(make_index("another"), nullptr); }

}  // namespace
}  // namespace perdura::systems::mcas::index
