// What a view of a region refuses; what it does is tested on every platform (conformance).
#include "platform/pmem/view.h"

#include <gtest/gtest.h>

#include <array>

namespace perdura::pmem {
namespace {

TEST(View, AnAccessOutsideItEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  alignas(64) std::array<std::byte, 256> memory{};
  Region region("small", Medium::dram, memory.data(), memory.size(), nullptr, nullptr);
  const View<std::uint32_t> view(region, 16, 8);
  EXPECT_DEATH(static_cast<void>(view.load(8)), "elements 8..9 of a view that has 8, from byte 16");
  EXPECT_DEATH(view.store(~std::size_t{0}, 1), "of a view that has 8");
  EXPECT_DEATH(view.fill(7, 2, 1), "elements 7..9");
  EXPECT_DEATH(static_cast<void>(view.subview(4, ~std::size_t{0})), "of a view that has 8");
  EXPECT_DEATH(View<std::uint32_t>(region, 0, 65), "of region small, which has 256");
  EXPECT_DEATH(View<std::uint32_t>(region, 2, 1), "from byte 2");
}

}  // namespace
}  // namespace perdura::pmem
