#include "bench/lmdb/lmdb_parameters.h"

#include "bench/copies.h"
#include "bench/driver/mounted_directory.h"
#include "bench/server_parameters.h"
#include "bench/ycsb/workload_parameters.h"

namespace perdura::bench {
namespace {

constexpr Parameter kParameters[] = {
    kWorkload,
    kRecords,
    kOperations,
    kWarmup,
    kKeySize,
    kValueSize,
    {.name = "clients",
     .type = Count{1, 64},
     .usual = 1,
     .identifies = true,
     .what = "threads of the program"},
    kBackups,
    {.name = "map_size",
     .type = Count{std::uint64_t{1} << 20, kLargest},
     .unit = "bytes",
     .what = "size of the database's file, which is replicated; else what the records may take"},
    {.name = "write_map",
     .type = Flag{},
     .usual = true,
     .identifies = true,
     .noun = "MDB_WRITEMAP",
     .title = "MDB_WRITEMAP",
     .what = "whether LMDB stores to its file where it is mapped, or calls pwrite"},
    kDomain,
    kDdio,
    kPersistence,
    kFileSystem,
};

}  // namespace

std::span<const Parameter> lmdb_parameters() { return kParameters; }

}  // namespace perdura::bench
