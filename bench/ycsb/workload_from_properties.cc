#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "bench/ycsb/property_names.h"
#include "bench/ycsb/workload_spec.h"

namespace perdura::ycsb {
namespace {

template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

constexpr auto kRequestDistributions = std::to_array<Choice<RequestDistribution>>({
    {"uniform", RequestDistribution::uniform},
    {"zipfian", RequestDistribution::zipfian},
    {"plain_zipfian", RequestDistribution::plain_zipfian},
    {"latest", RequestDistribution::latest},
    {"sequential", RequestDistribution::sequential},
    {"hotspot", RequestDistribution::hotspot},
    {"exponential", RequestDistribution::exponential},
});

constexpr auto kLengthDistributions = std::to_array<Choice<LengthDistribution>>({
    {"constant", LengthDistribution::constant},
    {"uniform", LengthDistribution::uniform},
    {"zipfian", LengthDistribution::zipfian},
});

// YCSB has no constant distribution of scan lengths.
constexpr auto kScanLengthDistributions = std::span(kLengthDistributions).subspan<1>();

constexpr auto kInsertOrders = std::to_array<Choice<kv::InsertOrder>>({
    {"hashed", kv::InsertOrder::hashed},
    {"ordered", kv::InsertOrder::ordered},
});

// Copies properties into a specification and keeps the first error, so that the code below reads as
// a list of properties.
class WorkloadReader {
 public:
  explicit WorkloadReader(const Properties& properties) : properties_(properties) {}

  void whole_number(std::string_view key, std::unsigned_integral auto& target) {
    number(key, target, "a whole number");
  }
  void real_number(std::string_view key, double& target) { number(key, target, "a number"); }

  void optional_whole_number(std::string_view key, std::optional<std::uint64_t>& target) {
    std::uint64_t value = 0;
    if (properties_.find(key) == nullptr) return;
    whole_number(key, value);
    target = value;
  }

  // Reads a limit. It stays open if the value is 0, or empty as in YCSB's template.
  void limit(std::string_view key, std::optional<std::uint64_t>& target) {
    if (const auto* entry = properties_.find(key); entry == nullptr || entry->value.empty()) return;
    optional_whole_number(key, target);
    if (target == 0) target.reset();
  }

  void text(std::string_view key, std::string& target) {
    if (const auto* entry = properties_.find(key)) target = entry->value;
  }

  // Parsed as in Java: anything but "true" is false.
  void truth(std::string_view key, bool& target) {
    const auto* entry = properties_.find(key);
    if (entry == nullptr) return;
    target = std::equal(entry->value.begin(), entry->value.end(), kTrue.begin(), kTrue.end(),
                        [](char a, char b) { return (a | 0x20) == b; });
  }

  template <typename T>
  void one_of(std::string_view key, std::span<const Choice<T>> choices, T& target) {
    const auto* entry = properties_.find(key);
    if (entry == nullptr) return;
    for (const Choice<T>& choice : choices) {
      if (choice.name == entry->value) {
        target = choice.value;
        return;
      }
    }
    std::string names;
    for (const Choice<T>& choice : choices) {
      names += names.empty() ? "" : ", ";
      names += choice.name;
    }
    fail(fmt::format("{}: {}={} is not supported; use one of {}", entry->where, key, entry->value,
                     names));
  }

