#include "bench/log/log_parameters.h"

#include "bench/server_parameters.h"
#include "bench/ycsb/workload_parameters.h"

namespace perdura::bench {
namespace {

constexpr Parameter kPoints[] = {
    {.name = "operations", .type = Count{1, kLargest}, .what = "records appended and measured"},
    {.name = "warmup",
     .type = Count{0, kLargest},
     .usual = 0,
     .what = "records appended before that"},
    {.name = "value_size",
     .type = Count{1, std::uint64_t{1} << 30},
     .identifies = true,
     .unit = "bytes",
     .what = "size of a record"},
    {.name = "capacity",
     .type = Count{1, std::uint64_t{1} << 30},
     .usual = 4096,
     .what = "records that the log holds until they are applied; it is a ring"},
    kDomain,
    kDdio,
    kReceiveBuffers,
    kTransport,
    kPersistence,
};

}  // namespace

std::span<const Parameter> log_parameters() { return kPoints; }

}  // namespace perdura::bench
