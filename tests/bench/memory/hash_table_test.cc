// Inserts into a hash table in replicated memory: what has been synced is a table with all entries
// at every moment, points measure each insert and leave equal copies, and what cannot be is
// refused.
#include "bench/memory/hash_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#if PERDURA_HAS_SPARSEHASH
#include <sparsehash/dense_hash_map>
#endif

#include "bench/memory/application_work.h"
#include "bench/memory/sync_points.h"
#include "platform/base/random.h"
#include "platform/sim/sim_platform.h"
#include "tests/bench/memory/points.h"
#include "tests/support/platforms.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Verdict;
using services::MemoryRange;
using services::SyncError;

constexpr Bytes kBegin = 8 * KiB;  // of a table, as of a second thread
constexpr Bytes kSize = 1 * MiB;

using Entries = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// The entries of the table in these bytes, one for each bucket.
Entries buckets_in(std::span<const std::byte> bytes) {
  const auto word = [&](Bytes offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, kWord);
    return value;
  };
  Entries buckets(word(kBegin));
  Bytes place = kBegin + buckets.size() * HashTable::kEntry;
  for (auto& [key, value] : buckets) {
    key = word(place);
    value = word(place + kWord);
    place += HashTable::kEntry;
  }
  return buckets;
}

// A region with a copy that gets what is synced, whole sync points at a time.
class Copied final : public services::MappedMemory {
 public:
  explicit Copied(Node& node)
      : region_(node.create_region("table", kSize, pmem::Medium::pm)), copy_(kSize) {}
  pmem::Region& region() override { return *region_; }
  Task<tl::expected<void, SyncError>> sync(std::span<const MemoryRange> ranges) override {
    for (const MemoryRange& range : ranges) {
      region_->read(range.offset, std::span(copy_).subspan(range.offset, range.length));
    }
    if (on_sync) on_sync();
    co_return tl::expected<void, SyncError>{};
  }
  Task<> settle() override { co_return; }

  Entries synced_buckets() const { return buckets_in(copy_); }
  std::function<void()> on_sync;

 private:
  std::unique_ptr<pmem::Region> region_;
  std::vector<std::byte> copy_;
};

// The synced table of the end. Calls `check` after each sync point, with the synced table and how
// many inserts had ended before.
Entries insert_all(const Entries& entries, Bytes sync_size,
                   const std::function<void(const Entries&, std::uint64_t)>& check = {}) {
  sim::SimPlatform platform(sim::load_profile(perdura::test::profile_path("mojim-pmep")), 1);
  Entries table;
  platform.start(0, 100, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    Copied memory(thread.node);
    std::uint64_t acknowledged = 0;
    if (check) memory.on_sync = [&] { check(memory.synced_buckets(), acknowledged); };
    HashTable inserted(kBegin, sync_size);
    for (const auto& [key, value] : entries) {
      const auto synced = co_await inserted.insert(memory, key, value);
      EXPECT_TRUE(synced.has_value());
      ++acknowledged;
    }
    table = memory.synced_buckets();
  });
  platform.run();
  return table;
}

Entries sequential(std::uint64_t count) {
  Entries entries;
  for (std::uint64_t key = 0; key < count; ++key) entries.emplace_back(key, key * 7 + 1);
  return entries;
}

Entries random_entries(std::uint64_t count) {
  Random random(1);
  Entries entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    entries.emplace_back(random.uniform_below(HashTable::kNoKey), random());
  }
  return entries;
}

// Whatever happens between two sync points, a copy has a table with all that was acknowledged.
TEST(HashTable, WhatHasBeenSyncedIsATableWithAllEntries) {
  for (const Bytes sync_size : {16, 64, 4096}) {
    for (const Entries& entries : {sequential(600), random_entries(600)}) {
      SCOPED_TRACE(fmt::format("sync_size {}, first key {}", sync_size, entries.front().first));
      std::uint64_t syncs = 0;
      insert_all(entries, sync_size, [&](const Entries& table, std::uint64_t acknowledged) {
        ++syncs;
        const std::map<std::uint64_t, std::uint64_t> found(table.begin(), table.end());
        for (std::uint64_t i = 0; i < acknowledged; ++i) {
          const auto& [key, value] = entries[i];
          ASSERT_TRUE(found.contains(key)) << "insert " << i << " is gone";
          ASSERT_EQ(found.at(key), value);
        }
      });
      // It has grown to 32, 64, ..., 2048 buckets, with a sync point more each time.
      EXPECT_EQ(syncs, 600U + 7);
    }
  }
}

TEST(HashTable, AKeyThatIsThereKeepsItsValue) {
  const Entries table = insert_all({{5, 50}, {37, 370}, {5, 51}}, 16);
  ASSERT_EQ(table.size(), 32U);
  EXPECT_EQ(table[5], (std::pair<std::uint64_t, std::uint64_t>{5, 50}));
  EXPECT_EQ(table[6], (std::pair<std::uint64_t, std::uint64_t>{37, 370})) << "the next bucket";
}

