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
};
inline constexpr std::size_t kMeasuredCount = 11;

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
    {"repetitions_per_op", "repetitions", "Operations executed again per operation"},
    {"late_reads_per_op", "late reads", "READs that took too long per operation"},
}};

// The metrics of servers: Mds::metrics() and Store::metrics().
inline constexpr std::array kServerMetrics{
    services::Metric{"mds_commits", "log commits at the MDS", "Log commits at the MDS"},
    services::Metric{"mds_rpcs", "RPCs at the MDS", "RPCs at the MDS"},
    services::Metric{"mds_conflicts", "commits refused", "Commits after those of others"},
    services::Metric{"mds_forces", "acknowledgments of stores", "Acknowledgments of stores"},
    services::Metric{"forced_pages", "pages forced by stores", "Pages forced by stores"},
};

}  // namespace perdura::systems::orion
