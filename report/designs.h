// The summary that a reader wants first: the guarantee and the costs of each design.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/contents.h"

namespace perdura::report {

/// A system, run either as published or so that it keeps what it acknowledges.
struct Design {
  std::string system;
  std::string persistence;  ///< the column of points.csv

  auto operator<=>(const Design&) const = default;
};

/// A cost: a column of points.csv for one kind of operation; "all" stands for any kind.
struct Metric {
  std::string_view column;
  std::string operation;

  auto operator<=>(const Metric&) const = default;
};

/// The value of a cost at one point that all designs of a group have in common, so that no design
/// gains from a point that another one lacks: the middle one of these points, sorted by name.
/// `value` is the mean of the repetitions, in the unit in which the column is shown.
struct MeasuredCost {
  double value = 0;
  /// "workloadc, value_size 64": the values that vary among the points.
  std::string point;
  const ResultFolder* run = nullptr;  ///< the run that measured it
};

/// The servers on which a design was found to have a guarantee.
struct FoundGuarantee {
  std::string guarantee;
  std::vector<std::string> servers;
  bool with_flush = false;  ///< Points::guarantees_with_flush() of one of its rows, or of several
};

struct DesignRow {
  Design design;
  std::string title;                       ///< as shown to people
  std::vector<FoundGuarantee> guarantees;  ///< weakest first
  std::map<Metric, MeasuredCost> costs;    ///< only those that were measured
};

/// Designs that were run alike: in the same runs, on one platform.
struct DesignGroup {
  Origin origin;
  std::vector<const ResultFolder*> runs;
  std::vector<DesignRow> rows;
};

struct Designs {
  std::vector<DesignGroup> groups;
  std::vector<std::string> operations;  ///< those for which some group has latencies
};

/// The cost columns of the table. Mean latencies, which figures show, come with their 99th
/// percentiles and are shown for each kind of operation.
inline constexpr std::string_view kMean = "latency_mean_us";
inline constexpr std::string_view kTail = "latency_p99_us";
inline constexpr std::string_view kOthers[] = {"throughput_ops_s", "nvm_field_bytes_per_op",
                                               "server_cpu_us_per_op"};

/// Collects the designs of all complete runs. Variants of systems are left out, since no paper
/// designed them. If some runs of a group have figures about a cost, only those runs count for it.
Designs gather_designs(const std::vector<ResultFolder>& folders);

/// Divides the designs into tables such that most cells are filled: groups that share a kind of
/// operation, directly or through other groups, are in one table, and groups without latencies in
/// another.
std::vector<Designs> tables_of(const Designs& designs);

/// A row for each design and metric, with its run and point.
std::string designs_csv(const Designs& designs);

}  // namespace perdura::report
