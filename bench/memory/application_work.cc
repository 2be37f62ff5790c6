#include "bench/memory/application_work.h"

#include <fmt/format.h>

#include <bit>

#include "bench/memory/hash_table.h"
#include "bench/memory/sync_points.h"
#include "bench/ycsb/workload_spec.h"
#include "platform/base/error.h"

namespace perdura::bench {

using services::MappedMemory;
using services::SyncError;

namespace {

constexpr Bytes kPage = 4 * KiB;

// The part of the region that each thread's table has: whole pages.
Bytes part_of_table(const harness::PointSettings& settings) {
  return settings.number("region_size") / settings.number("threads") / kPage * kPage;
}

class Syncs final : public ApplicationWork {
 public:
  Syncs(const harness::Point& point, std::uint64_t threads, std::uint64_t index)
      : points_(point, threads, index, index) {}

  const harness::OperationKind& kind() const override { return kSync; }
  void prepare(pmem::Region& region) override { ranges_ = points_.store(region); }
  Task<tl::expected<void, SyncError>> perform(MappedMemory& memory) override {
    return memory.sync(ranges_);
  }

 private:
  SyncPoints points_;
  std::span<const services::MemoryRange> ranges_;
};

// Section 3.4.4: the keys are 0, 1, 2, ... or random, and the values are random.
class Inserts final : public ApplicationWork {
 public:
  Inserts(const harness::Point& point, std::uint64_t index)
      : random_(point.seed, index),
        is_sequential_(point.settings.text("workload") == kHashSequential),
        table_(index * part_of_table(point.settings), point.settings.number("sync_size")) {}

  const harness::OperationKind& kind() const override { return kInsert; }
  void prepare(pmem::Region&) override {
    key_ = is_sequential_ ? next_++ : random_.uniform_below(HashTable::kNoKey);
    value_ = random_();
  }
  Task<tl::expected<void, SyncError>> perform(MappedMemory& memory) override {
    return table_.insert(memory, key_, value_);
  }

 private:
  Random random_;
  bool is_sequential_;
  HashTable table_;
  std::uint64_t next_ = 0;
  std::uint64_t key_ = 0;
  std::uint64_t value_ = 0;
};

}  // namespace

std::unique_ptr<ApplicationWork> work_of(const harness::Point& point, std::uint64_t threads,
                                         std::uint64_t index) {
  if (point.settings.given("workload")) return std::make_unique<Inserts>(point, index);
  return std::make_unique<Syncs>(point, threads, index);
}

void check_hash_tables(const harness::PointSettings& settings) {
  if (!settings.given("workload")) return;
  const std::string name = settings.text("workload");
  for (const char* parameter : {"ranges", "alignment"}) {
    if (!settings.given(parameter)) continue;
    throw UsageError(fmt::format("{}: {} has no effect on the workload {}; remove it",
                                 settings.where(parameter), parameter, name));
  }
  if (settings.text("failure") != "none") {
    throw UsageError(fmt::format("{}: a recovery is not measured with the workload {}; remove one",
                                 settings.where("failure"), name));
  }
  const Bytes sync_size = settings.number("sync_size");
  if (!std::has_single_bit(sync_size) || sync_size < HashTable::kEntry || sync_size > kPage) {
    throw UsageError(fmt::format(
        "{}: sync_size = {}: of a hash table an entry of {} bytes is synced, or what is around it: "
        "a power of two up to {}",
        settings.where("sync_size"), sync_size, HashTable::kEntry, kPage));
  }
  const auto threads = static_cast<std::uint32_t>(settings.number("threads"));
  const std::uint64_t inserts =
      ycsb::operations_of_client(settings.number("operations"), 0, threads) +
      ycsb::operations_of_client(settings.number("warmup"), 0, threads);
  const Bytes needed = HashTable::size_after(inserts);
  if (part_of_table(settings) < needed) {
    throw UsageError(fmt::format(
        "{}: each thread has a part of the region, {} bytes of it, and a table of {} entries takes "
        "{}; raise region_size or lower operations",
        settings.where("workload"), part_of_table(settings), inserts, needed));
  }
}

}  // namespace perdura::bench