TEST(HashTable, FitsIntoTheSizeThatItIsSaidToTake) {
  for (const std::uint64_t count : {1, 16, 17, 32, 33, 1000}) {
    const Entries table = insert_all(sequential(count), 16);
    EXPECT_EQ(HashTable::size_after(count), 2 * table.size() * HashTable::kEntry) << count;
  }
}

#if PERDURA_HAS_SPARSEHASH
TEST(HashTable, PutsEntriesWhereDenseHashMapPutsThem) {
  for (const std::uint64_t count : {1, 16, 17, 40, 5000}) {
    for (const Entries& entries : {sequential(count), random_entries(count)}) {
      SCOPED_TRACE(fmt::format("{} entries, first key {}", count, entries.front().first));
      google::dense_hash_map<std::uint64_t, std::uint64_t> map;
      map.set_empty_key(HashTable::kNoKey);
      for (const auto& [key, value] : entries) map.insert({key, value});
      Entries table = insert_all(entries, 16);
      EXPECT_EQ(table.size(), map.bucket_count());
      std::erase_if(table, [](const auto& entry) { return entry.first == HashTable::kNoKey; });
      EXPECT_EQ(table, Entries(map.begin(), map.end()));
    }
  }
}
#endif

// --- points --------------------------------------------------------------------------------------

constexpr std::string_view kInserts =
    "name = \"x\"\n"
    "driver = \"memory\"\n"
    "[workload]\n"
    "region_size = 131072\n"
    "operations = 300\n"
    "warmup = 21\n"
    "sync_size = 16\n"
    "completion = \"polling\"\n"
    "[matrix]\n"
    "workload = [\"hash-sequential\", \"hash-random\"]\n"
    "system = [\"m-sync\"]\n";

const DriverUnderTest& of_inserts() {
  static const DriverUnderTest one(driver(), kInserts);
  return one;
}

class InsertsOn : public testing::TestWithParam<std::string> {};

TEST_P(InsertsOn, AreMeasuredForEachSystemAndLeaveEqualCopies) {
  // Where threads are real there are more of them than cores.
  const std::string_view completion = GetParam() == "sim" ? "polling" : "event";
  for (const services::MemorySystem& system : systems::memory_systems()) {
    for (const auto& [workload, threads] : {std::pair{kHashSequential, 1}, {kHashRandom, 2}}) {
      const harness::Point point =
          of_inserts()
              .plan({system_is(system.info.name), fmt::format("matrix.workload=[\"{}\"]", workload),
                     fmt::format("workload.threads={}", threads),
                     fmt::format("workload.completion=\"{}\"", completion)})
              .front();
      SCOPED_TRACE(point.label);
      const Measurement result = of_inserts().measure(point, GetParam());
      EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
      EXPECT_EQ(result.kinds.size(), 1U);
      EXPECT_EQ(result.kinds.at(kInsert).operations, 300U);
      EXPECT_EQ(result.kinds.at(kInsert).latency.count(), 300U);
      EXPECT_EQ(result.kinds.at(kInsert).errors, 0U);
      EXPECT_GT(result.elapsed, Picoseconds{});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, InsertsOn, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

// The stores are part of an insert, and so is what it takes to grow: the inserts that do it take
// longest.
TEST(Inserts, TakeLongerThanTheirSyncAndLongestWhereTheTableGrows) {
  const harness::Point point = of_inserts().plan({"workload.sync_size=4096"}).front();
  const measure::Histogram inserts = of_inserts().measure(point, "sim").kinds.at(kInsert).latency;
  const measure::Histogram syncs =
      tested().measure(plan({"workload.sync_size=4096"}).front(), "sim").kinds.at(kSync).latency;
  EXPECT_GT(inserts.percentile(50), syncs.percentile(50));
  EXPECT_GT(inserts.max(), 2 * inserts.percentile(50));
}

TEST(Inserts, AreRefusedWhereTheyHaveNoRoomOrNoMeaning) {
  EXPECT_EQ(of_inserts().refusal({}), "no error");
  EXPECT_NE(of_inserts()
                .refusal({"workload.operations=5000"})
                .find("131072 bytes of it, and a table of 5021 entries takes 524288; raise "
                      "region_size"),
            std::string::npos);
  EXPECT_NE(of_inserts().refusal({"workload.threads=33"}).find("each thread has a part"),
            std::string::npos);
  EXPECT_NE(
      of_inserts().refusal({"workload.ranges=2"}).find("ranges has no effect on the workload"),
      std::string::npos);
  EXPECT_NE(of_inserts()
                .refusal({"workload.alignment=8"})
                .find("alignment has no effect on the workload"),
            std::string::npos);
  for (const char* size : {"8", "48", "8192"}) {
    EXPECT_NE(of_inserts()
                  .refusal({fmt::format("workload.sync_size={}", size)})
                  .find("a power of two up to 4096"),
              std::string::npos)
        << size;
  }
  EXPECT_NE(of_inserts()
                .refusal({"workload.failure=\"mirror-restarts\""})
                .find("a recovery is not measured with the workload hash-sequential"),
            std::string::npos);
  EXPECT_NE(of_inserts().refusal({"matrix.workload=[\"hash\"]"}).find("workload"),
            std::string::npos);
}

}  // namespace
}  // namespace perdura::bench
