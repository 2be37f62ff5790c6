// A course over time: divided into intervals without losing an operation, and merged from shares.
#include "harness/results/timeline.h"

#include <gtest/gtest.h>

#include "harness/results/measurement.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

Time at(std::int64_t microseconds) { return Time(Microseconds(microseconds)); }

// Began at 1,000 us; intervals of 100 us.
Timeline timeline() {
  Timeline timeline;
  timeline.interval = Microseconds(100);
  timeline.begin = at(1000);
  return timeline;
}

TEST(Timeline, PutsEachOperationIntoTheIntervalInWhichItEnded) {
  Timeline course = timeline();
  course.operations = {{at(1099), 300}, {at(1100), 500}, {at(1050), 100}, {at(1199), 700}};
  const auto intervals = divide(course);
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_EQ(intervals[0].start, Microseconds(0));
  EXPECT_EQ(intervals[0].operations, 2U);
  EXPECT_EQ(intervals[0].mean_ns, 200.0);
  EXPECT_EQ(intervals[0].max_ns, 300U);
  EXPECT_EQ(intervals[1].start, Microseconds(100));
  EXPECT_EQ(intervals[1].operations, 2U);
  EXPECT_EQ(intervals[1].mean_ns, 600.0);
  EXPECT_EQ(intervals[1].max_ns, 700U);
}

TEST(Timeline, HasEmptyIntervalsWhereNothingEnded) {
  Timeline course = timeline();
  course.operations = {{at(1010), 300}, {at(1310), 500}};
  const auto intervals = divide(course);
  ASSERT_EQ(intervals.size(), 4U);
  for (const std::size_t empty : {1U, 2U}) {
    EXPECT_EQ(intervals[empty].operations, 0U);
    EXPECT_FALSE(intervals[empty].mean_ns);
    EXPECT_FALSE(intervals[empty].max_ns);
  }
}

TEST(Timeline, ShowsTheStoreAsItWasLastSampledBeforeAnIntervalsEnd) {
  Timeline course = timeline();
  course.operations = {{at(1010), 300}, {at(1390), 500}};
  course.spaces = {{at(1020), 200, 100, 5, 0},
                   {at(1120), 200, 50, 6, 1},
                   {at(1180), 200, 20, 6, 2},
                   {at(1350), 200, 120, 8, 0}};
  const auto intervals = divide(course);
  ASSERT_EQ(intervals.size(), 4U);
  EXPECT_EQ(intervals[0].free_percent, 50.0);
  EXPECT_EQ(intervals[0].cleanings, 0U);
  EXPECT_EQ(intervals[0].cleanings_now, 0U);
  EXPECT_EQ(intervals[1].free_percent, 10.0);
  EXPECT_EQ(intervals[1].cleanings, 1U);
  EXPECT_EQ(intervals[1].cleanings_now, 2U);
  EXPECT_EQ(intervals[2].free_percent, 10.0);  // not sampled: as before
  EXPECT_EQ(intervals[3].free_percent, 60.0);
  EXPECT_EQ(intervals[3].cleanings, 3U);
}

TEST(Timeline, SaysNothingOfAStoreBeforeTheFirstSample) {
  Timeline course = timeline();
  course.operations = {{at(1010), 300}, {at(1110), 500}};
  course.spaces = {{at(1105), 200, 100, 5, 0}};
  const auto intervals = divide(course);
  EXPECT_FALSE(intervals[0].free_percent);
  EXPECT_FALSE(intervals[0].cleanings_now);
  EXPECT_EQ(intervals[1].free_percent, 50.0);
}

TEST(Timeline, ASampleBeforeTheFirstOperationCountsToTheFirstInterval) {
  Timeline course = timeline();
  course.operations = {{at(1010), 300}};
  course.spaces = {{at(800), 200, 100, 5, 0}};
  EXPECT_EQ(divide(course).front().free_percent, 50.0);
}

TEST(Timeline, ThatWasNotRecordedHasNoIntervals) {
  EXPECT_TRUE(divide(Timeline{}).empty());
  EXPECT_TRUE(divide(timeline()).empty());
}

// The clients of two processes, and a server in a third one.
TEST(Timeline, OfSharesIsThatOfTheWhole) {
  Timeline whole = timeline();
  whole.operations = {{at(1010), 1}, {at(1120), 2}, {at(1130), 3}};
  whole.spaces = {{at(1001), 100, 50, 0, 0}, {at(1101), 100, 40, 0, 1}};

  Timeline server;
  server.interval = Microseconds(100);
  server.spaces = whole.spaces;
  Timeline first = timeline();
  first.operations = {whole.operations[0]};
  Timeline second = timeline();
  second.begin = at(1003);
  second.operations = {whole.operations[1], whole.operations[2]};

  Timeline merged;
  for (const Timeline& share : {server, second, first}) {
    Measurement sent;
    sent.timeline = share;
    merged.merge(Measurement::deserialize(sent.serialize()).timeline);
  }
  EXPECT_EQ(merged.begin, at(1000));
  const auto expected = divide(whole);
  const auto found = divide(merged);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].operations, expected[i].operations) << i;
    EXPECT_EQ(found[i].mean_ns, expected[i].mean_ns) << i;
    EXPECT_EQ(found[i].max_ns, expected[i].max_ns) << i;
    EXPECT_EQ(found[i].free_percent, expected[i].free_percent) << i;
    EXPECT_EQ(found[i].cleanings_now, expected[i].cleanings_now) << i;
  }
}

TEST(Timeline, ThatIsDamagedIsRefused) {
  Measurement sent;
  sent.timeline = timeline();
  sent.timeline.operations = {{at(1010), 1}};
  sent.timeline.spaces = {{at(1001), 100, 50, 0, 0}};
  const auto words = sent.serialize();
  for (std::size_t length = 0; length < words.size(); ++length) {
    EXPECT_THROW(Measurement::deserialize(std::span(words).first(length)), PlatformError) << length;
  }
  auto longer = words;
  longer.push_back(0);
  EXPECT_THROW(Measurement::deserialize(longer), PlatformError);
  // No count that is too large has memory allocated for it.
  for (std::size_t place = 0; place < words.size(); ++place) {
    auto huge = words;
    huge[place] = ~std::uint64_t{0};
    try {
      Measurement::deserialize(huge);
    } catch (const PlatformError&) {
    }
  }
}

}  // namespace
}  // namespace perdura::harness
