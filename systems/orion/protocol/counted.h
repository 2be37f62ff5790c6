// The counters of Orion's parts: events, which explorations have to meet, and metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "services/event.h"
#include "services/metric.h"

namespace perdura::systems::orion {

// The order is that of kEvents.
enum class Counted : std::uint8_t {
  log_pages,
  fast_collections,
  thorough_collections,
  journaled,
  redone,
  orphans,
  chunks,
  extensions,
  rebuilds,
};
inline constexpr std::size_t kEventCount = 9;

inline constexpr std::array<services::Event, kEventCount> kEvents{{
    {"log pages"},
    {"fast collections"},
    {"thorough collections", false, true},
    {"journaled operations"},
    {"operations redone from journals", true},
    {"orphans reclaimed", true, true},
    {"chunks delegated"},
    {"extensions of a client's log"},
    {"rebuilds of a client's log"},
}};

// The order is that of kSessionMetrics.
enum class Measured : std::uint8_t {
  tail_reads,
  log_reads,
  commits,
  rpcs,
  page_reads,
  page_writes,
  cache_hits,
  extensions,
  rebuilds,
  repetitions,
  late_reads,
  in_tail_reads,
  in_log_reads,
  in_commits,
  in_rpcs,
  in_page_reads,
  in_page_writes,
};
inline constexpr std::size_t kMeasuredCount = 17;

inline constexpr std::array<services::Metric, kMeasuredCount> kSessionMetrics{{
    {"tail_reads_per_op", "READs of tails", "READs of tails per operation"},
    {"log_reads_per_op", "READs of logs", "READs of inodes and logs per operation"},
    {"commits_per_op", "log commits", "Log commits per operation"},
    {"rpcs_per_op", "RPCs", "RPCs per operation"},
    {"page_reads_per_op", "READs of pages", "READs of data pages per operation"},
    {"page_writes_per_op", "WRITEs of pages", "WRITEs of data pages per operation"},
    {"cache_hits_per_op", "cache hits", "Data pages found in the cache per operation"},
    {"extensions_per_op", "log extensions", "Extensions of client logs per operation"},
    {"rebuilds_per_op", "log rebuilds", "Rebuilds of client logs per operation"},
    {"repetitions_per_op", "repetitions", "Operations executed again"},
    {"late_reads_per_op", "late reads", "READs that took too long per operation"},
    {"tail_read_us_per_op", "time in READs of tails", "Time in READs of tails", "us"},
    {"log_read_us_per_op", "time in READs of logs", "Time in READs of logs", "us"},
    {"commit_us_per_op", "time in log commits", "Time in log commits", "us"},
    {"rpc_us_per_op", "time in RPCs", "Time in RPCs", "us"},
    {"page_read_us_per_op", "time in READs of pages", "Time in READs of pages", "us"},
    {"page_write_us_per_op", "time in writes of pages", "Time in writes of pages", "us"},
}};

// The metrics of servers: Mds::metrics() and Store::metrics().
inline constexpr std::array kServerMetrics{
    services::Metric{"mds_commits", "log commits at the MDS", "Log commits at the MDS"},
    services::Metric{"mds_rpcs", "RPCs at the MDS", "RPCs at the MDS"},
    services::Metric{"mds_conflicts", "commits refused", "Commits after those of others"},
    services::Metric{"mds_forces", "acknowledgments of stores", "Acknowledgments of stores"},
    services::Metric{"forced_pages", "pages forced by stores", "Pages forced by stores"},
    services::Metric{"mds_network_us_per_op", "work of network threads",
                     "Work of network threads per operation", "us"},
    services::Metric{"mds_fs_us_per_op", "work of file-system threads",
                     "Work of file-system threads per operation", "us"},
    services::Metric{"mds_log_pages_per_op", "log pages",
                     "Log pages that logs grew by per operation"},
    services::Metric{"catch_ups", "stores that caught up", "Stores that caught up"},
    services::Metric{"fetched_pages", "pages fetched by stores", "Pages fetched to catch up"},
};

}  // namespace perdura::systems::orion
