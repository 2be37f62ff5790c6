// Pages of a pool that are mapped before they are used.
#include "platform/pmem/mapped/populate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <thread>

#include "tests/platform/shm/process.h"

namespace perdura::pmem::mapped {
namespace {

// The bytes of a mapping that this process has in its page table.
Bytes mapped_bytes(const Mapping& mapping) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(mapping.data());
  bool here = false;
  Bytes sum = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    Bytes kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      here = begin <= wanted && wanted < end;
    } else if (here && std::sscanf(line.c_str(), "Rss: %lu kB", &kib) == 1) {
      sum += kib * KiB;
    }
  }
  return sum;
}

class Populate : public testing::Test {
 protected:
  shm_test::TemporaryDirectory directory_;
  PoolFile pool_ = create_pool_file(directory_.path() + "/pool", 40 * MiB, Allocation::now);
};

TEST_F(Populate, AllPagesAreMappedAndKeepWhatTheyHold) {
  pool_.mapping->data()[5 * MiB] = std::byte{7};
  ASSERT_LT(mapped_bytes(*pool_.mapping), 40 * MiB);
  populate(pool_, {});
  EXPECT_EQ(mapped_bytes(*pool_.mapping), 40 * MiB);
  EXPECT_EQ(pool_.mapping->data()[5 * MiB], std::byte{7});
}

TEST_F(Populate, StopsWhenItIsAskedTo) {
  const Bytes before = mapped_bytes(*pool_.mapping);
  std::jthread thread([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
    populate(pool_, stop);
  });
  thread.request_stop();
  thread.join();
  EXPECT_EQ(mapped_bytes(*pool_.mapping), before);
}

}  // namespace
}  // namespace perdura::pmem::mapped
