// Histories of which it is plain whether they are right.
#include "services/kv/history/checker.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"
#include "tests/services/kv/history/builder.h"

namespace perdura::history::test {
namespace {

testing::AssertionResult accepted(const CheckResult& verdict) {
  if (verdict.accepted()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << describe(verdict);
}

// Exactly one key is violated, and what is said of it begins like this.
testing::AssertionResult violates(const CheckResult& verdict, const std::string& what) {
  if (verdict.keys_violated == 1 && verdict.violations.size() == 1 &&
      verdict.violations[0].what.starts_with(what)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << describe(verdict) << "; expected: " << what;
}

TEST(Checker, AcceptsNothing) {
  const CheckResult verdict = check(History());
  EXPECT_TRUE(verdict.accepted());
  EXPECT_EQ(verdict.operations, 0U);
  EXPECT_EQ(describe(verdict), "0 operations on 0 keys: linearizable");
}

TEST(Checker, AcceptsOneClient) {
  EXPECT_TRUE(accepted(Builder()
                           .find_absent(0, 1)
                           .put(1, 2, 3)
                           .get(1, 4, 5)
                           .put(2, 6, 7)
                           .get(2, 8, 9)
                           .get(2, 10, 11)
                           .erase(12, 13)
                           .find_absent(14, 15)
                           .erase(16, 17, Outcome::not_found)
                           .put(3, 18, 19)
                           .get(3, 20, 21)
                           .check()));
}

TEST(Checker, AcceptsEitherVersionDuringAPutAndOnlyTheNewOneAfterwards) {
  EXPECT_TRUE(accepted(Builder().put(1, 0, 1).put(2, 2, 9).get(1, 3, 4).get(2, 5, 6).check()));
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).put(2, 2, 9).get(2, 3, 4).get(1, 5, 6).check(),
                       "there is no moment for the put of version 2, because version 1 had to "
                       "stay"));
}

TEST(Checker, AcceptsConcurrentPutsInTheOrderThatReadsShow) {
  Builder builder;
  for (std::uint64_t version = 0; version < 40; ++version) builder.put(version, 0, 100);
  for (std::uint64_t version = 0; version < 40; ++version) {
    builder.get(39 - version, 1.0 + 2.0 * static_cast<double>(version),
                2.0 + 2.0 * static_cast<double>(version));
  }
  EXPECT_TRUE(accepted(builder.check()));
  builder.get(20, 99, 100);  // replaced long ago
  EXPECT_FALSE(builder.check().accepted());
}

TEST(Checker, CountsEqualTimesAsConcurrent) {
  EXPECT_TRUE(accepted(Builder().put(1, 0, 5).put(2, 5, 6).get(1, 7, 8).check()));
  EXPECT_FALSE(Builder().put(1, 0, 5).put(2, 5.001, 6).get(1, 7, 8).check().accepted());
}

TEST(Checker, FindsAStaleRead) {
  const CheckResult verdict = Builder().put(1, 0, 1).put(2, 2, 3).get(1, 4, 5).check();
  EXPECT_TRUE(violates(verdict,
                       "a get returned version 1 after the put of version 2 had been "
                       "acknowledged (stale read, or lost update)"));
  EXPECT_EQ(describe(verdict),
            "3 operations on 1 keys: 1 keys violated; key 7: a get returned version 1 after the "
            "put of version 2 had been acknowledged (stale read, or lost update): get of version "
            "1 by client 2, 4.000 to 5.000 us; put of version 2 by client 1, 2.000 to 3.000 us; "
            "put of version 1 by client 0, 0.000 to 1.000 us");
}

TEST(Checker, FindsALostUpdate) {
  EXPECT_TRUE(
      violates(Builder().put(1, 0, 1).get(1, 2, 3).put(2, 4, 5).get(1, 6, 7).get(1, 8, 9).check(),
               "a get returned version 1 after the put of version 2 had been acknowledged"));
  // Also where nobody could tell by one read alone which of the two came last.
  EXPECT_FALSE(
      Builder().put(1, 0, 9).put(2, 0, 9).get(1, 10, 11).get(2, 12, 13).check().accepted());
}

TEST(Checker, FindsAReadThatGoesBack) {
  // Both puts are under way; the second read may not return to what the first one left behind.
  EXPECT_FALSE(Builder()
                   .put(1, 0, 20)
                   .put(2, 0, 20)
                   .get(1, 1, 2)
                   .get(2, 3, 4)
                   .get(1, 5, 6)
                   .check()
                   .accepted());
}

TEST(Checker, FindsATornValue) {
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).get(0, 2, 3, Outcome::torn).check(),
                       "a get returned a value that nobody wrote (torn)"));
}

