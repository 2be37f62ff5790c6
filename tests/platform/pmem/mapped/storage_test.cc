// The guarantees of storage that persistent memory is mapped from. Tests on real DAX need
// PERDURA_TEST_FSDAX, a directory of a DAX file system, and PERDURA_TEST_DEVDAX, a DAX device that
// may be overwritten.
#include "platform/pmem/mapped/storage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "platform/base/error.h"
#include "platform/pmem/instructions.h"
#include "platform/pmem/mapped/dax_device.h"
#include "platform/pmem/mapped/dax_memory.h"
#include "platform/pmem/mapped/pool_file.h"
#include "platform/shm/shm_platform.h"
#include "tests/platform/shm/process.h"

namespace perdura::pmem::mapped {
namespace {

TEST(StorageOf, SharedMemoryIsTmpfs) {
  const shm_test::TemporaryDirectory directory;
  const Storage storage = storage_of(directory.path());
  EXPECT_EQ(storage.kind, StorageKind::tmpfs);
  EXPECT_EQ(storage.promise, "tmpfs; survives processes, not power");
  EXPECT_EQ(storage.granularity, Granularity::page);
}

TEST(StorageOf, AnythingElseIsAPageCache) {
  const Storage storage = storage_of("/proc");
  EXPECT_EQ(storage.kind, StorageKind::page_cache);
  EXPECT_EQ(storage.promise,
            "page cache of a file system without DAX; survives processes, not power");
}

// libpmem2 may be told that any memory is persistent: what it decides is what is done.
class Forced : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!have_libpmem2()) GTEST_SKIP() << "this build is without libpmem2";
    ::setenv("PMEM2_FORCE_GRANULARITY", GetParam(), 1);
  }
  void TearDown() override { ::unsetenv("PMEM2_FORCE_GRANULARITY"); }
  shm_test::TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Granularities, Forced, testing::Values("BYTE", "CACHE_LINE", "PAGE"),
                         [](const auto& name) { return std::string(name.param); });

TEST_P(Forced, MemoryIsFlushedOrNotAndCountedAlike) {
  ShmOptions options;
  options.pm_directory = directory_.path();
  ShmPlatform platform(options);
  auto region = platform.local_node(0)->create_region("a", 4096, Medium::pm);
  const Writes before = thread_write_meter().writes();
  region->store(0, 5);
  region->persist(0, 8);
  EXPECT_EQ(thread_write_meter().writes().local_store.flushes, before.local_store.flushes + 1);
  EXPECT_EQ(thread_write_meter().writes().local_store.fences, before.local_store.fences + 1);
  // The emulated latency is that of flushes that are executed.
  set_write_latency(Milliseconds(1));
  const auto begun = std::chrono::steady_clock::now();
  region->flush(0, 64 * 20);
  const auto duration = std::chrono::steady_clock::now() - begun;
  set_write_latency(Nanoseconds(0));
  if (std::string_view(GetParam()) == "BYTE") {
    EXPECT_LT(duration, Milliseconds(20));
  } else {
    EXPECT_GE(duration, Milliseconds(20));
  }
}

TEST_P(Forced, TmpfsStaysTmpfsInWords) {
  const Storage storage = storage_of(directory_.path());
  EXPECT_EQ(storage.kind, StorageKind::tmpfs);
  EXPECT_EQ(storage.promise,
            "tmpfs; survives processes, not power (PMEM2_FORCE_GRANULARITY is set)");
  EXPECT_EQ(to_string(storage.granularity), std::string_view(GetParam()) == "BYTE" ? "byte"
                                            : std::string_view(GetParam()) == "CACHE_LINE"
                                                ? "cache line"
                                                : "page");
}

// --- on real DAX ---------------------------------------------------------------------------------

// A device promises durability only if its memory is known to be persistent.
TEST(Storage, ADeviceOfOtherMemoryPromisesNothing) {
  const std::string size = "device DAX of 4096 bytes, alignment 4096";
  const auto promise = [&](std::optional<bool> persistent) {
    const Storage storage = storage_on_device({persistent, "why"}, Granularity::cache_line, size);
    EXPECT_EQ(storage.kind, StorageKind::device_dax);
    EXPECT_EQ(storage.persistent, persistent);
    return storage.promise;
  };
  EXPECT_EQ(promise(true), size + "; a flushed line is durable");
  EXPECT_EQ(promise(false), size + "; survives processes, not power: why");
  EXPECT_EQ(promise(std::nullopt),
            size + "; it is not known whether it survives a power failure: why");
}

