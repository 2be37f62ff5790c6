// Parameters of drivers whose points have a YCSB workload (bench/ycsb/point_workload.h).
#pragma once

#include <cstdint>

#include "platform/base/parameter.h"

namespace perdura::bench {

// The largest count, and the limit of key numbers.
inline constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;

inline constexpr Parameter kWorkload{
    .name = "workload",
    .type = Name{},
    .identifies = true,
    .what = "workloads/NAME, or the path of any YCSB property file"};
inline constexpr Parameter kRecords{.name = "records",
                                    .type = Count{0, kLargest},
                                    .identifies = true,
                                    .what = "loaded before anything is measured"};
inline constexpr Parameter kOperations{
    .name = "operations", .type = Count{1, kLargest}, .what = "measured, of all clients together"};
inline constexpr Parameter kWarmup{.name = "warmup",
                                   .type = Count{0, kLargest},
                                   .usual = 0,
                                   .what = "operations before that, of all clients together"};
inline constexpr Parameter kKeySize{.name = "key_size",
                                    .type = Count{1, 65535},
                                    .identifies = true,
                                    .unit = "bytes",
                                    .what = "size of a key"};
inline constexpr Parameter kValueSize{.name = "value_size",
                                      .type = Count{0, std::uint64_t{1} << 30},
                                      .identifies = true,
                                      .unit = "bytes",
                                      .what = "size of a value"};

}  // namespace perdura::bench
