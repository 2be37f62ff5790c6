// The operations that a thread of an application repeats: syncs of stores at random places, or
// inserts into a hash table (the parameter `workload`).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "harness/run/point.h"
#include "services/memory/memory.h"

namespace perdura::bench {

inline const harness::OperationKind kInsert{1, "insert"};

inline constexpr std::string_view kHashSequential = "hash-sequential";
inline constexpr std::string_view kHashRandom = "hash-random";
inline constexpr std::array kMemoryWorkloads{kHashSequential, kHashRandom};

class ApplicationWork {
 public:
  virtual ~ApplicationWork() = default;
  virtual const harness::OperationKind& kind() const = 0;
  // Prepares the next operation; its time does not count.
  virtual void prepare(pmem::Region& region) = 0;
  virtual Task<tl::expected<void, services::SyncError>> perform(services::MappedMemory& memory) = 0;
};

// Makes the work of one of a point's threads.
std::unique_ptr<ApplicationWork> work_of(const harness::Point& point, std::uint64_t threads,
                                         std::uint64_t index);

// Throws UsageError if a point's hash tables, if it has any, have no room, or if it says what has
// no effect on them.
void check_hash_tables(const harness::PointSettings& settings);

}  // namespace perdura::bench