TEST(Checker, FindsAVersionThatNobodyWrote) {
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).get(9, 2, 3).check(),
                       "a get returned version 9, which nobody wrote"));
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).put(2, 2, 3, Outcome::refused).get(2, 4, 5).check(),
                       "a get returned version 2, which nobody wrote"));
}

TEST(Checker, FindsAReadFromTheFuture) {
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).get(2, 2, 3).put(2, 4, 5).check(),
                       "a get returned version 2 before its put had begun"));
}

TEST(Checker, FindsAKeyThatComesBackAfterItsDelete) {
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).erase(2, 3).get(1, 4, 5).check(),
                       "a get returned version 1 after the delete had been acknowledged"));
  EXPECT_TRUE(accepted(Builder().put(1, 0, 1).erase(2, 3).put(2, 4, 5).get(2, 6, 7).check()));
}

TEST(Checker, FindsAKeyThatIsMissing) {
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).find_absent(2, 3).check(),
                       "a get found nothing at a time when the key was present"));
  EXPECT_TRUE(accepted(Builder().put(1, 0, 3).find_absent(2, 3).check()));
}

TEST(Checker, FindsADeleteOfNothing) {
  EXPECT_TRUE(violates(Builder().erase(0, 1).check(),
                       "a delete was acknowledged at a time when the key was absent"));
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).erase(2, 9).erase(3, 8).check(),
                       "a delete was acknowledged at a time when the key was absent"));
  EXPECT_TRUE(accepted(Builder().put(1, 0, 1).erase(2, 9).erase(3, 8, Outcome::not_found).check()));
}

// A value that is written twice is no violation; reads may have seen either.
TEST(Checker, PutsOfOneVersionAreDecidedByTheGeneralSearch) {
  EXPECT_TRUE(accepted(Builder().put(1, 0, 1).put(1, 2, 3).get(1, 4, 5).check()));
  EXPECT_TRUE(accepted(Builder().put(1, 0, 1).put(2, 2, 3).put(1, 4, 5).get(1, 6, 7).check()));
  EXPECT_TRUE(violates(Builder().put(1, 0, 1).put(2, 2, 3).get(1, 4, 5).put(1, 6, 7).check(),
                       "an operation is impossible after all that took effect before it"));
}

TEST(Checker, FindsTimesThatCannotBe) {
  EXPECT_TRUE(violates(Builder().put(1, 2, 1).check(), "an operation ended before it began"));
  EXPECT_TRUE(
      violates(Builder().put(1, 2, 1).put(1, 4, 5).check(), "an operation ended before it began"));
}

TEST(Checker, LetsAnUnknownPutTakeEffectLateOrNever) {
  const auto before = [] { return Builder().put(1, 0, 1).lost_put(2, 2); };
  EXPECT_TRUE(accepted(before().get(1, 10, 11).get(1, 12, 13).check()));
  EXPECT_TRUE(accepted(before().get(1, 10, 11).get(2, 12, 13).get(2, 14, 15).check()));
  EXPECT_TRUE(accepted(before().get(2, 2.5, 3).check()));
  // But once it has, it stays.
  EXPECT_FALSE(before().get(1, 10, 11).get(2, 12, 13).get(1, 14, 15).check().accepted());
  EXPECT_FALSE(Builder().put(1, 0, 1).get(2, 2, 3).lost_put(2, 4).check().accepted());
}

TEST(Checker, LetsAnUnknownDeleteTakeEffectLateOrNever) {
  const auto before = [] { return Builder().put(1, 0, 1).lost_erase(2); };
  EXPECT_TRUE(accepted(before().get(1, 10, 11).get(1, 12, 13).check()));
  EXPECT_TRUE(accepted(before().get(1, 10, 11).find_absent(12, 13).check()));
  EXPECT_FALSE(before().find_absent(12, 13).get(1, 14, 15).check().accepted());
}

TEST(Checker, UsesAnUnknownPutOnceOnly) {
  EXPECT_TRUE(accepted(Builder().lost_put(1, 0).erase(1, 2).check()));
  EXPECT_FALSE(Builder().lost_put(1, 0).erase(1, 2).erase(3, 4).check().accepted());
}

TEST(Checker, LeavesOutWhatHadNoEffect) {
  EXPECT_TRUE(accepted(Builder()
                           .put(1, 0, 1)
                           .put(2, 2, 3, Outcome::refused)
                           .get(0, 4, 5, Outcome::refused)
                           .get(0, 4, 5, Outcome::unknown)
                           .get(1, 6, 7)
                           .check()));
}

TEST(Checker, KnowsWhatKeysHoldAtFirst) {
  Builder builder;
  builder.get(5, 0, 1).put(6, 2, 3).get(6, 4, 5);
  EXPECT_FALSE(builder.check().accepted());
  builder.history().add_preload({.first = 5, .keys = 3, .version = 5});
  EXPECT_TRUE(accepted(builder.check()));
  builder.find_absent(6, 7);
  EXPECT_FALSE(builder.check().accepted());

  Builder outside;
  outside.find_absent(0, 1).history().add_preload({.first = 4, .keys = 3, .version = 5});
  EXPECT_TRUE(accepted(outside.check())) << "key 7 is the first that is not preloaded";
}

