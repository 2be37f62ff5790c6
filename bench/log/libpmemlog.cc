#include "bench/log/libpmemlog_target.h"

namespace perdura::bench {
namespace {

constexpr Parameter kFile[] = {
    {.name = "path",
     .type = Name{},
     .usual = "/dev/shm",
     .what = "directory of the log's file, of whatever file system is mounted there"},
};

}  // namespace

const services::SystemInfo kLibpmemlog{
    .name = "libpmemlog",
    .title = "libpmemlog",
    .paper = "libpmemlog of the Persistent Memory Development Kit",
    .guarantee = "appended records survive, if the file is in persistent memory or on a disk",
    .level = services::GuaranteeLevel::durable,
    .parameters = kFile,
};

}  // namespace perdura::bench
