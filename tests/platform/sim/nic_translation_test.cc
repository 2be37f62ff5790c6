// The translations that a NIC looks up, on random traces of accesses and of changes of extents:
// against a model that keeps the place of each page, finds ranges by looking at all pages, and has
// the cached entries in a list in the order of their use.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "platform/fabric/sim/nic.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"

namespace perdura::sim {
namespace {

using fabric::Access;
using fabric::Extent;
using fabric::ExtentMap;

constexpr Bytes kPage = 4 * KiB;
constexpr std::uint64_t kFilePages = 24;
constexpr std::uint64_t kRegionPages = 64;
constexpr std::size_t kFiles = 2;

class NicOracle {
 public:
  // The file, and the first and the last page of the entry.
  using Entry = std::tuple<std::size_t, std::uint64_t, std::uint64_t>;

  NicOracle(bool has_ranges, std::size_t cached) : has_ranges_(has_ranges), cached_(cached) {}

  // `place`: the page of the region; none: a hole. An entry that a change touches leaves the cache,
  // and so does a range that adjoins it, as both may have become one.
  void change(std::size_t file, std::uint64_t first, std::uint64_t count,
              std::optional<std::uint64_t> place) {
    used_.remove_if([&](const Entry& each) {
      const auto& [in, from, to] = each;
      const std::uint64_t beside = has_ranges_ ? 1 : 0;
      return in == file && from < first + count + beside && first < to + 1 + beside;
    });
    for (std::uint64_t i = 0; i < count; ++i) {
      places_.at(file).at(first + i) = place ? std::optional(*place + i) : std::nullopt;
    }
  }
  bool is_there(std::size_t file, std::uint64_t first, std::uint64_t last) const {
    for (std::uint64_t page = first; page <= last; ++page) {
      if (!places_.at(file).at(page)) return false;
    }
    return true;
  }
  void access(std::size_t file, std::uint64_t first, std::uint64_t last) {
    std::set<Entry> needed;
    for (std::uint64_t page = first; page <= last; ++page) needed.insert(entry_of(file, page));
    for (const Entry& entry : needed) look_up(entry);
  }

  std::uint64_t hits = 0;
  std::uint64_t misses = 0;

 private:
  Entry entry_of(std::size_t file, std::uint64_t page) const {
    if (!has_ranges_) return {file, page, page};
    const auto& places = places_.at(file);
    const auto goes_on = [&](std::uint64_t before) {
      return places.at(before) && places.at(before + 1) &&
             *places.at(before) + 1 == *places.at(before + 1);
    };
    std::uint64_t from = page;
    std::uint64_t to = page;
    while (from > 0 && goes_on(from - 1)) --from;
    while (to + 1 < kFilePages && goes_on(to)) ++to;
    return {file, from, to};
  }
  void look_up(const Entry& entry) {
    const auto known = std::find(used_.begin(), used_.end(), entry);
    ++(known != used_.end() ? hits : misses);
    if (known != used_.end()) used_.erase(known);
    used_.push_front(entry);
    if (used_.size() > cached_) used_.pop_back();
  }

  bool has_ranges_;
  std::size_t cached_;
  std::array<std::array<std::optional<std::uint64_t>, kFilePages>, kFiles> places_;
  std::list<Entry> used_;
};

class NicTrace {
 public:
  NicTrace(std::mt19937_64& random, bool has_ranges, std::uint32_t cached)
      : random_(random),
        has_ranges_(has_ranges),
        profile_(with(has_ranges, cached)),
        platform_(profile_, 1),
        region_(platform_.local_node(0)->create_region("files", kRegionPages * kPage,
                                                       pmem::Medium::pm)),
        nic_(profile_),
        oracle_(has_ranges, cached) {
    for (std::size_t i = 0; i < kFiles; ++i) {
      files_.push_back(nic_.add(0, *region_, fabric::ExtentTable(), Access::remote_read));
    }
  }

  void step() {
    const std::size_t file = below(kFiles);
    const std::uint64_t first = below(kFilePages);
    const std::uint64_t count = 1 + below(std::min<std::uint64_t>(6, kFilePages - first));
    switch (below(8)) {
      case 0: {
        // Often where it adjoins what is there already.
        const std::uint64_t place = below(2) == 0 ? first : below(kRegionPages - count);
        const Extent extent{first * kPage, place * kPage, count * kPage};
        EXPECT_EQ(nic_.map(files_[file], extent), has_ranges_ ? 1 : count);
        oracle_.change(file, first, count, place);
        break;
      }
      case 1:
        nic_.unmap(files_[file], first * kPage, count * kPage);
        oracle_.change(file, first, count, std::nullopt);
        break;
      default:
        access(file, first * kPage + below(kPage), (first + count - 1) * kPage + below(kPage));
    }
    EXPECT_EQ(nic_.translations->hits(), oracle_.hits);
    EXPECT_EQ(nic_.translations->misses(), oracle_.misses);
  }
  const NicOracle& oracle() const { return oracle_; }

 private:
  // One set, so that the cached entries are those that were used last.
  static Profile with(bool has_ranges, std::uint32_t cached) {
    Profile profile = perdura::test::erda_testbed();
    profile.translation = TranslationProfile{.page = has_ranges ? 0 : kPage,
                                             .cache_entries = cached,
                                             .cache_ways = cached,
                                             .miss = Microseconds(1),
                                             .misses_under_way = 1};
    return profile;
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  void access(std::size_t file, Bytes from, Bytes last) {
    if (last < from) std::swap(from, last);
    const fabric::WorkRequest request{.opcode = fabric::Opcode::read,
                                      .remote = {files_[file].key, from}};
    const Bytes length = last - from + 1;
    const auto* const memory = nic_.find(0, request.remote, length, Access::remote_read, pieces_);
    const bool is_there = oracle_.is_there(file, from / kPage, last / kPage);
    EXPECT_EQ(memory != nullptr, is_there);
    if (memory == nullptr || !is_there) return;
    nic_.find_remote(Time{}, request, *memory, length, pieces_);
    oracle_.access(file, from / kPage, last / kPage);
  }

  std::mt19937_64& random_;
  bool has_ranges_;
  Profile profile_;
  SimPlatform platform_;
  std::unique_ptr<pmem::Region> region_;
  fabric::sim::Nic nic_;
  std::vector<ExtentMap> files_;
  std::vector<fabric::RegionPiece> pieces_;
  NicOracle oracle_;
};

TEST(NicTranslation, LooksUpWhatAModelOfPagesAndListsLooksUp) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE("PERDURA_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  for (int round = 0; round < 40; ++round) {
    NicTrace trace(random, round % 2 == 0, static_cast<std::uint32_t>(1 + random() % 12));
    for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) trace.step();
    hits += trace.oracle().hits;
    misses += trace.oracle().misses;
  }
  EXPECT_GT(hits, 1000U);
  EXPECT_GT(misses, 1000U);
}

}  // namespace
}  // namespace perdura::sim
