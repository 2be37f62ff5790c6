#include "bench/objects/objects_parameters.h"

#include <array>
#include <string_view>

#include "bench/objects/objects_workload.h"
#include "bench/server_parameters.h"
#include "bench/ycsb/workload_parameters.h"

namespace perdura::bench {
namespace {

constexpr std::array<std::string_view, 2> kPools{"own", "shared"};

constexpr Parameter kParameters[] = {
    {.name = "workload",
     .type = OneOf{kObjectWorkloads},
     .identifies = true,
     .what = "the operation that is measured; mixed: puts and gets in equal parts"},
    {.name = "records",
     .type = Count{1, kLargest},
     .identifies = true,
     .what = "records of each pool, loaded before anything is measured and used at random"},
    kOperations,
    kWarmup,
    kKeySize,
    kValueSize,
    {.name = "part_size",
     .type = Count{1, std::uint64_t{1} << 30},
     .usual = 4096,
     .unit = "bytes",
     .what = "bytes that an operation on a part of a value moves"},
    {.name = "request_size",
     .type = Count{0, std::uint64_t{1} << 16},
     .usual = 8,
     .unit = "bytes",
     .what = "size of a call of an active data object"},
    {.name = "server_threads",
     .type = Count{1, 1024},
     .usual = 1,
     .identifies = true,
     .what = "shards of the server, each a thread with memory of its own"},
    {.name = "clients_per_shard",
     .type = Count{1, 1024},
     .usual = 1,
     .identifies = true,
     .noun = "clients of a shard",
     .title = "Client threads of each shard",
     .what = "client threads of each shard"},
    {.name = "pool",
     .type = OneOf{kPools},
     .usual = "own",
     .identifies = true,
     .noun = "pool",
     .title = "Pool",
     .what = "each client has a pool of its own, or the clients of a shard share one"},
    {.name = "client_nodes", .type = Count{1, 65535}, .what = "nodes that have clients"},
    {.name = "queue_depth",
     .type = Count{1, 4096},
     .usual = 1,
     .identifies = true,
     .what = "most operations under way per client thread"},
    kDdio,
};

}  // namespace

std::span<const Parameter> objects_parameters() { return kParameters; }

}  // namespace perdura::bench
