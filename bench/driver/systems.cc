#include "bench/driver/systems.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "platform/base/limits.h"
#include "platform/base/suggestion.h"

namespace perdura::bench {

std::string no_such_system(const harness::Point& point, std::span<const std::string_view> known) {
  const harness::Located& system = point.settings.system;
  return fmt::format("{}: {}", system.where, unknown_name("system", system.text, known));
}

void add_columns(std::span<const services::Metric> metrics, std::vector<schema::Column>& columns) {
  for (const services::Metric& metric : metrics) {
    columns.push_back({.name = metric.name, .shown = {metric.noun, metric.title, metric.unit}});
  }
}

void add_counted(std::span<const services::Metric> metrics,
                 std::span<const std::vector<double>> counted, harness::Measurement& result) {
  std::vector<double> sums;
  for (const std::vector<double>& each : counted) services::add_metrics(each, sums);
  for (std::size_t i = 0; i < std::min(metrics.size(), sums.size()); ++i) {
    result.declared[std::string(metrics[i].name)] += sums[i];
  }
}

void note(std::exception_ptr problem, std::string_view who, harness::Measurement& measurement) {
  try {
    std::rethrow_exception(std::move(problem));
  } catch (const UsageError& error) {
    measurement.usage_error = error.what();
  } catch (const std::exception& error) {
    measurement.judge(harness::Verdict::failed, fmt::format("{}: {}", who, problem_text(error)));
  }
}

}  // namespace perdura::bench
