// Memory of one process, in pages of a size that was chosen.
#include "platform/pmem/mapped/anonymous.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "platform/base/error.h"

namespace perdura::pmem::mapped {
namespace {

// What smaps says of the mapping that holds `address`, in KiB.
long said_of(const std::byte* address, const std::string& what) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t dash = line.find('-');
    if (dash != std::string::npos && line.find(' ') > dash) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      here = std::stoul(line, nullptr, 16) <= at &&
             at < std::stoul(line.substr(dash + 1), nullptr, 16);
    }
    if (here && line.starts_with(what + ':')) return std::stol(line.substr(what.size() + 1));
  }
  return -1;
}

TEST(Anonymous, IsZerosOfTheSizeThatWasAskedFor) {
  for (const Pages pages : {Pages::any, Pages::small}) {
    for (const Bytes size : {Bytes{1}, 4 * KiB, 3 * MiB + 5}) {
      const auto memory = map_anonymous("test", size, pages);
      EXPECT_EQ(memory->size(), size);
      EXPECT_TRUE(std::all_of(memory->data(), memory->data() + size,
                              [](std::byte byte) { return byte == std::byte{0}; }));
    }
  }
}

TEST(Anonymous, SmallPagesStaySmallWhenTouched) {
  const auto memory = map_anonymous("test", 8 * MiB, Pages::small);
  std::fill_n(memory->data(), memory->size(), std::byte{1});
  EXPECT_EQ(said_of(memory->data(), "AnonHugePages"), 0);
}

TEST(Anonymous, HugePagesAreHugeOrRefusedWithTheWayOut) {
  try {
    const auto memory = map_anonymous("test", 5 * MiB, Pages::huge);
    EXPECT_EQ(memory->size(), 5 * MiB);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % (2 * MiB), 0U);
    EXPECT_GE(said_of(memory->data(), "AnonHugePages"), 6 * 1024);
  } catch (const PlatformError& error) {
    EXPECT_NE(std::string(error.what()).find("transparent_hugepage/enabled"), std::string::npos);
  }
}

TEST(Anonymous, MoreThanThereIsIsRefused) {
  EXPECT_THROW(map_anonymous("test", Bytes{1} << 60, Pages::any), PlatformError);
}

TEST(Anonymous, IsUnmappedWhole) {
  const auto mapped = [] {
    std::ifstream statm("/proc/self/statm");
    long pages = 0;
    statm >> pages;
    return pages;
  };
  map_anonymous("test", MiB, Pages::any);
  const long before = mapped();
  for (const Pages pages : {Pages::any, Pages::small, Pages::huge}) {
    try {
      map_anonymous("test", 33 * MiB + 1, pages);
    } catch (const PlatformError&) {  // no huge pages
    }
  }
  EXPECT_LT(mapped() - before, static_cast<long>(MiB / (4 * KiB)));
}

}  // namespace
}  // namespace perdura::pmem::mapped
