#include "bench/log/remote_log_parameters.h"

#include <array>
#include <string_view>

#include "bench/server_parameters.h"

namespace perdura::bench {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;  // the largest count

constexpr std::array<std::string_view, 1> kLoads{"closed"};
constexpr std::array<std::string_view, 2> kUpdates{"single", "ordered"};

constexpr Parameter kParameters[] = {
    {.name = "workload",
     .type = Name{},
     .identifies = true,
     .what = "whose values are the records: create-only"},
    {.name = "records",
     .type = Count{0, kLargest},
     .identifies = true,
     .what = "0: a log begins empty"},
    {.name = "operations", .type = Count{1, kLargest}, .what = "records appended and measured"},
    {.name = "warmup",
     .type = Count{0, kLargest},
     .usual = 0,
     .what = "records appended before that"},
    {.name = "key_size",
     .type = Count{1, 65535},
     .identifies = true,
     .unit = "bytes",
     .what = "not used"},
    {.name = "value_size",
     .type = Count{0, std::uint64_t{1} << 30},
     .identifies = true,
     .unit = "bytes",
     .what = "size of a record"},
    {.name = "clients",
     .type = Count{1, 1},
     .usual = 1,
     .identifies = true,
     .what = "a log has one client"},
    {.name = "client_nodes", .type = Count{1, 1}, .usual = 1, .what = "a log has one client"},
    {.name = "queue_depth",
     .type = Count{1, 1},
     .usual = 1,
     .identifies = true,
     .what = "one append is under way"},
    {.name = "server_threads",
     .type = Count{1, 1},
     .usual = 1,
     .identifies = true,
     .what = "one thread applies records"},
    {.name = "load",
     .type = OneOf{kLoads},
     .usual = "closed",
     .identifies = true,
     .what = "the client appends in a closed loop"},
    kDomain,
    kDdio,
    kReceiveBuffers,
    kTransport,
    {.name = "update",
     .type = OneOf{kUpdates},
     .identifies = true,
     .what = "a record with its checksum, or a record and then the tail"},
};

constexpr Parameter kMethodParameters[] = {
    {.name = "read_for_flush",
     .type = Flag{},
     .usual = false,
     .what = "emulates FLUSH by READ also where the device has FLUSH (section 3.4)"},
    {.name = "receive_buffers",
     .type = Count{1, 1 << 16},
     .usual = 64,
     .what = "receive buffers of the server"},
    {.name = "receive_buffers_in_pm",
     .type = Flag{},
     .what = "where they are; else as the point says, else in DRAM"},
    {.name = "slots",
     .type = Count{1, std::uint64_t{1} << 30},
     .usual = 4096,
     .what = "records that the log holds; it is a ring"},
    {.name = "collect_us",
     .type = Count{1, 1'000'000},
     .usual = 20,
     .unit = "us",
     .what = "how often the server looks for records to apply"},
};

}  // namespace

std::span<const Parameter> remote_log_parameters() { return kParameters; }
std::span<const Parameter> method_parameters() { return kMethodParameters; }

}  // namespace perdura::bench
