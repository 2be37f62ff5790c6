#include "harness/workload/property_names.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace perdura::workload {
namespace {

constexpr auto kKnown = std::to_array<std::string_view>({
    // Used by WorkloadSpec.
    "exponential.frac",
    "exponential.percentile",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "insertcount",
    "insertorder",
    "insertproportion",
    "insertstart",
    "maxscanlength",
    "minfieldlength",
    "minscanlength",
    "operationcount",
    "readmodifywriteproportion",
    "readproportion",
    "recordcount",
    "requestdistribution",
    "scanlengthdistribution",
    "scanproportion",
    "updateproportion",
    "zeropadding",
    // Our extensions.
    "deleteproportion",
    "keyprefix",
    "keysize",
    "zipfianconstant",
    // YCSB's that a run does in another way, and says so (AskedOfYcsb).
    "core_workload_insertion_retry_limit",
    "dotransactions",
    "maxexecutiontime",
    "readallfields",
    "target",
    "threadcount",
    "workload",
    "writeallfields",
    // YCSB's that change nothing of what is run here: the harness has its own systems, checks,
    // measurements and reports.
    "columnfamily",
    "core_workload_insertion_retry_interval",
    "dataintegrity",
    "db",
    "debug",
    "exporter",
    "exportfile",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "hdrhistogram.fileoutput",
    "hdrhistogram.output.path",
    "hdrhistogram.percentiles",
    "histogram.buckets",
    "label",
    "latencytrackederrors",
    "measurement.histogram.verbose",
    "measurement.interval",
    "measurement.raw.no_summary",
    "measurement.raw.output_file",
    "measurement.trackjvm",
    "measurementtype",
    "readallfieldsbyname",
    "reportlatencyforeacherror",
    "status",
    "status.interval",
    "table",
    "timeseries.granularity",
});

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

bool is_known_property(std::string_view key) {
  return std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end();
}

std::string_view closest_known_property(std::string_view key) {
  constexpr std::size_t kStillASlip = 3;
  std::string_view closest;
  std::size_t smallest = kStillASlip + 1;
  for (std::string_view known : kKnown) {
    const std::size_t distance = edit_distance(key, known);
    if (distance < smallest && distance < known.size()) {
      smallest = distance;
      closest = known;
    }
  }
  return closest;
}

}  // namespace perdura::workload
