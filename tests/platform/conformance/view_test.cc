// A region as a program's memory.
#include "platform/pmem/view.h"

#include <algorithm>
#include <numeric>

#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using pmem::Medium;
using pmem::View;

namespace {

struct Point {
  std::uint32_t x;
  std::uint16_t y;
  bool operator==(const Point&) const = default;
};

void with_region(const Case& on, Medium medium,
                 const std::function<void(Node&, pmem::Region&)>& body) {
  const auto platform = on.make({.node_count = 1});
  platform->start(0, 1, on.mode, [&](Thread& thread) -> Task<> {
    // Not of whole words.
    const auto region = thread.node.create_region("mapped", 4099, medium);
    body(thread.node, *region);
    co_return;
  });
  platform->run();
}

// Every element is stored and loaded by itself, and touches no other.
template <class T>
void expect_elements(pmem::Region& region, Bytes offset, const std::function<T(std::size_t)>& nth) {
  const std::size_t count = (region.size() - offset) / sizeof(T);
  const View<T> view(region, offset, count);
  ASSERT_EQ(view.size(), count);
  for (std::size_t i = 0; i < count; ++i) view[i] = nth(i);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(view.load(i), nth(i));
    EXPECT_EQ(T(view[i]), nth(i));
    EXPECT_EQ(region.read_object<T>(view.offset_of(i)), nth(i)) << "it is in the region";
  }
  view[0] = view[count - 1];
  EXPECT_EQ(view.load(0), nth(count - 1));
  std::size_t seen = 0;
  for (const T element : view.subview(1, count - 1)) EXPECT_EQ(element, nth(++seen));
  EXPECT_EQ(seen, count - 1);
}

}  // namespace

TEST_P(PmemRegion, AViewHoldsElementsOfAnySize) {
  for (const Medium medium : {Medium::pm, Medium::dram}) {
    with_region(GetParam(), medium, [](Node&, pmem::Region& region) {
      expect_elements<std::uint8_t>(region, 1, [](std::size_t i) { return std::uint8_t(i * 7); });
      expect_elements<std::uint16_t>(region, 2, [](std::size_t i) { return std::uint16_t(i * 7); });
      expect_elements<float>(region, 4, [](std::size_t i) { return float(i) / 2; });
      expect_elements<std::uint64_t>(region, 8, [](std::size_t i) { return i << 40 | i; });
      expect_elements<Point>(region, 12, [](std::size_t i) {
        return Point{std::uint32_t(i * 1000), std::uint16_t(i)};
      });
    });
  }
}

TEST_P(PmemRegion, AViewCopiesRangesInAndOut) {
  with_region(GetParam(), Medium::pm, [](Node&, pmem::Region& region) {
    const View<std::uint16_t> view(region);
    EXPECT_EQ(view.size(), 2049U);
    std::vector<std::uint16_t> values(500);
    std::iota(values.begin(), values.end(), std::uint16_t{1});
    view.write(3, values);
    std::vector<std::uint16_t> back(values.size());
    view.read(3, back);
    EXPECT_EQ(back, values);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), view.subview(3, 500).begin()));
    EXPECT_EQ(view.load(2), 0);
    EXPECT_EQ(view.load(503), 0);
    for (const std::size_t count : {0, 1, 511, 512, 513, 2000}) {
      view.fill(0, view.size(), 0);
      view.fill(7, count, 0xABCD);
      EXPECT_EQ(std::count(view.begin(), view.end(), 0xABCD), static_cast<long>(count));
      EXPECT_EQ(view.load(6), 0);
      EXPECT_EQ(view.load(7 + count), 0);
    }
  });
}

// The same numbers as by the region itself.
TEST_P(PmemAccounting, WhatIsWrittenThroughAViewIsCounted) {
  with_region(GetParam(), Medium::pm, [](Node& node, pmem::Region& region) {
    auto taken = [&, before = node.pm_writes()]() mutable {
      pmem::Writes difference = node.pm_writes();
      const pmem::Writes now = difference;
      difference -= before;
      before = now;
      return difference.local_store;
    };
    const View<std::uint64_t> words(region, 0, 64);
    words[2] = 0xFF;
    pmem::WriteCounts counts = taken();
    EXPECT_EQ(counts.stores, 1U);
    EXPECT_EQ(counts.bytes_issued, 8U);
    EXPECT_EQ(counts.bytes_programmed, 1U);
    EXPECT_EQ(counts.bits_flipped, 8U);
    const View<std::uint16_t> halves(region, 1024, 64);
    halves[5] = 0x0101;
    counts = taken();
    EXPECT_EQ(counts.stores, 1U);
    EXPECT_EQ(counts.bytes_issued, 2U);
    EXPECT_EQ(counts.bits_flipped, 2U);
    halves.fill(0, 64, 0x0101);
    counts = taken();
    EXPECT_EQ(counts.bytes_issued, 128U);
    EXPECT_EQ(counts.bytes_programmed, 126U);
    halves.persist(0, 64);
    counts = taken();
    EXPECT_EQ(counts.flushes, 2U);
    EXPECT_EQ(counts.fences, 1U);
    EXPECT_EQ(counts.lines, 2U);
    EXPECT_EQ(std::accumulate(words.begin(), words.end(), std::uint64_t{0}), 0xFFU);
    EXPECT_EQ(taken(), pmem::WriteCounts{}) << "loads write nothing";
  });
}

}  // namespace perdura::conformance
