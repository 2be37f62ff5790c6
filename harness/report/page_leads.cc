#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "harness/report/page_parts.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

using Point = std::vector<std::string>;  // what tells it from others, by column
using BySystem = std::map<std::string, std::vector<double>>;  // the repetitions

/// At how many points a system has the least, and how many times that the next one has at each.
struct Lead {
  std::string system;
  std::vector<double> ratios;
  bool of_zero = false;  ///< the least is 0 somewhere: there is no ratio
};

/// Less than this apart, two are equal as far as the page shows numbers: 1.00 times.
constexpr double kEqual = 1.005;

/// The repetitions of a system at a point, to be set in order.
struct Place {
  double mean = 0;
  double half_width = 0;  ///< of the interval that the mean is known by
  std::string system;
};

Place place_of(const std::string& system, const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), confidence_half_width(values), system};
}

bool leads(const Place& first, const Place& second) {
  return second.mean > first.mean * kEqual &&
         second.mean - second.half_width > first.mean + first.half_width;
}

std::map<Point, BySystem> values_of(const Points& points, std::string_view column) {
  std::map<Point, BySystem> values;
  const std::vector<std::string_view> keys = points.key_columns();
  for (std::size_t row = 0; row < points.size(); ++row) {
    const auto value = points.number(row, column);
    if (!points.valid(row) || points.text(row, "operation") != "all" || !value) continue;
    Point point;
    for (const std::string_view key : keys) {
      if (key != "system") point.push_back(points.text(row, key));
    }
    values[point][points.text(row, "system")].push_back(*value);
  }
  return values;
}

void add_point(const BySystem& systems, std::vector<Lead>& all) {
  std::vector<Place> order;
  for (const auto& [system, repetitions] : systems) order.push_back(place_of(system, repetitions));
  std::sort(order.begin(), order.end(),
            [](const Place& left, const Place& right) { return left.mean < right.mean; });
  const Place& first = order[0];
  const Place& second = order[1];
  if (!leads(first, second)) return;
  auto lead = std::find_if(all.begin(), all.end(),
                           [&](const Lead& each) { return each.system == first.system; });
  if (lead == all.end()) lead = all.insert(all.end(), Lead{first.system, {}});
  if (first.mean == 0) lead->of_zero = true;
  lead->ratios.push_back(second.mean / first.mean);
}

std::string times(const Lead& lead) {
  if (lead.of_zero) return "";
  const auto [least, most] = std::minmax_element(lead.ratios.begin(), lead.ratios.end());
  const std::string low = shown_number(*least);
  const std::string high = shown_number(*most);
  return fmt::format(" (the next one has {}{} times as much)", low,
                     low == high ? "" : " to " + high);
}

}  // namespace

std::string lead_sentence(const ResultFolder& folder, std::string_view column) {
  const Points& points = folder.points;
  if (points.size() == 0 || !folder.unfinished().empty()) return "";
  std::set<std::string> systems;
  for (std::size_t row = 0; row < points.size(); ++row) systems.insert(points.text(row, "system"));
  if (systems.size() < 2) return "";
  std::size_t shared = 0;
  std::vector<Lead> found;
  for (const auto& [point, by_system] : values_of(points, column)) {
    if (by_system.size() != systems.size()) continue;
    ++shared;
    add_point(by_system, found);
  }
  if (found.empty()) return "";
  std::stable_sort(found.begin(), found.end(), [](const Lead& left, const Lead& right) {
    return left.ratios.size() > right.ratios.size();
  });
  std::vector<std::string> parts;
  for (const Lead& lead : found) {
    const std::string how_often = parts.empty()
                                      ? fmt::format("{} of the {} points that {} systems share",
                                                    lead.ratios.size(), shared, systems.size())
                                      : fmt::to_string(lead.ratios.size());
    parts.push_back(
        fmt::format("{} at {}{}", folder.specs.systems.shown(lead.system), how_often, times(lead)));
  }
  std::size_t led = 0;
  for (const Lead& lead : found) led += lead.ratios.size();
  return fmt::format(
      "{}, lowest {}: {}{}.", where(origin_of(points, 0)), points.schema().quantity(column).noun,
      listed(parts),
      led == shared ? "" : fmt::format("; at {} none is lowest alone", shared - led));
}

}  // namespace perdura::report
