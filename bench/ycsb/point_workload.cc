#include "bench/ycsb/point_workload.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "platform/base/error.h"

namespace perdura::bench {
namespace {

const PointWorkload& prepared(const harness::Point& point) {
  const auto* const found = dynamic_cast<const PointWorkload*>(point.prepared.get());
  if (found == nullptr) throw std::logic_error("the point has no workload");
  return *found;
}

// The settings of a workload file that has been read successfully before.
harness::FileSettings settings_of(const std::filesystem::path& workload_file) {
  harness::FileSettings settings;
  if (const auto properties = ycsb::Properties::read_file(workload_file)) {
    for (const auto& [key, entry] : properties->entries()) settings[key] = entry.value;
  }
  return settings;
}

}  // namespace

void prepare_workload(harness::Point& point, const harness::Locations& locations) {
  harness::PointSettings& settings = point.settings;
  const auto size = [&](std::string_view name) -> std::optional<std::uint32_t> {
    const auto given = settings.number_if_given(name);
    return given ? std::optional(static_cast<std::uint32_t>(*given)) : std::nullopt;
  };
  const harness::Located name{settings.text("workload"), settings.where("workload")};
  const auto file = locations.find(harness::FileKind::workload, name);
  const ycsb::Overrides overrides{.record_count = settings.number_if_given("records"),
                                  .operation_count = settings.number_if_given("operations"),
                                  .key_size = size("key_size"),
                                  .value_size = size("value_size")};
  auto spec = ycsb::workload_from_file(file, overrides);
  if (!spec) throw UsageError(fmt::format("{}: {}", name.where, spec.error().message));
  if (spec->operation_count == 0) {
    throw UsageError(
        fmt::format("{}: no number of operations; add operations = ... to [workload]", name.where));
  }
  PointWorkload& own = own_workload(point);
  own.spec = std::move(*spec);
  own.overrides = overrides;
  own.name = plain_name(harness::FileKind::workload, name.text);
  point.files.push_back({"workload", name, own.name, file, settings_of(file)});
  settings.set("workload", own.name, name.where);
  settings.set("records", own.spec.loaded_keys(), settings.where("records"));
  settings.set("key_size", own.spec.key_size, settings.where("key_size"));
  settings.set("value_size", own.spec.max_value_size(), settings.where("value_size"));
  point.operations = all_operations(point);
}

const ycsb::WorkloadSpec& workload_of(const harness::Point& point) { return prepared(point).spec; }

const std::string& workload_name(const harness::Point& point) { return prepared(point).name; }

const ycsb::Overrides& overrides_of(const harness::Point& point) {
  return prepared(point).overrides;
}

PointWorkload& own_workload(harness::Point& point) {
  const auto own = point.prepared ? std::make_shared<PointWorkload>(prepared(point))
                                  : std::make_shared<PointWorkload>();
  point.prepared = own;
  return *own;
}

std::uint64_t all_operations(const harness::Point& point) {
  const ycsb::WorkloadSpec& spec = workload_of(point);
  return spec.loaded_keys() + point.settings.number("warmup") + spec.operation_count;
}

}  // namespace perdura::bench
