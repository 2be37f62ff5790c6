#include "bench/kv/kv_history.h"

#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <filesystem>
#include <utility>

#include "bench/ycsb/point_workload.h"
#include "harness/text/atomic_file.h"
#include "platform/base/error.h"
#include "services/kv/history/checker.h"
#include "services/kv/history/formats.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;
using harness::Verdict;
using ycsb::OperationKind;

std::uint64_t expected_operations(const Point& point, std::uint32_t client) {
  const ycsb::WorkloadSpec& spec = workload_of(point);
  const auto clients = static_cast<std::uint32_t>(point.settings.number("clients"));
  const std::uint64_t drawn =
      ycsb::operations_of_client(point.settings.number("warmup"), client, clients) +
      ycsb::operations_of_client(spec.operation_count, client, clients);
  // A read-modify-write counts as two operations.
  const std::uint64_t each = spec.uses(OperationKind::read_modify_write) ? 2 : 1;
  return ycsb::operations_of_client(spec.loaded_keys(), client, clients) + each * drawn;
}

// All processes of a run are the same program, so an operation is sent as its object
// representation.
constexpr std::size_t kOperationWords = sizeof(history::Operation) / sizeof(std::uint64_t);
static_assert(kOperationWords * sizeof(std::uint64_t) == sizeof(history::Operation));
static_assert(std::is_trivially_copyable_v<history::Operation>);

std::vector<history::Operation> take_evidence(Measurement& measurement) {
  const std::vector<std::uint64_t> words = std::exchange(measurement.evidence, {});
  std::vector<history::Operation> operations(words.size() / kOperationWords);
  if (!operations.empty()) {
    std::memcpy(static_cast<void*>(operations.data()), words.data(),
                operations.size() * sizeof(history::Operation));
  }
  return operations;
}

// Returns the name of a key; `key` is its number in the workload.
std::string name_of_key(const Point& point, std::uint64_t key) {
  const ycsb::WorkloadSpec& spec = workload_of(point);
  kv::WorkloadFormat format(spec.key_format());
  const std::uint64_t inserts = spec.uses(OperationKind::insert)
                                    ? spec.operation_count + point.settings.number("warmup") +
                                          point.settings.number("clients")
                                    : 0;
  auto number = format.number_in_workload(key, spec.first_key(), spec.loaded_keys());
  if (!number) number = format.number_in_workload(key, spec.first_new_key(), inserts);
  return number ? fmt::format("key {}", *number) : "";
}

// Writes the history to a file, such as FOLDER/erda-workloada-2.json for repetition 2 of "erda
// workloada".
void keep(const history::History& history, const Point& point) {
  std::string name =
      fmt::format("{} {}", point.label.empty() ? point.system_name : point.label, point.repetition);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '_') letter = '-';
  }
  const std::filesystem::path folder = point.settings.text("history_folder");
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) {
    throw UsageError(fmt::format("{}: history_folder {}: {}",
                                 point.settings.where("history_folder"), folder.string(),
                                 problem.message()));
  }
  harness::write_atomically(folder / (name + ".json"), history::to_json(history));
}

}  // namespace

void add_evidence(std::span<const history::Operation> operations, Measurement& measurement) {
  std::vector<std::uint64_t>& words = measurement.evidence;
  const std::size_t start = words.size();
  words.resize(start + operations.size() * kOperationWords);
  if (operations.empty()) return;
  std::memcpy(words.data() + start, operations.data(), operations.size_bytes());
}

ClientHistory::ClientHistory(const Point& point, std::uint32_t client)
    : client_(client),
      format_(workload_of(point).key_format()),
      log_(expected_operations(point, client)) {}

std::unique_ptr<kv::KvSession> ClientHistory::record(kv::KvSession& session) {
  return std::make_unique<kv::RecordedSession>(session, client_, format_, log_);
}

void check_values_tell_versions(const Point& point) {
  const ycsb::WorkloadSpec& spec = workload_of(point);
  const Bytes least = spec.field_length_distribution == ycsb::LengthDistribution::constant
                          ? spec.max_value_size()
                          : Bytes{spec.field_count} * spec.min_field_length;
  if (least >= kv::WorkloadFormat::kLeastValueSize) return;
  throw UsageError(fmt::format(
      "{}: check_history needs values of at least {} bytes, which hold their version; {} has some "
      "of {}; raise value_size",
      point.settings.where("workload"), kv::WorkloadFormat::kLeastValueSize, workload_name(point),
      least));
}

void check_history(const Point& point, Measurement& measurement) {
  const history::History history(take_evidence(measurement));
  const bool given_up = measurement.interrupted || !measurement.usage_error.empty() ||
                        measurement.verdict == Verdict::failed;
  if (given_up) return;
  if (!point.settings.text("history_folder").empty()) keep(history, point);
  const history::CheckResult verdict = history::check(history);
  measurement.operations_checked = verdict.operations;
  if (verdict.keys_violated > 0) {
    const history::Violation& first = verdict.violations.front();
    measurement.judge(Verdict::invalid,
                      fmt::format("{} of {} keys are not linearizable; {}", verdict.keys_violated,
                                  verdict.keys, describe(first, name_of_key(point, first.key))));
  } else if (verdict.keys_undecided > 0) {
    measurement.judge(
        Verdict::invalid,
        fmt::format("{} of {} keys have too many concurrent deletes for their history "
                    "to be checked",
                    verdict.keys_undecided, verdict.keys));
  }
}

}  // namespace perdura::bench
