// The table of a registration's extents, against a table that has an entry for each byte.
#include "platform/fabric/extents.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "platform/base/error.h"
#include "tests/support/seed.h"

namespace perdura::fabric {
namespace {

constexpr Bytes kFile = 200;
constexpr Bytes kRegion = 1000;

class Oracle {
 public:
  void map(const Extent& extent) {
    for (Bytes i = 0; i < extent.length; ++i) bytes_[extent.at + i] = extent.offset + i;
  }
  void unmap(Bytes at, Bytes length) {
    for (Bytes i = at; i < std::min(at + length, kFile); ++i) bytes_[i].reset();
  }
  std::optional<Bytes> at(Bytes i) const { return bytes_[i]; }

 private:
  std::array<std::optional<Bytes>, kFile> bytes_{};
};

void expect_same(const ExtentTable& table, const Oracle& oracle) {
  std::vector<RegionPiece> pieces;
  for (Bytes at = 0; at < kFile; ++at) {
    for (const Bytes length : {Bytes{1}, Bytes{7}, Bytes{50}, kFile}) {
      bool mapped = at + length <= kFile;
      bool hole = true;
      for (Bytes i = at; i < std::min(at + length, kFile); ++i) {
        mapped &= oracle.at(i).has_value();
        hole &= !oracle.at(i).has_value();
      }
      ASSERT_EQ(table.find(at, length, pieces), mapped) << at << ", " << length;
      ASSERT_EQ(table.is_hole(at, length), hole) << at << ", " << length;
      pieces.clear();
      table.add_mapped(at, at + length, pieces);
      Bytes in_file = at;
      for (const RegionPiece& piece : pieces) {
        ASSERT_GT(piece.length, 0U);
        const Extent& extent = table.extents()[piece.extent];
        const Bytes begin = extent.at + (piece.offset - extent.offset);
        for (; in_file < begin; ++in_file) ASSERT_FALSE(oracle.at(in_file).has_value());
        for (Bytes k = 0; k < piece.length; ++k) {
          ASSERT_EQ(oracle.at(in_file++), piece.offset + k);
        }
      }
      for (; in_file < std::min(at + length, kFile); ++in_file) {
        ASSERT_FALSE(oracle.at(in_file).has_value());
      }
      if (!mapped) continue;
      table.find(at, length, pieces);
      Bytes i = at;
      for (const RegionPiece& piece : pieces) {
        ASSERT_GT(piece.length, 0U);
        for (Bytes k = 0; k < piece.length; ++k) ASSERT_EQ(oracle.at(i++), piece.offset + k);
      }
      ASSERT_EQ(i, at + length);
    }
  }
}

TEST(Extents, ATableHasWhatWasMappedLast) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](Bytes n) { return random() % n; };
  ExtentTable table;
  Oracle oracle;
  std::size_t most = 0;
  for (int round = 0; round < 300; ++round) {
    const Bytes at = below(kFile);
    const Bytes length = below(std::min<Bytes>(kFile - at, 40) + 1);
    if (below(3) == 0) {
      table.unmap(at, length);
      oracle.unmap(at, length);
    } else {
      const Extent extent{at, below(kRegion - length + 1), length};
      table.map(extent, kRegion);
      oracle.map(extent);
    }
    expect_same(table, oracle);
    for (std::size_t i = 1; i < table.extents().size(); ++i) {
      const Extent& before = table.extents()[i - 1];
      const Extent& extent = table.extents()[i];
      ASSERT_LE(before.at + before.length, extent.at);
      ASSERT_FALSE(before.at + before.length == extent.at &&
                   before.offset + before.length == extent.offset)
          << "extents that adjoin are one";
    }
    most = std::max(most, table.extents().size());
  }
  EXPECT_GT(most, 5U);
}

TEST(Extents, AFileThatGrowsInOnePlaceIsOneExtent) {
  ExtentTable table;
  for (Bytes i = 0; i < 10; ++i) table.map({i * 64, 128 + i * 64, 64}, kRegion);
  ASSERT_EQ(table.extents().size(), 1U);
  EXPECT_EQ(table.extents().front(), (Extent{0, 128, 640}));
}

TEST(Extents, WhatIsNotInTheRegionIsRefusedAndChangesNothing) {
  constexpr Bytes kMost = std::numeric_limits<Bytes>::max();
  ExtentTable table;
  table.map({0, 0, 100}, kRegion);
  for (const Extent& wrong : {Extent{0, kRegion - 9, 10}, Extent{0, kRegion + 1, 0},
                              Extent{0, kMost, 2}, Extent{kMost - 5, 0, 6 + 1}}) {
    EXPECT_THROW(table.map(wrong, kRegion), PlatformError);
    ASSERT_EQ(table.extents().size(), 1U);
    EXPECT_EQ(table.extents().front(), (Extent{0, 0, 100}));
  }
  const std::array overlapping{Extent{0, 0, 10}, Extent{20, 50, 10}, Extent{9, 100, 5}};
  EXPECT_THROW(make_extent_table(overlapping, kRegion), PlatformError);
}

}  // namespace
}  // namespace perdura::fabric
