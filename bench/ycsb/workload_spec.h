#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "bench/ycsb/error.h"
#include "bench/ycsb/properties.h"
#include "bench/ycsb/zipfian.h"
#include "services/kv/key_format.h"

namespace perdura::ycsb {

enum class OperationKind : std::uint8_t { read, update, insert, scan, read_modify_write, erase };
inline constexpr std::size_t kOperationKinds = 6;

// The properties that set the proportion of each kind, in the order of OperationKind.
inline constexpr std::array<std::string_view, kOperationKinds> kProportionProperties{
    "readproportion", "updateproportion",          "insertproportion",
    "scanproportion", "readmodifywriteproportion", "deleteproportion"};

// The name in results: "read", "update", "insert", "scan", "read_modify_write", "delete".
std::string_view to_string(OperationKind kind);

enum class RequestDistribution : std::uint8_t {
  uniform,
  zipfian,        // YCSB's: scrambled
  plain_zipfian,  // our extension: the lowest key numbers are the most popular
  latest,
  sequential,
  hotspot,
  exponential,
};

// The name in property files, such as "plain_zipfian".
std::string_view to_string(RequestDistribution distribution);

enum class LengthDistribution : std::uint8_t { constant, uniform, zipfian };

// The settings that a sweep overrides; absent ones stay as they are.
struct Overrides {
  std::optional<std::uint64_t> record_count = {};
  std::optional<std::uint64_t> operation_count = {};
  std::optional<std::uint32_t> key_size = {};    // bytes
  std::optional<std::uint32_t> value_size = {};  // bytes; the largest if lengths vary
};

// Settings in a file that are for YCSB's client, or for the fields of its records, and that a run
// handles differently; kept so that the driver can report them (bench/ycsb/workload_remarks.h).
struct AskedOfYcsb {
  std::optional<std::uint64_t> thread_count = {};
  std::optional<std::uint64_t> target = {};                 // operations per second
  std::optional<std::uint64_t> max_execution_seconds = {};  // empty also if it is 0: no limit
  std::optional<std::uint64_t> insertion_retry_limit = {};
  std::uint32_t field_count = 1;  // the file's, even if value_size replaces the fields
  bool write_all_fields = false;  // YCSB's default: an update writes one field
  bool read_all_fields = true;
  bool load_only = false;                     // dotransactions=false
  std::vector<std::string> of_bindings = {};  // names of properties of database bindings
};

// A workload as YCSB's CoreWorkload describes it, with the same defaults. Differences:
//  - A record is one value of fieldcount * fieldlength bytes; reads and updates apply to all of it.
//  - Every value that is read is checked, which YCSB does with dataintegrity=true.
//  - Keys have a fixed size, see KeyFormat. `zeropadding` is accepted and checked against it.
//  - recordcount=0 is an empty store, where YCSB takes two billion records.
//  - deleteproportion, keyprefix, keysize, zipfianconstant and requestdistribution=plain_zipfian
//    are extensions of ours.
struct WorkloadSpec {
  std::uint64_t record_count = 0;
  std::uint64_t operation_count = 0;  // sum of all clients; 0: no limit, the harness stops by time

  // The loaded keys are insert_start ... insert_start + insert_count - 1; without a count, they end
  // at record_count - 1. The keys of new records begin at record_count.
  std::uint64_t insert_start = 0;
  std::optional<std::uint64_t> insert_count;
  kv::InsertOrder insert_order = kv::InsertOrder::hashed;

  // Indexed by OperationKind; only their ratios count.
  std::array<double, kOperationKinds> proportions = {0.95, 0.05, 0.0, 0.0, 0.0, 0.0};

  RequestDistribution request_distribution = RequestDistribution::uniform;
  double zipfian_constant = kYcsbZipfianConstant;
  double hotspot_data_fraction = 0.2;
  double hotspot_operation_fraction = 0.8;
  double exponential_percentile = 95.0;
  double exponential_fraction = 0.8571428571;

  std::uint32_t key_size = 24;  // bytes
  std::string key_prefix = "user";
  std::uint32_t zero_padding = 1;  // digits

  std::uint32_t field_count = 10;
  std::uint32_t field_length = 100;  // bytes; the largest one unless the distribution is constant
  std::uint32_t min_field_length = 1;
  LengthDistribution field_length_distribution = LengthDistribution::constant;

  std::uint32_t min_scan_length = 1;  // records
  std::uint32_t max_scan_length = 1000;
  LengthDistribution scan_length_distribution = LengthDistribution::uniform;

  AskedOfYcsb asked = {};

  double proportion(OperationKind kind) const {
    return proportions[static_cast<std::size_t>(kind)];
  }
  // The fraction of all operations that are of this kind, from 0 to 1.
  double share(OperationKind kind) const;
  bool uses(OperationKind kind) const { return proportion(kind) > 0; }

  std::uint64_t first_key() const { return insert_start; }
  std::uint64_t loaded_keys() const { return insert_count.value_or(record_count - insert_start); }
  std::uint64_t first_new_key() const { return record_count; }
  std::uint32_t max_value_size() const { return field_count * field_length; }
  kv::KeyFormat key_format() const { return {key_size, key_prefix, insert_order}; }

  // Checks that the settings fit together. The message names the property to change.
  tl::expected<void, Error> validate() const;
};

// Returns a valid workload, or the reason why there is none. Rejects properties that neither YCSB's
// core nor we know (a name with a dot may be a database binding's), workload classes other than
// CoreWorkload, malformed numbers, and combinations that validate() rejects.
tl::expected<WorkloadSpec, Error> workload_from_properties(const Properties& properties,
                                                           const Overrides& overrides = {});
tl::expected<WorkloadSpec, Error> workload_from_file(const std::filesystem::path& path,
                                                     const Overrides& overrides = {});

// A copy with the overrides applied, validated. A value size turns the record into one field of
// that size; a record count replaces insertstart and insertcount: all records are loaded.
tl::expected<WorkloadSpec, Error> with_overrides(WorkloadSpec spec, const Overrides& overrides);

// The share of one client in `total` operations; the shares add up to `total`.
std::uint64_t operations_of_client(std::uint64_t total, std::uint32_t client,
                                   std::uint32_t clients);

}  // namespace perdura::ycsb