TEST(Checker, LetsAPowerFailureUndoTheLastVersionIfThatIsThePromise) {
  const Builder builder =
      Builder().put(1, 0, 1).put(2, 2, 3).get(2, 4, 5).power_failure(6).get(1, 7, 8);
  EXPECT_TRUE(accepted(builder.check(kLastVersion)));
  EXPECT_FALSE(builder.check().accepted()) << "the promise is durability";
  const Builder kept =
      Builder().put(1, 0, 1).put(2, 2, 3).power_failure(6).get(2, 7, 8).get(2, 9, 10);
  EXPECT_TRUE(accepted(kept.check(kLastVersion)));
  EXPECT_TRUE(accepted(kept.check()));
}

TEST(Checker, FindsAFallBackWithoutAPowerFailure) {
  EXPECT_FALSE(
      Builder().put(1, 0, 1).put(2, 2, 3).get(2, 4, 5).get(1, 7, 8).check(kLastVersion).accepted());
  EXPECT_FALSE(Builder()
                   .put(1, 0, 1)
                   .put(2, 2, 3)
                   .get(2, 4, 5)
                   .get(1, 7, 8)
                   .power_failure(9)
                   .check(kLastVersion)
                   .accepted())
      << "it comes too late";
}

TEST(Checker, FindsAFallBackByTwoVersions) {
  EXPECT_FALSE(Builder()
                   .put(1, 0, 1)
                   .put(2, 2, 3)
                   .put(3, 4, 5)
                   .power_failure(6)
                   .get(1, 7, 8)
                   .check(kLastVersion)
                   .accepted());
}

TEST(Checker, FindsThatASecondPowerFailureUndoesWhatSurvivedTheFirst) {
  const auto until_second = [] {
    return Builder().put(1, 0, 1).put(2, 2, 3).power_failure(4).get(2, 5, 6).power_failure(7);
  };
  EXPECT_TRUE(accepted(until_second().get(2, 8, 9).check(kLastVersion)));
  EXPECT_FALSE(until_second().get(1, 8, 9).check(kLastVersion).accepted());
}

TEST(Checker, FindsAKeyThatIsNeitherOldNorNewAfterAPowerFailure) {
  // After the failure readers must agree.
  EXPECT_FALSE(Builder()
                   .put(1, 0, 1)
                   .put(2, 2, 3)
                   .power_failure(4)
                   .get(1, 5, 6)
                   .get(2, 7, 8)
                   .check(kLastVersion)
                   .accepted());
}

TEST(Checker, LetsAPowerFailureUndoADeleteAndACreation) {
  EXPECT_TRUE(accepted(
      Builder().put(1, 0, 1).erase(2, 3).power_failure(4).get(1, 5, 6).check(kLastVersion)));
  EXPECT_TRUE(
      accepted(Builder().put(1, 0, 1).power_failure(4).find_absent(5, 6).check(kLastVersion)));
  EXPECT_FALSE(Builder().put(1, 0, 1).power_failure(4).find_absent(5, 6).check().accepted());
}

TEST(Checker, JudgesEachKeyAloneAndNamesTheFirstOnes) {
  History history;
  for (std::uint64_t key = 0; key < 100; ++key) {
    history.merge(Builder(key).put(1, 0, 1).put(2, 2, 3).get(2, 4, 5).history());
  }
  EXPECT_TRUE(accepted(check(history)));
  EXPECT_EQ(check(history).keys, 100U);
  EXPECT_EQ(check(history).operations, 300U);
  for (std::uint64_t key = 50; key < 75; ++key) {
    history.add({.key = key, .version = 1, .start = at(6), .end = at(7), .outcome = Outcome::ok});
  }
  const CheckResult verdict = check(history);
  EXPECT_EQ(verdict.keys_violated, 25U);
  ASSERT_EQ(verdict.violations.size(), kMaxViolations);
  EXPECT_EQ(verdict.violations[0].key, 50U);
}

TEST(Checker, TakesManyOperationsUnderWayAtOnce) {
  // More than a machine word has bits, deletes among them, and more to come than have ended.
  Builder builder;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto start = static_cast<double>(i) / 1000;
    builder.put(i, start, 10).get(i, start, 10);
    if (i % 10 == 0) builder.erase(start, 10).find_absent(start, 10);
  }
  EXPECT_TRUE(accepted(builder.check()));
  builder.find_absent(11, 12);
  builder.get(50, 13, 14);
  EXPECT_FALSE(builder.check().accepted());
}

}  // namespace
}  // namespace perdura::history::test
