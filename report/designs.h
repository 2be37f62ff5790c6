// The summary that a reader wants first: what each design guarantees and what it costs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/contents.h"

namespace perdura::report {

/// A system, and whether it is run as published or so that it keeps what it acknowledges.
struct Design {
  std::string system;
  std::string persistence;  ///< the column of points.csv

  auto operator<=>(const Design&) const = default;
};

/// A column of points.csv for one kind of operation; "all" stands for any.
struct Price {
  std::string_view column;
  std::string operation;

  auto operator<=>(const Price&) const = default;
};

/// A price at one point that all designs of a group have in common, so that no design gains from a
/// point that another one lacks: of those points, in the order of their names, the middle one. The
/// mean of its repetitions, in the unit in which the column is shown.
struct Paid {
  double value = 0;
  std::string point;                  ///< "workloadc, value_size 64": what varies among the points
  const ResultFolder* run = nullptr;  ///< that it is from
};

/// The servers on which a design was found to have a guarantee.
struct Found {
  std::string guarantee;
  std::vector<std::string> servers;
};

struct DesignRow {
  Design design;
  std::string title;              ///< as people read it
  std::vector<Found> guarantees;  ///< the weakest first
  std::map<Price, Paid> prices;   ///< those that were measured
};

/// Designs that were run alike: in the same runs, on one platform.
struct DesignGroup {
  Origin origin;
  std::vector<const ResultFolder*> runs;
  std::vector<DesignRow> rows;
};

struct Designs {
  std::vector<DesignGroup> groups;
  std::vector<std::string> operations;  ///< of which some group has latencies
};

/// The columns of the table, apart from the guarantee: means of latency, which figures show, come
/// with their 99th percentiles and are there for each kind of operation.
inline constexpr std::string_view kMean = "latency_mean_us";
inline constexpr std::string_view kTail = "latency_p99_us";
inline constexpr std::string_view kOthers[] = {"throughput_ops_s", "nvm_field_bytes_per_op",
                                               "server_cpu_us_per_op"};

/// Collects the designs of all complete runs. Variants of systems are left out, since no paper
/// designed them. If some runs of a group have figures about a price, only these runs count for it.
Designs gather_designs(const std::vector<ResultFolder>& folders);

/// Divides the designs into tables whose columns most rows fill: those of groups that share a kind
/// of operation, directly or by way of other groups, and those that have no latencies.
std::vector<Designs> tables_of(const Designs& designs);

/// A row for each design and price, with its run and point.
std::string designs_csv(const Designs& designs);

}  // namespace perdura::report