class OnDax : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* const value = std::getenv(GetParam());
    if (value == nullptr) GTEST_SKIP() << "no real DAX: " << GetParam() << " is not set";
    if (!have_libpmem2()) GTEST_SKIP() << "this build is without libpmem2";
    path_ = value;
  }
  std::string below(const std::string& name) const { return path_ + "/perdura-test/" + name; }
  bool is_device() const { return device_path(path_).has_value(); }

  std::string path_;
};

INSTANTIATE_TEST_SUITE_P(Paths, OnDax, testing::Values("PERDURA_TEST_FSDAX", "PERDURA_TEST_DEVDAX"),
                         [](const auto& name) { return std::string(name.param + 13); });

TEST_P(OnDax, SaysWhatItPromises) {
  const Storage storage = storage_of(path_);
  RecordProperty("promise", storage.promise);
  EXPECT_EQ(storage.kind, is_device() ? StorageKind::device_dax : StorageKind::dax_file_system);
  EXPECT_TRUE(storage.granularity == Granularity::byte ||
              storage.granularity == Granularity::cache_line);
  EXPECT_TRUE(storage.promise.starts_with(is_device() ? "device DAX of "
                                                      : "file-system DAX with MAP_SYNC; "))
      << storage.promise;
}

TEST_P(OnDax, KeepsPoolsUnderTheirNames) {
  create_pool_directory(below(""));
  remove_pool_file(below("pool"));
  EXPECT_FALSE(open_pool_file(below("pool")).has_value());
  {
    const PoolFile pool = create_pool_file(below("pool"), 3'000'000, Allocation::now);
    EXPECT_EQ(pool.mapping->size(), 3'000'000U);
    EXPECT_EQ(pool.mapping->data()[2'999'999], std::byte{0});
    pool.mapping->data()[2'999'999] = std::byte{9};
    EXPECT_THROW(create_pool_file(below("pool"), 10, Allocation::now), UsageError);
  }
  EXPECT_EQ(open_pool_file(below("pool"))->mapping->data()[2'999'999], std::byte{9});
  EXPECT_THROW(create_pool_file(below("huge"), 1ULL << 40, Allocation::now), UsageError);
  remove_pool_directory(path_ + "/perdura-test");
  EXPECT_FALSE(open_pool_file(below("pool")).has_value());
}

TEST_P(OnDax, FlushesDeeply) {
  create_pool_directory(below(""));
  const PoolFile pool = create_pool_file(below("deep"), 4096, Allocation::now);
  const File file(::open(is_device() ? path_.c_str() : below("deep").c_str(), O_RDWR));
  const Extent extent{0, is_device() ? device_geometry(file.get(), path_).alignment : 4096};
  EXPECT_EQ(deep_flush(map_persistent(file.get(), extent, path_)), "");
  remove_pool_directory(path_ + "/perdura-test");
}

TEST_P(OnDax, HasNoBadBlocks) {
  create_pool_directory(below(""));
  static_cast<void>(create_pool_file(below("good"), 4096, Allocation::now));
  const File file(::open(is_device() ? path_.c_str() : below("good").c_str(), O_RDWR));
  const BadBlocks found = bad_blocks_of(file.get());
  EXPECT_TRUE(found.extents.empty());
  EXPECT_EQ(found.unknown, "");
  remove_pool_directory(path_ + "/perdura-test");
}

// What a process made durable is there when it was killed, and its node's other regions are not in
// the way.
TEST_P(OnDax, KeepsTheRegionsOfAKilledNode) {
  remove_pool_directory(path_ + "/perdura-test");
  ShmOptions options;
  options.pm_directory = path_ + "/perdura-test";
  shm_test::Process victim([&](const shm_test::Process::Voice& voice) {
    ShmPlatform platform(options);
    auto region = platform.local_node(0)->create_region("pool", 5000, Medium::pm);
    region->store(4992, 77);
    region->persist(4992, 8);
    voice.say('p');
    ::pause();
  });
  ASSERT_TRUE(victim.hears('p'));
  victim.kill();
  ShmPlatform platform(options);
  const auto region = platform.local_node(0)->open_region("pool");
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->size(), 5000U);
  EXPECT_EQ(region->load(4992), 77U);
  remove_pool_directory(path_ + "/perdura-test");
}

}  // namespace
}  // namespace perdura::pmem::mapped
