// Counts of a replay, against a model that keeps the place of each page of each file, finds ranges
// by looking at all pages, and the cached entries in a list in the order of their use.
#include "bench/trace/translation_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

#include "platform/base/error.h"
#include "services/fs/trace/trace_writer.h"
#include "tests/support/seed.h"
#include "tests/support/temporary_directory.h"

namespace perdura::bench {
namespace {

using fs::TraceKind;
using fs::TraceRecord;

constexpr std::uint64_t kPages = 120;     // that accesses touch, at most
constexpr std::uint64_t kAllPages = 140;  // with those that files get beyond

class ReplayOracle {
 public:
  // A page's entry, or a range's: the file, the first page, the number of pages.
  using EntryKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;

  ReplayOracle(Bytes page, bool has_ranges, std::size_t cached, std::uint64_t extent,
               std::uint64_t growth)
      : page_(page), has_ranges_(has_ranges), cached_(cached), extent_(extent), growth_(growth) {}

  void add_file(Bytes size) {
    targets_.emplace_back(kAllPages);
    const auto file = static_cast<std::uint32_t>(targets_.size() - 1);
    for (std::uint64_t i = 0; i * page_ < size; ++i) targets_[file][i] = place_of(i);
    counts.registered += entries_in(file).size();
  }
  void access(const TraceRecord& record) {
    auto& targets = targets_[record.file];
    const std::set<EntryKey> before = entries_in(record.file);
    if (record.kind == TraceKind::truncate) {
      for (std::uint64_t i = (record.offset + page_ - 1) / page_; i < kAllPages; ++i) {
        targets[i].reset();
      }
    }
    if (!is_access(record.kind) || record.length == 0) {
      forget_changed(before, record.file);
      return;
    }
    ++counts.accesses;
    const std::uint64_t first = record.offset / page_;
    const std::uint64_t last = (record.offset + record.length - 1) / page_;
    std::uint64_t grown = last;
    const bool at_end = std::all_of(targets.begin() + static_cast<std::ptrdiff_t>(last),
                                    targets.end(), [](const auto& each) { return !each; });
    while (at_end && (grown + 1) % growth_ != 0) ++grown;
    for (std::uint64_t i = first; record.kind != TraceKind::read && i <= grown; ++i) {
      if (targets[i]) continue;
      targets[i] = place_of(i);
      if (!has_ranges_) ++counts.changed;
    }
    forget_changed(before, record.file);
    bool has_hole = false;
    for (std::uint64_t i = first; i <= last; ++i) has_hole |= !targets[i];
    if (has_hole) ++counts.in_holes;
    for (const EntryKey& entry : entries_in(record.file)) {
      const auto& [file, base, pages] = entry;
      if (base <= last && base + pages > first) look_up(entry);
    }
  }
  std::uint64_t entries() const {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < targets_.size(); ++i) sum += entries_in(i).size();
    return sum;
  }
  TranslationCounts counts;

 private:
  std::uint64_t place_of(std::uint64_t page) const { return 2 * (page / extent_) + page; }
  std::set<EntryKey> entries_in(std::uint32_t file) const {
    std::set<EntryKey> all;
    const auto& targets = targets_[file];
    for (std::uint64_t i = 0; i < kAllPages; ++i) {
      if (!targets[i]) continue;
      const std::uint64_t base = i;
      while (has_ranges_ && i + 1 < kAllPages && targets[i + 1] == *targets[i] + 1) ++i;
      all.insert({file, base, i + 1 - base});
    }
    return all;
  }
  void forget_changed(const std::set<EntryKey>& before, std::uint32_t file) {
    const std::set<EntryKey> now = entries_in(file);
    used_.remove_if(
        [&](const EntryKey& each) { return before.contains(each) && !now.contains(each); });
  }
  void look_up(const EntryKey& entry) {
    const auto known = std::find(used_.begin(), used_.end(), entry);
    if (known != used_.end()) {
      ++counts.hits;
      used_.erase(known);
    } else {
      ++counts.misses;
    }
    used_.push_front(entry);
    if (used_.size() > cached_) used_.pop_back();
  }

