#include "bench/memory/memory_parameters.h"

#include <array>
#include <string_view>

#include "bench/copies.h"
#include "bench/memory/application_work.h"
#include "bench/memory/failure.h"
#include "bench/server_parameters.h"

namespace perdura::bench {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;  // the largest count

constexpr Parameter kParameters[] = {
    {.name = "workload",
     .type = OneOf{kMemoryWorkloads},
     .identifies = true,
     .what = "inserts into a hash table; if left out, stores at random places are synced"},
    {.name = "region_size",
     .type = Count{4096, kLargest},
     .usual = std::uint64_t{64} << 20,
     .identifies = true,
     .noun = "region size",
     .title = "Region size",
     .unit = "bytes",
     .what = "size of the memory that is replicated"},
    {.name = "sync_size",
     .type = Count{1, std::uint64_t{1} << 30},
     .usual = 4096,
     .identifies = true,
     .noun = "sync size",
     .title = "Sync size",
     .unit = "bytes",
     .what = "size of each range that is stored to and then synced, or around an insert"},
    {.name = "ranges",
     .type = Count{1, 1024},
     .usual = 1,
     .identifies = true,
     .noun = "ranges",
     .title = "Ranges of a sync",
     .what = "ranges of each sync point: 1 is msync, more is gmsync"},
    {.name = "alignment",
     .type = Count{1, std::uint64_t{1} << 30},
     .usual = 4096,
     .unit = "bytes",
     .what = "stores go to random multiples of it"},
    {.name = "operations",
     .type = Count{1, kLargest},
     .what = "sync points or inserts measured, of all threads together"},
    {.name = "warmup",
     .type = Count{0, kLargest},
     .usual = 0,
     .what = "sync points or inserts before that, of all threads together"},
    {.name = "threads",
     .type = Count{1, 1024},
     .usual = 1,
     .identifies = true,
     .noun = "threads",
     .title = "Application threads",
     .what = "threads of the application on the primary; each has a part of the region"},
    kBackups,
    {.name = "failure",
     .type = OneOf{kFailureWords},
     .usual = "none",
     .identifies = true,
     .noun = "failure",
     .title = "Failure",
     .what =
         "which process or node fails when half of the operations are done, and who takes over"},
    kDomain,
    kDdio,
    kReceiveBuffers,
    kTransport,
    kPersistence,
};

}  // namespace

std::span<const Parameter> memory_parameters() { return kParameters; }

}  // namespace perdura::bench
