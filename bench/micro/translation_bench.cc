// Measures look-ups of random pages in tables of translations: in the b-tree of ranges, in a sorted
// array by std::upper_bound, which is the shortest program for the same, and in the flat table of
// pages. The argument is the number of ranges, each of one to eight pages with holes between them. A
// look-up at a million ranges should take at most three times as long as in the sorted array. Then
// the pin-down cache, of 4,096 entries and 4 ways.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "platform/fabric/translation/pin_down_cache.h"
#include "platform/fabric/translation/range_mtt.h"

namespace perdura::bench::micro {
namespace {

using fabric::RangeEntry;

std::vector<RangeEntry> some_ranges(std::int64_t count) {
  std::mt19937_64 random(1);
  std::vector<RangeEntry> all;
  std::uint32_t next = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto pages = static_cast<std::uint32_t>(1 + random() % 8);
    all.push_back({next, pages, random()});
    next += pages + static_cast<std::uint32_t>(1 + random() % 8);
  }
  return all;
}

// Drawn before, so that drawing is not measured.
std::vector<std::uint32_t> some_pages(const std::vector<RangeEntry>& ranges) {
  std::mt19937_64 random(2);
  std::vector<std::uint32_t> pages(1 << 20);
  for (std::uint32_t& page : pages) {
    const RangeEntry& range = ranges[random() % ranges.size()];
    page = range.base + static_cast<std::uint32_t>(random() % range.pages);
  }
  return pages;
}

template <class LookUp>
void look_up(benchmark::State& state, const std::vector<std::uint32_t>& pages, LookUp each) {
  std::size_t i = 0;
  for (auto unused : state) {
    benchmark::DoNotOptimize(each(pages[i++ & (pages.size() - 1)]));
  }
  state.SetItemsProcessed(state.iterations());
}

void range_mtt(benchmark::State& state) {
  std::vector<RangeEntry> ranges = some_ranges(state.range(0));
  const std::vector<std::uint32_t> pages = some_pages(ranges);
  std::shuffle(ranges.begin(), ranges.end(), std::mt19937_64(3));
  fabric::RangeMtt table;
  for (const RangeEntry& range : ranges) table.map(range);
  look_up(state, pages, [&](std::uint32_t page) { return table.find(page); });
  state.counters["height"] = table.height();
}

void sorted_array(benchmark::State& state) {
  const std::vector<RangeEntry> ranges = some_ranges(state.range(0));
  look_up(state, some_pages(ranges), [&](std::uint32_t page) {
    const auto after = std::upper_bound(
        ranges.begin(), ranges.end(), page,
        [](std::uint32_t wanted, const RangeEntry& range) { return wanted < range.base; });
    return *(after - 1);
  });
}

void flat_mtt(benchmark::State& state) {
  const std::vector<RangeEntry> ranges = some_ranges(state.range(0));
  fabric::FlatMtt table;
  for (const RangeEntry& range : ranges) table.map(range);
  look_up(state, some_pages(ranges), [&](std::uint32_t page) { return table.find(page); });
}

void pin_down_cache(benchmark::State& state) {
  const std::vector<std::uint32_t> pages = some_pages(some_ranges(state.range(0)));
  fabric::PinDownCache cache(4096, 4);
  look_up(state, pages, [&](std::uint32_t page) { return cache.access({1, page}); });
}

BENCHMARK(range_mtt)->Arg(1000)->Arg(1000000);
BENCHMARK(sorted_array)->Arg(1000)->Arg(1000000);
BENCHMARK(flat_mtt)->Arg(1000)->Arg(1000000);
BENCHMARK(pin_down_cache)->Arg(1000)->Arg(1000000);

}  // namespace
}  // namespace perdura::bench::micro