  void fail(std::string message) {
    if (!error_) error_ = Error{std::move(message)};
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  template <typename T>
  void number(std::string_view key, T& target, std::string_view expected) {
    const auto* entry = properties_.find(key);
    if (entry == nullptr) return;
    const std::string& text = entry->value;
    const char* const end = text.data() + text.size();
    T value{};
    const auto [rest, code] = std::from_chars(text.data(), end, value);
    if (code == std::errc::result_out_of_range) {
      fail(fmt::format("{}: {}={} is out of range; use a smaller number", entry->where, key, text));
    } else if (code != std::errc{} || rest != end || !std::isfinite(static_cast<double>(value))) {
      fail(fmt::format("{}: {}='{}' is not {}; correct the value", entry->where, key, text,
                       expected));
    } else {
      target = value;
    }
  }

  static constexpr std::string_view kTrue = "true";

  const Properties& properties_;
  std::optional<Error> error_;
};

// Properties of database bindings start with the name of the database, such as
// google.bigtable.project.id.
bool may_be_of_binding(std::string_view key) { return key.find('.') != std::string_view::npos; }

void sort_out_unknown_properties(const Properties& properties, WorkloadReader& reader,
                                 std::vector<std::string>& of_bindings) {
  for (const auto& [key, entry] : properties.entries()) {
    if (is_known_property(key)) continue;
    if (const ForeignProperty* const foreign = foreign_property(key)) {
      reader.fail(fmt::format("{}: unknown property '{}', which is a name of {}; write '{}'",
                              entry.where, key, foreign->program, foreign->here));
      continue;
    }
    const std::string_view closest = closest_known_property(key);
    if (may_be_of_binding(key) && closest.empty()) {
      of_bindings.push_back(key);
      continue;
    }
    const std::string advice = closest.empty() ? std::string("remove the line or correct the name")
                                               : fmt::format("did you mean '{}'?", closest);
    reader.fail(fmt::format("{}: unknown property '{}'; {}", entry.where, key, advice));
  }
}

// Other workload classes interpret the same properties in other ways.
void refuse_other_workloads(const Properties& properties, WorkloadReader& reader) {
  const auto* entry = properties.find("workload");
  if (entry == nullptr) return;
  const std::string_view name = entry->value;
  const std::string_view plain = name.substr(name.rfind('.') + 1);
  if (plain == "CoreWorkload" || plain == "core") return;
  reader.fail(fmt::format(
      "{}: workload={} is not supported, only YCSB's CoreWorkload is; to run the file as "
      "one, remove the line",
      entry->where, name));
}

void read_what_is_asked(WorkloadReader& reader, AskedOfYcsb& asked) {
  reader.limit("threadcount", asked.thread_count);
  reader.limit("target", asked.target);
  reader.limit("maxexecutiontime", asked.max_execution_seconds);
  reader.limit("core_workload_insertion_retry_limit", asked.insertion_retry_limit);
  reader.truth("writeallfields", asked.write_all_fields);
  reader.truth("readallfields", asked.read_all_fields);
  bool run = true;
  reader.truth("dotransactions", run);
  asked.load_only = !run;
}

// The start of messages about a specification that do not refer to a line of a file.
constexpr std::string_view kOfNoLine = "workload: ";

std::optional<double> number_at_beginning(std::string_view text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// Prefixes a message that names "key=value" of several properties with the lines on which the file
// sets them. A property that the file does not set, or sets to another value, comes from the sweep
// or is the default.
std::string with_places(const std::string& message, const Properties& properties) {
  std::map<std::size_t, std::string> places;  // keys: positions in the message
  for (const auto& [key, entry] : properties.entries()) {
    const std::size_t at = message.find(" " + key + "=");
    if (at == std::string::npos) continue;
    const auto value = number_at_beginning(std::string_view(message).substr(at + key.size() + 2));
    if (value && value == number_at_beginning(entry.value)) places.emplace(at, entry.where);
  }
  if (places.empty() || !message.starts_with(kOfNoLine)) return message;
  std::string text;
  for (const auto& [at, where] : places) text += (text.empty() ? "" : ", ") + where;
  return text + ": " + message.substr(kOfNoLine.size());
}

}  // namespace

tl::expected<WorkloadSpec, Error> workload_from_properties(const Properties& properties,
                                                           const Overrides& overrides) {
  WorkloadSpec spec;
  WorkloadReader reader(properties);
  // The class comes first, since another workload class would give the properties other meanings.
  refuse_other_workloads(properties, reader);
  sort_out_unknown_properties(properties, reader, spec.asked.of_bindings);
  read_what_is_asked(reader, spec.asked);

  reader.whole_number("recordcount", spec.record_count);
  reader.whole_number("operationcount", spec.operation_count);
  reader.whole_number("insertstart", spec.insert_start);
  reader.optional_whole_number("insertcount", spec.insert_count);
  reader.one_of<kv::InsertOrder>("insertorder", kInsertOrders, spec.insert_order);

  for (std::size_t kind = 0; kind < kOperationKinds; ++kind) {
    reader.real_number(kProportionProperties[kind], spec.proportions[kind]);
  }

  reader.one_of<RequestDistribution>("requestdistribution", kRequestDistributions,
                                     spec.request_distribution);
  reader.real_number("zipfianconstant", spec.zipfian_constant);
  reader.real_number("hotspotdatafraction", spec.hotspot_data_fraction);
  reader.real_number("hotspotopnfraction", spec.hotspot_operation_fraction);
  reader.real_number("exponential.percentile", spec.exponential_percentile);
  reader.real_number("exponential.frac", spec.exponential_fraction);

  reader.whole_number("keysize", spec.key_size);
  reader.text("keyprefix", spec.key_prefix);
  reader.whole_number("zeropadding", spec.zero_padding);

  reader.whole_number("fieldcount", spec.field_count);
  reader.whole_number("fieldlength", spec.field_length);
  reader.whole_number("minfieldlength", spec.min_field_length);
  reader.one_of<LengthDistribution>("fieldlengthdistribution", kLengthDistributions,
                                    spec.field_length_distribution);

  reader.whole_number("minscanlength", spec.min_scan_length);
  reader.whole_number("maxscanlength", spec.max_scan_length);
  reader.one_of<LengthDistribution>("scanlengthdistribution", kScanLengthDistributions,
                                    spec.scan_length_distribution);

  if (reader.error()) return tl::unexpected(*reader.error());
  spec.asked.field_count = spec.field_count;
  auto made = with_overrides(std::move(spec), overrides);
  if (!made) return tl::unexpected(Error{with_places(made.error().message, properties)});
  return made;
}

tl::expected<WorkloadSpec, Error> workload_from_file(const std::filesystem::path& path,
                                                     const Overrides& overrides) {
  const auto properties = Properties::read_file(path);
  if (!properties) return tl::unexpected(properties.error());
  auto spec = workload_from_properties(*properties, overrides);
  // A setting of the sweep has no line in the file, but the file's name still helps.
  if (!spec && spec.error().message.starts_with(kOfNoLine)) {
    return tl::unexpected(
        Error{path.string() + ": " + spec.error().message.substr(kOfNoLine.size())});
  }
  return spec;
}

}  // namespace perdura::ycsb
