// Measures look-ups of random pages in tables of translations: in the b-tree of ranges, in a sorted
// array by std::upper_bound, which is the shortest program for the same, and in the flat table of
// pages. The argument is the number of ranges, each of one to eight pages with holes between them. A
// look-up at a million ranges should take at most three times as long as in the sorted array. Then
// the pin-down cache, of 4,096 entries and 4 ways; and replaying an access of a trace against three of
// them, as `perdura trace replay` does, of which ten millions should take at most ten seconds.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "bench/trace/translation_replay.h"
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

// Accesses to files of one size: reads of 16 KiB, writes of 1,000 bytes anywhere, appends of 500.
std::vector<fs::TraceRecord> some_accesses(std::uint32_t files, Bytes size) {
  std::mt19937_64 random(4);
  std::vector<Bytes> sizes(files, size);
  std::vector<fs::TraceRecord> accesses(1 << 20);
  for (fs::TraceRecord& each : accesses) {
    each.file = static_cast<std::uint32_t>(random() % files);
    const std::uint64_t kind = random() % 5;
    if (kind < 3) {
      each = {fs::TraceKind::read, each.file, random() % (size / 2), 16 * KiB};
    } else if (kind == 3) {
      each = {fs::TraceKind::write, each.file, random() % size, 1000};
    } else {
      each = {fs::TraceKind::append, each.file, sizes[each.file], 500};
      sizes[each.file] += 500;
    }
  }
  return accesses;
}

void replay(benchmark::State& state) {
  constexpr std::uint32_t kFiles = 1000;
  constexpr Bytes kSize = 128 * KiB;
  const std::vector<fs::TraceRecord> accesses = some_accesses(kFiles, kSize);
  std::vector<TranslationReplay> replays;
  for (const TranslationScheme& scheme : usual_schemes(4096, 4)) {
    replays.emplace_back(scheme);
    for (std::uint32_t i = 0; i < kFiles; ++i) replays.back().add_file(kSize);
  }
  std::size_t next = 0;
  for (auto unused : state) {
    const fs::TraceRecord& record = accesses[next++ & (accesses.size() - 1)];
    for (TranslationReplay& each : replays) each.access(record);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(range_mtt)->Arg(1000)->Arg(1000000);
BENCHMARK(sorted_array)->Arg(1000)->Arg(1000000);
BENCHMARK(flat_mtt)->Arg(1000)->Arg(1000000);
BENCHMARK(pin_down_cache)->Arg(1000)->Arg(1000000);
BENCHMARK(replay);

}  // namespace
}  // namespace perdura::bench::micro
