#include "bench/ycsb/workload_spec.h"

#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace perdura::ycsb {
namespace {

tl::unexpected<Error> invalid(std::string message) {
  return tl::unexpected(Error{"workload: " + std::move(message)});
}

bool is_fraction(double value) { return value >= 0.0 && value <= 1.0; }

using Validity = tl::expected<void, Error>;

Validity validate_proportions(const WorkloadSpec& spec) {
  double sum = 0.0;
  // Only their ratios count; some files have percentages.
  constexpr double kMost = 100;
  for (std::size_t kind = 0; kind < kOperationKinds; ++kind) {
    const double proportion = spec.proportions[kind];
    if (!(proportion >= 0 && proportion <= kMost)) {
      return invalid(fmt::format("{}={} is not possible; use numbers from 0 to 1, or percentages",
                                 kProportionProperties[kind], proportion));
    }
    sum += proportion;
  }
  if (!(sum > 0)) {
    return invalid(fmt::format("{}=0 leaves nothing to do; give at least one of them above 0",
                               fmt::join(kProportionProperties, "=0, ")));
  }
  return {};
}

Validity validate_records(const WorkloadSpec& spec) {
  const std::uint64_t insert_count = spec.insert_count.value_or(0);
  if (spec.insert_start > spec.record_count ||
      insert_count > spec.record_count - spec.insert_start) {
    return invalid(
        fmt::format("insertstart={} and insertcount={} reach beyond recordcount={}; raise "
                    "recordcount to their sum",
                    spec.insert_start, insert_count, spec.record_count));
  }
  const bool needs_records = spec.uses(OperationKind::read) || spec.uses(OperationKind::update) ||
                             spec.uses(OperationKind::scan) ||
                             spec.uses(OperationKind::read_modify_write) ||
                             spec.uses(OperationKind::erase);
  if (needs_records && spec.loaded_keys() == 0) {
    return invalid(
        fmt::format("recordcount={} leaves no records to operate on; set recordcount (or "
                    "insertcount) above 0",
                    spec.record_count));
  }
  return {};
}

Validity validate_keys(const WorkloadSpec& spec) {
  if (spec.key_size == 0 || spec.key_size > 65'536) {
    return invalid(fmt::format("keysize={} is not possible; use 1 to 65536 bytes", spec.key_size));
  }
  if (spec.record_count > spec.key_format().capacity()) {
    return invalid(
        fmt::format("recordcount={} exceeds the {} different keys of keysize={}; raise keysize or "
                    "lower recordcount",
                    spec.record_count, spec.key_format().capacity(), spec.key_size));
  }
  if (spec.zero_padding > 1 && spec.key_prefix.size() + spec.zero_padding > spec.key_size) {
    return invalid(fmt::format(
        "zeropadding={} and the prefix '{}' do not fit keysize={}; set keysize to at least {}",
        spec.zero_padding, spec.key_prefix, spec.key_size,
        spec.key_prefix.size() + spec.zero_padding));
  }
  return {};
}

Validity validate_distributions(const WorkloadSpec& spec) {
  if (!(spec.zipfian_constant > 0 && spec.zipfian_constant < 1)) {
    return invalid(
        fmt::format("zipfianconstant={} is not possible; use a number above 0 and below 1",
                    spec.zipfian_constant));
  }
  if (!is_fraction(spec.hotspot_data_fraction) || !is_fraction(spec.hotspot_operation_fraction)) {
    return invalid(fmt::format(
        "hotspotdatafraction={} and hotspotopnfraction={} are fractions; use numbers from 0 to 1",
        spec.hotspot_data_fraction, spec.hotspot_operation_fraction));
  }
  if (!(spec.exponential_percentile > 0 && spec.exponential_percentile < 100) ||
      !(spec.exponential_fraction > 0 && spec.exponential_fraction <= 1)) {
    return invalid(
        fmt::format("exponential.percentile={} must lie between 0 and 100 and exponential.frac={} "
                    "between 0 and 1",
                    spec.exponential_percentile, spec.exponential_fraction));
  }
  return {};
}

Validity validate_lengths(const WorkloadSpec& spec) {
  constexpr std::uint64_t kLargestValue = std::uint64_t{1} << 30;
  if (spec.field_count == 0) {
    return invalid("fieldcount=0 is not possible; for empty values set fieldlength=0");
  }
  if (std::uint64_t{spec.field_count} * spec.field_length > kLargestValue) {
    return invalid(
        fmt::format("fieldcount={} times fieldlength={} exceeds the largest value of {} bytes; "
                    "lower one of them",
                    spec.field_count, spec.field_length, kLargestValue));
  }
  if (spec.field_length_distribution != LengthDistribution::constant &&
      spec.min_field_length > spec.field_length) {
    return invalid(fmt::format("minfieldlength={} exceeds fieldlength={}; lower it",
                               spec.min_field_length, spec.field_length));
  }
  if (spec.min_scan_length == 0 || spec.min_scan_length > spec.max_scan_length) {
    return invalid(fmt::format(
        "minscanlength={} and maxscanlength={} are no range; use 1 <= minimum <= maximum",
        spec.min_scan_length, spec.max_scan_length));
  }
  return {};
}

}  // namespace

std::string_view to_string(OperationKind kind) {
  switch (kind) {
    case OperationKind::read:
      return "read";
    case OperationKind::update:
      return "update";
    case OperationKind::insert:
      return "insert";
    case OperationKind::scan:
      return "scan";
    case OperationKind::read_modify_write:
      return "read_modify_write";
    case OperationKind::erase:
      return "delete";
  }
  return "unknown";
}

std::string_view to_string(RequestDistribution distribution) {
  switch (distribution) {
    case RequestDistribution::uniform:
      return "uniform";
    case RequestDistribution::zipfian:
      return "zipfian";
    case RequestDistribution::plain_zipfian:
      return "plain_zipfian";
    case RequestDistribution::latest:
      return "latest";
    case RequestDistribution::sequential:
      return "sequential";
    case RequestDistribution::hotspot:
      return "hotspot";
    case RequestDistribution::exponential:
      return "exponential";
  }
  return "unknown";
}

double WorkloadSpec::share(OperationKind kind) const {
  return proportion(kind) / std::accumulate(proportions.begin(), proportions.end(), 0.0);
}

tl::expected<void, Error> WorkloadSpec::validate() const {
  for (auto check : {validate_proportions, validate_records, validate_keys, validate_distributions,
                     validate_lengths}) {
    if (Validity validity = check(*this); !validity) return validity;
  }
  return {};
}

tl::expected<WorkloadSpec, Error> with_overrides(WorkloadSpec spec, const Overrides& overrides) {
  if (overrides.record_count) {
    spec.record_count = *overrides.record_count;
    spec.insert_start = 0;
    spec.insert_count.reset();
  }
  if (overrides.operation_count) spec.operation_count = *overrides.operation_count;
  if (overrides.key_size) {
    spec.key_size = *overrides.key_size;
    // The file's padding was meant for its own key size, which the sweep's replaces.
    spec.zero_padding = 1;
  }
  if (overrides.value_size) {
    spec.field_count = 1;
    spec.field_length = *overrides.value_size;
  }
  if (auto validity = spec.validate(); !validity) return tl::unexpected(validity.error());
  return spec;
}

std::uint64_t operations_of_client(std::uint64_t total, std::uint32_t client,
                                   std::uint32_t clients) {
  return total / clients + (client < total % clients ? 1 : 0);
}

}  // namespace perdura::ycsb
