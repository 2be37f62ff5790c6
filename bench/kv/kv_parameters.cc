#include "bench/kv/kv_parameters.h"

#include <array>
#include <string_view>

#include "bench/server_parameters.h"
#include "bench/ycsb/workload_parameters.h"

namespace perdura::bench {
namespace {

constexpr std::uint64_t kHour = 3'600'000;  // in milliseconds

constexpr std::array<std::string_view, 3> kLoads{"closed", "fixed", "poisson"};

constexpr Parameter::Need kNeedsWarmup{"warmup", "the most operations before the measured ones"};
constexpr Parameter::Need kNeedsOperations{
    "operations", "the most that may be measured, for which the store is made large enough"};
constexpr Parameter::Need kWindow{"steady_window_ms",
                                  "the time within which the rate is looked at"};
constexpr Parameter::Need kCheckHistory{"check_history", "what records them"};
constexpr Parameter::Need kSlope{"steady_slope", "the part by which the rate may change within it"};

constexpr Parameter kParameters[] = {
    kWorkload,
    kRecords,
    kOperations,
    kWarmup,
    kKeySize,
    kValueSize,
    {.name = "clients",
     .type = Count{1, 65535},
     .usual = 1,
     .identifies = true,
     .what = "client threads over all client nodes"},
    {.name = "client_nodes", .type = Count{1, 65535}, .what = "nodes that have clients"},
    {.name = "queue_depth",
     .type = Count{1, 4096},
     .usual = 1,
     .identifies = true,
     .what = "most operations under way per client thread"},
    {.name = "servers",
     .type = Count{1, 1024},
     .usual = 1,
     .identifies = true,
     .noun = "servers",
     .title = "Servers",
     .what = "nodes that hold the store: each has partitions of its own, or a part of each"},
    {.name = "server_threads",
     .type = Count{1, 1024},
     .usual = 1,
     .identifies = true,
     .what =
         "threads of each server: each serves a partition of its own; in a system with locks, all "
         "serve one"},
    {.name = "resizes",
     .type = Count{0, 32},
     .identifies = true,
     .what = "how often a hash table may be resized"},
    {.name = "load",
     .type = OneOf{kLoads},
     .usual = "closed",
     .identifies = true,
     .what = "a closed loop, or when operations of an open loop are due"},
    {.name = "offered_load",
     .type = Count{1, 1'000'000'000},
     .identifies = true,
     .unit = "op/s",
     .what = "operations due per second in an open loop, all clients together",
     .sets_time = true},
    {.name = "duration_ms",
     .type = Count{1, kHour},
     .unit = "ms",
     .what = "most time that is measured",
     .needs = {kNeedsOperations},
     .sets_time = true},
    {.name = "until_full",
     .type = Flag{},
     .usual = false,
     .what = "measures until the store is out of space, which then is no error"},
    {.name = "ramp_ms",
     .type = Count{1, kHour},
     .unit = "ms",
     .what = "most time before the measured interval",
     .needs = {kNeedsWarmup},
     .sets_time = true},
    {.name = "steady_slope",
     .type = Share{},
     .what = "measures once the rate changes by less than this part",
     .needs = {kWindow, kNeedsWarmup},
     .sets_time = true},
    {.name = "steady_window_ms",
     .type = Count{1, kHour},
     .unit = "ms",
     .what = "within such a window",
     .needs = {kSlope}},
    {.name = "check_history",
     .type = Flag{},
     .usual = false,
     .what = "records all operations and checks them"},
    {.name = "history_folder",
     .type = Name{},
     .usual = "",
     .what = "where each point's recorded operations are kept, a file for each; empty: nowhere",
     .needs = {kCheckHistory}},
    kDomain,
    kDdio,
    kReceiveBuffers,
    kTransport,
    kPersistence,
};

}  // namespace

std::span<const Parameter> kv_parameters() { return kParameters; }

}  // namespace perdura::bench