  Bytes page_;
  bool has_ranges_;
  std::size_t cached_;
  std::uint64_t extent_;
  std::uint64_t growth_;
  std::vector<std::vector<std::optional<std::uint64_t>>> targets_;
  std::list<EntryKey> used_;
};

TEST(TranslationReplay, CountsWhatAModelOfPagesAndListsCounts) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  constexpr Bytes kPage = 4 * KiB;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t holes = 0;
  for (int round = 0; round < 40; ++round) {
    const Bytes page = round % 3 == 0 ? 2 * kPage : kPage;
    const bool has_ranges = round % 2 == 0;
    const auto cached = static_cast<std::uint32_t>(1 + below(12));
    const std::uint64_t extent = 1 + below(30);
    const std::uint64_t growth = 1 + below(10);
    TranslationReplay replay({"", page, has_ranges, cached, cached},
                             {.extent = extent * page, .growth = growth * page});
    ReplayOracle oracle(page, has_ranges, cached, extent, growth);
    constexpr Bytes kLargest = kPages * kPage;
    const std::uint64_t files = 1 + below(3);
    for (std::uint64_t i = 0; i < files; ++i) {
      const Bytes size = below(kLargest / 2);
      replay.add_file(size);
      oracle.add_file(size);
    }
    ASSERT_EQ(replay.counts().registered, oracle.counts.registered);
    for (int i = 0; i < 400; ++i) {
      constexpr std::array kKinds{TraceKind::read,   TraceKind::read,     TraceKind::write,
                                  TraceKind::append, TraceKind::truncate, TraceKind::sync};
      TraceRecord record{kKinds[below(kKinds.size())], static_cast<std::uint32_t>(below(files))};
      record.offset = below(kLargest);
      if (is_access(record.kind)) {
        record.length = below(std::min<Bytes>(kLargest - record.offset, 6 * kPage));
      }
      replay.access(record);
      oracle.access(record);
      const TranslationCounts counts = replay.counts();
      ASSERT_EQ(counts.hits, oracle.counts.hits) << round << ", " << i;
      ASSERT_EQ(counts.misses, oracle.counts.misses) << round << ", " << i;
      ASSERT_EQ(counts.entries, oracle.entries()) << round << ", " << i;
      ASSERT_EQ(counts.in_holes, oracle.counts.in_holes);
      if (!has_ranges) {
        ASSERT_EQ(counts.changed, oracle.counts.changed);
        ASSERT_EQ(counts.visits, counts.misses);
      }
    }
    const TranslationCounts counts = replay.counts();
    EXPECT_EQ(counts.accesses, oracle.counts.accesses);
    EXPECT_EQ(counts.look_ups, counts.hits + counts.misses);
    hits += counts.hits;
    misses += counts.misses;
    holes += counts.in_holes;
  }
  EXPECT_GT(hits, 100U);
  EXPECT_GT(misses, 100U);
  EXPECT_GT(holes, 100U);
}

TEST(TranslationReplay, KnownExtentsAreTheRangesThatAdjoin) {
  const std::vector<FileExtent> extents{{0, 100 * KiB, 8 * KiB},
                                        {8 * KiB, 108 * KiB, 4 * KiB},  // goes on there
                                        {12 * KiB, 0, 4 * KiB},
                                        {40 * KiB, 16 * KiB, 4 * KiB}};
  std::vector<TranslationReplay> replays;
  for (const TranslationScheme& scheme : usual_schemes(64, 4)) {
    TranslationReplay& replay = replays.emplace_back(scheme);
    replay.add_file(extents);
    replay.access({TraceKind::write, 0, 0, 100 * KiB});
  }
  EXPECT_EQ(replays[0].counts().entries, 5U);
  EXPECT_EQ(replays[1].counts().entries, 1U);
  EXPECT_EQ(replays[2].counts().entries, 3U);
  for (const TranslationReplay& replay : replays) {
    EXPECT_EQ(replay.counts().registered, replay.counts().entries);
    EXPECT_EQ(replay.counts().look_ups, replay.counts().entries) << "nothing was added";
    EXPECT_EQ(replay.counts().changed, 0U);
  }
  EXPECT_EQ(replays[0].counts().in_holes, 1U);
}

TEST(TranslationReplay, TimesAreThoseOfTheProfile) {
  sim::TranslationProfile profile;
  profile.registration = Microseconds(10);
  profile.registration_entry = Microseconds(1);
  profile.change = Microseconds(100);
  profile.miss = Nanoseconds(500);
  TranslationReplay replay({"", 4 * KiB, false, 64, 4});
  replay.add_file(8 * KiB);
  replay.access({TraceKind::append, 0, 8 * KiB, 12 * KiB});
  EXPECT_EQ(registration_time(replay.counts(), profile), Microseconds(10 + 2 + 100 + 3));
  EXPECT_EQ(miss_time(replay.counts(), profile), Nanoseconds(1500));
}

TEST(TranslationReplay, ARecordBeyondTheLastPageIsRefused) {
  const test::TemporaryDirectory folder("/tmp", "replay");
  const std::string path = (folder.path() / "trace").string();
  fs::TraceWriter writer(path);
  writer.add_file("a", 0);
  writer.add({TraceKind::write, 0, (Bytes{1} << 44) - 1, 1});
  writer.add({TraceKind::write, 0, Bytes{1} << 44, 1});
  writer.finish();
  fs::TraceReader trace(path);
  std::vector<TranslationReplay> replays;
  replays.emplace_back(usual_schemes(64, 4).front());
  try {
    replay_trace(trace, replays);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("record 2: "), std::string::npos) << error.what();
  }
  EXPECT_EQ(replays.front().counts().entries, 1U);
}

}  // namespace
}  // namespace perdura::bench
