#include "bench/ycsb/property_names.h"

#include <algorithm>
#include <array>

#include "platform/base/suggestion.h"

namespace perdura::ycsb {
namespace {

constexpr auto kKnown = std::to_array<std::string_view>({
    // Properties that WorkloadSpec uses.
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
    // Extensions of this project.
    "deleteproportion",
    "keyprefix",
    "keysize",
    "zipfianconstant",
    // Properties of YCSB that a run implements in another way and reports (AskedOfYcsb).
    "core_workload_insertion_retry_limit",
    "dotransactions",
    "maxexecutiontime",
    "readallfields",
    "target",
    "threadcount",
    "workload",
    "writeallfields",
    // Properties of YCSB that have no effect here: the harness has its own systems, checks,
    // measurements and reports.
    "columnfamily",
    "core_workload_insertion_retry_interval",
    "dataintegrity",
    "db",
    "debug",
    "discardscannedrecord",
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
    "scanoptimelimit",
    "status",
    "status.interval",
    "table",
    "timeseries.granularity",
});

constexpr auto kForeign = std::to_array<ForeignProperty>({
    {"field_len_dist", "YCSB-C and YCSB-cpp", "fieldlengthdistribution"},
    {"keylength", "offsprings of YCSB-C", "keysize"},
    {"zipfian_const", "YCSB-cpp", "zipfianconstant"},
});

}  // namespace

const ForeignProperty* foreign_property(std::string_view key) {
  const auto* const found = std::find_if(kForeign.begin(), kForeign.end(),
                                         [&](const auto& each) { return each.name == key; });
  return found == kForeign.end() ? nullptr : found;
}

bool is_known_property(std::string_view key) {
  return std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end();
}

std::string_view closest_known_property(std::string_view key) { return nearest(key, kKnown); }

}  // namespace perdura::ycsb
