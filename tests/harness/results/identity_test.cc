#include "harness/results/identity.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"

namespace perdura::harness {
namespace {

const Identity kBegun{{"experiment", "e1"}, {"workload \"a\"\n", "w1"}, {"build", "b1"}};

std::string difference(const Identity& now) {
  try {
    check_same("DIR", kBegun, now);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Identity, IsReadAsItWasWritten) {
  EXPECT_EQ(identity_of_text(to_text(kBegun), "file"), kBegun);
  EXPECT_THROW(identity_of_text("{\"a\": 1}", "file"), UsageError);
  EXPECT_THROW(identity_of_text("gibberish", "file"), UsageError);
}

TEST(Identity, EveryDifferenceIsRefused) {
  EXPECT_EQ(difference(kBegun), "");
  for (std::size_t i = 0; i < kBegun.size(); ++i) {
    Identity other = kBegun;
    other[i].second = "other";
    EXPECT_NE(difference(other), "") << i;
    other = kBegun;
    other[i].first = "other";
    EXPECT_NE(difference(other), "") << i;
    other = kBegun;
    other.erase(other.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(difference(other), "") << i;
  }
  Identity longer = kBegun;
  longer.emplace_back("ranks", "3");
  EXPECT_NE(difference(longer), "");
}

TEST(Identity, TheDifferenceIsNamed) {
  Identity other = kBegun;
  other[2].second = "b2";
  EXPECT_EQ(difference(other),
            "--continue DIR: begun with build b1, now it is build b2; a folder holds the results "
            "of one configuration and one build: restore that, or run the experiment again in a "
            "new folder");
}

TEST(Identity, OfTextsTheFirstLineThatDiffersIsNamed) {
  const auto differing = [](const std::string& one, const std::string& other) {
    const auto found = first_difference({{"site", one}}, {{"site", other}});
    return found ? found->one + " | " + found->other : "none";
  };
  EXPECT_EQ(differing("a\nb\nc\n", "a\nb\nc\n"), "none");
  EXPECT_EQ(differing("a\nb\nc\n", "a\nd\ne\n"), "line 2 of site 'b' | 'd'");
  EXPECT_EQ(differing("a\nb\n", "a\nb\nc\n"), "line 3 of site '' | 'c'");
  EXPECT_EQ(differing("a\nb\n", "a\n"), "line 2 of site 'b' | ''");
  EXPECT_EQ(differing("", "a\nb\n"), "line 1 of site '' | 'a'");
  EXPECT_EQ(differing("a\nb\n", ""), "line 1 of site 'a' | ''");
  EXPECT_EQ(differing("a\nb", "a\nb\n"), "line 3 of site missing | ''");
}

TEST(Identity, TextsNeedNotBeUtf8) {
  const Identity latin{{"workload a", "# caf\xe9\n"}};
  const Identity kept = identity_of_text(to_text(latin), "file");
  EXPECT_EQ(identity_of_text(to_text(kept), "file"), kept);
}

TEST(Identity, TheBuildHasOneName) {
  EXPECT_EQ(build_name(), build_name());
  EXPECT_FALSE(build_name().empty());
}

}  // namespace
}  // namespace perdura::harness
